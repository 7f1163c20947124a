"""Programs of the protocol's other makers, which run on Node. Tests that want one are skipped where it is missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["node", "packages"]

OLDEST = 22


def node() -> str:
    """A Node that is new enough: what PROCEDO_NODE names, or the system's."""
    found = os.environ.get("PROCEDO_NODE") or shutil.which("node")
    if found is None:
        pytest.skip("there is no Node; PROCEDO_NODE may name one")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").partition(".")[0]) < OLDEST:
        pytest.skip(f"Node {OLDEST} is needed, this is {version}; PROCEDO_NODE may name another")
    return found


def packages(name: str) -> Path:
    """The folder of npm packages that PROCEDO_CONFORMANCE names, when it has this one."""
    home = os.environ.get("PROCEDO_CONFORMANCE", "")
    if not home or not (Path(home) / "node_modules" / name).exists():
        pytest.skip(f"PROCEDO_CONFORMANCE names no folder with the npm package {name}")
    return Path(home)

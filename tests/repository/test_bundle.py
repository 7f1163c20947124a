"""The bundle for Claude Desktop is what the official tool accepts, and starts as its host starts it."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from node_tools import node, packages
from repository import ROOT

from procedo.surfaces.mcp.server import built_tools

pytestmark = [pytest.mark.requirement("bundle"), pytest.mark.anyio]

BOUND_S = 300


def built(folder: Path, root: Path = ROOT) -> Path:
    done = subprocess.run(
        [sys.executable, str(root / ".ci" / "bundle.py"), str(folder)],
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        cwd=folder.parent,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("bundle") / "dist")


def unpacked(bundle: Path, folder: Path) -> dict[str, Any]:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def test_the_same_sources_give_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    again = built(tmp_path / "again")
    assert again.name == bundle.name
    first, second = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (bundle, again))
    assert first == second


def test_it_says_what_the_project_and_the_server_say(bundle: Path, tmp_path: Path) -> None:
    manifest = unpacked(bundle, tmp_path)
    registry = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    assert bundle.name == f"procedo-{registry['version']}.mcpb"
    assert manifest["version"] == registry["version"]
    assert [tool["name"] for tool in manifest["tools"]] == [tool.name for tool in built_tools()]
    assert all(tool["description"] for tool in manifest["tools"])
    (variable,) = registry["packages"][0]["environmentVariables"]
    assert list(manifest["server"]["mcp_config"]["env"]) == [variable["name"]]


def test_it_holds_the_sources_and_nothing_that_was_made_of_them(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
    made = [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assert (made, sorted(names) == names) == ([], True)
    package = ROOT / "src" / "procedo"
    sources = {path.relative_to(ROOT).as_posix() for path in package.rglob("*.py")}
    assert sources <= set(names)
    assert set(names) - {name for name in names if name.startswith("src/procedo/")} == {
        "LICENSE",
        "README.md",
        "icon.png",
        "manifest.json",
        "pyproject.toml",
        "src/start.py",
    }


def test_what_checkers_and_desktops_leave_in_the_sources_stays_out(tmp_path: Path) -> None:
    root, package = tmp_path / "clone", tmp_path / "clone" / "src" / "procedo"
    for name in (".ci/bundle.py", "LICENSE", "README.md", "pyproject.toml", "src/procedo/__init__.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    for left in (".mypy_cache/3.11/cache.db", ".DS_Store", "core/__pycache__/x.pyc", "core/.x.py.swp", "core/x.sql"):
        (package / left).parent.mkdir(parents=True, exist_ok=True)
        (package / left).write_text("x")
    with zipfile.ZipFile(built(tmp_path / "dist", root)) as archive:
        names = [name for name in archive.namelist() if name.startswith("src/procedo/")]
    assert names == ["src/procedo/__init__.py", "src/procedo/core/x.sql"]


def test_the_official_tool_accepts_it(bundle: Path, tmp_path: Path) -> None:
    folder = packages("@anthropic-ai/mcpb") / "node_modules" / "@anthropic-ai" / "mcpb"
    manifest = unpacked(bundle, tmp_path)
    program = [node(), str(folder / "dist" / "cli" / "cli.js")]
    for words, said in ((["validate", str(tmp_path / "manifest.json")], "passes"), (["info", str(bundle)], "File:")):
        done = subprocess.run([*program, *words], capture_output=True, text=True, timeout=BOUND_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert said in done.stdout + done.stderr
    schema = json.loads((folder / "dist" / "mcpb-manifest-v0.4.schema.json").read_text(encoding="utf-8"))
    assert [error.message for error in Draft7Validator(schema).iter_errors(manifest)] == []
    assert list(Draft7Validator(schema).iter_errors({**manifest, "tool": []}))


def uv() -> str:
    """The program that the host brings along."""
    beside = Path(os.environ.get("PROCEDO_CONFORMANCE", "")) / "bin" / "uv"
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        pytest.skip("there is no uv")
    return found


def prepare(program: str, folder: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(
        [program, "sync", "--quiet", "--directory", str(folder), "--python", sys.executable],
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        env=environ,
        check=False,
    )
    assert done.returncode == 0, done.stderr


async def test_it_starts_with_uv_as_its_host_starts_it(bundle: Path, tmp_path: Path) -> None:
    program, folder, workspace = uv(), tmp_path / "extension", tmp_path / "work space"
    config = unpacked(bundle, folder)["server"]["mcp_config"]
    workspace.mkdir()
    given = {"${__dirname}": str(folder), "${user_config.workspace}": str(workspace)}
    assert config["command"] == "uv"
    environ = {name: given[value] for name, value in config["env"].items()}
    # Where packages come from is the machine's business, and the host's.
    passed = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "SSL_", "HTTPS_", "PIP_"))}
    environ |= passed | {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    words = [given.get(word, word) for word in config["args"]]
    prepare(program, folder, environ)
    server = StdioServerParameters(command=program, args=words, env=environ, cwd=str(tmp_path))
    async with Client(stdio_client(server)) as client:
        listed = await client.list_tools()
        answer = await client.call_tool("sop_list", {})
    assert [tool.name for tool in listed.tools] == [tool.name for tool in built_tools()]
    assert answer.structured_content is not None
    assert answer.structured_content["sops"] == []

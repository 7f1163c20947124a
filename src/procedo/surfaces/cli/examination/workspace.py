"""The workspace: which one and why, its configuration, its procedures, and how people are told."""

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.examination.finding import OK, PROBLEM, WARNING, Finding
from procedo.surfaces.cli.library import opened

if TYPE_CHECKING:
    from procedo.config import Settings

__all__ = ["GATES_WAIT", "configuration", "procedures", "routes", "workspace"]

GATES_WAIT = "The gates wait all the same: procedo inbox lists them."


def _why(call: Call, root: Path) -> str:
    from procedo.config.workspace import VARIABLE, user_data_folder

    if call["workspace"] is not None:
        return "--workspace names it"
    if call.environ.get(VARIABLE, "").strip():
        return f"{VARIABLE} names it"
    if root == user_data_folder(call.environ, sys.platform) and not (root / "procedo.toml").exists():
        return "no folder from here upwards has procedo.toml or sops/"
    return "the nearest folder with procedo.toml or sops/"


def workspace(call: Call) -> Iterator[Finding]:
    """Which folder everything happens in, and why that one."""
    root = call.workspace()
    why = _why(call, root)
    if not root.exists():
        hint = "Make it with: procedo new NAME, in the folder where your procedures are to live."
        yield Finding("workspace", WARNING, f"{root} does not exist yet ({why})", hint)
    elif not os.access(root, os.W_OK | os.X_OK):
        yield Finding("workspace", PROBLEM, f"{root} cannot be written to", "Give your account write access to it.")
    else:
        yield Finding("workspace", OK, f"{root} ({why})")


def configuration(settings: "Settings") -> Iterator[Finding]:
    """What `procedo.toml` amounts to."""
    shell = "on" if settings.capabilities.shell.enabled else "off"
    hosts = len(settings.capabilities.http.allowed_hosts)
    facts = (
        f"mode {settings.default_mode}, policies {', '.join(settings.policies)}, shell.exec {shell}, {hosts} http hosts"
    )
    file = settings.root / "procedo.toml"
    yield Finding("configuration", OK, f"{file if file.exists() else 'no procedo.toml, every default holds'}: {facts}")


def procedures(call: Call) -> Iterator[Finding]:
    """Whether every procedure loads."""
    library, settings = opened(call)
    entries = library.entries()
    broken = [entry.name for entry in entries if entry.sop is None]
    warned = [entry.name for entry in entries if entry.sop is not None and entry.problems]
    if not entries:
        yield Finding("procedures", WARNING, f"none in {settings.sops_dir}", "Make one with: procedo new NAME")
    elif broken:
        yield Finding("procedures", PROBLEM, f"cannot be started: {', '.join(broken)}", "See: procedo check")
    elif warned:
        yield Finding(
            "procedures", WARNING, f"{len(entries)} load, with remarks on {', '.join(warned)}", "See: procedo check"
        )
    else:
        yield Finding("procedures", OK, f"{len(entries)} load without a problem")


def routes(settings: "Settings") -> Iterator[Finding]:
    """Whether people can be told about gates."""
    from procedo.notices.delivery import Delivery
    from procedo.notices.means import Means

    means = Means(os.environ, settings.root, lambda: datetime.now(UTC))
    objections = Delivery(settings.notices, means).objections()
    used = settings.notices.routing.named(settings.policies.values())
    for name, route in settings.notices.routes.items():
        if name in objections:
            yield Finding("notices", WARNING, f"{name!r} cannot be delivered: {objections[name]}", GATES_WAIT)
        elif name not in used:
            hint = f'Name it: request_route = "{name}" in [sop.approval], a group or a policy.'
            yield Finding("notices", WARNING, f"{name!r} is named by nothing, so nobody is told over it", hint)
        else:
            yield Finding("notices", OK, f"{name!r} ({route.type})")

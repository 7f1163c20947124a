"""Notices to a program: JSON on its standard input, no shell, only the variables that are named, a time limit."""

import json
from pathlib import Path
from typing import Final

from procedo.capabilities.shell_exec import located, shell_exec
from procedo.config.capability_settings import ShellSettings
from procedo.config.notices import NoticeRoute
from procedo.core.display import line
from procedo.credential_shapes import masked_text
from procedo.errors import Refused
from procedo.notices.means import Means
from procedo.ports import CapabilityCall, Notice, OutcomeUnknown, Undelivered

__all__ = ["objection", "send"]

_OUTPUT_BYTES: Final = 16_384


def _settings(route: NoticeRoute, root: Path) -> ShellSettings:
    return ShellSettings(
        root=root,
        cwd=root,
        enabled=True,
        allowed_commands=frozenset(route.argv[:1]),
        env=route.env,
        timeout_s=route.timeout_s,
        max_output_bytes=_OUTPUT_BYTES,
    )


def objection(route: NoticeRoute, means: Means) -> str | None:
    """Why nothing can be sent as things stand, or None."""
    if (why := shell_exec(_settings(route, means.root), means.environ).objection) is not None:
        return why
    return None if located(route.argv[0], means.environ) else f"there is no program {route.argv[0]!r}"


async def send(route: NoticeRoute, notice: Notice, means: Means) -> None:
    """Run the program with a notice. Raises `Undelivered`."""
    run = shell_exec(_settings(route, means.root), means.environ).run
    stdin = json.dumps(notice.data, ensure_ascii=False) + "\n"
    try:
        await run(CapabilityCall({"argv": [*route.argv], "stdin": stdin, "idempotent": True}, "", "", notice.id))
    except (Refused, OutcomeUnknown) as error:
        raise Undelivered(line(masked_text(str(error)))) from error

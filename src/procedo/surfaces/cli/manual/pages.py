"""The table of reference pages, and how they are written into a folder."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from procedo.errors import BadArgument
from procedo.surfaces.cli.manual.files_pages import capabilities_page, checks_page, config_page, procedures_page
from procedo.surfaces.cli.manual.markdown import code, page, table
from procedo.surfaces.cli.manual.program_pages import commands_page, environment_page, errors_page, events_page
from procedo.surfaces.cli.manual.telemetry_page import telemetry_page
from procedo.surfaces.cli.manual.tools_page import tools_page

__all__ = ["PAGES", "index_page", "made", "write"]

PAGES: Final[Mapping[str, tuple[str, Callable[[], str]]]] = MappingProxyType(
    {
        "procedures": ("keys of `SOP.toml`, fields and bullets of steps, triggers", procedures_page),
        "config": ("keys of `procedo.toml`", config_page),
        "checks": ("problem codes, each with an example and a remedy", checks_page),
        "capabilities": ("work that the server does itself, built-in tools of agents", capabilities_page),
        "tools": ("MCP tools and resources: arguments, results, examples", tools_page),
        "commands": ("verbs, options, exit codes", commands_page),
        "errors": ("error codes, and the answer at each door", errors_page),
        "events": ("lines of the record", events_page),
        "telemetry": ("metrics, spans, log lines", telemetry_page),
        "environment": ("environment variables", environment_page),
    }
)
"""What each page is about, and what makes it."""

_NOTE: Final = "<!-- Made by `procedo manual --all DIR` from the code; changes belong there. -->\n"


def index_page() -> str:
    """The page that leads to the others."""
    rows = ((f"[{name}]({name}.md)", about) for name, (about, _) in PAGES.items())
    return page(
        "Reference",
        "What everything is called and takes, made from the code by `procedo manual --all DIR`; one page alone is "
        "printed by `procedo manual PAGE`.",
        table(("page", "has"), rows),
        f"Editors complete and check the files with the schemas that {code('procedo schema')} prints.",
    )


def made() -> Mapping[str, str]:
    """Every page by its file name."""
    pages = {f"{name}.md": _NOTE + make() for name, (_, make) in PAGES.items()}
    return {"README.md": _NOTE + index_page(), **pages}


def write(folder: Path) -> tuple[str, ...]:
    """Write every page into the folder, which is made; other files there are left. Raises `BadArgument`."""
    pages = made()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        message = f"{folder} cannot be written: {error.strerror}."
        raise BadArgument("not_writable", message, "Name a folder that you may write to.") from error
    return tuple(pages)

"""Lists the procedures of the workspace; a broken one is listed with its problems. Filters look at their own field."""

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from procedo.core.model import Mode, Priority
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.library import opened

if TYPE_CHECKING:
    from procedo.surfaces.shapes import CatalogueEntry

EXAMPLES = ("procedo list", "procedo list --priority high", "procedo list --json")


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("--priority", choices=[str(word) for word in Priority], help="only of this priority")
    parser.add_argument("--mode", choices=[str(word) for word in Mode], help="only of this mode")
    parser.add_argument("--broken", action="store_true", help="only those that cannot be started")


def _wanted(call: Call, entry: "CatalogueEntry") -> bool:
    return (
        call["priority"] in {None, entry.get("priority")}
        and call["mode"] in {None, entry.get("mode")}
        and not (call["broken"] and entry["startable"])
    )


def _show(call: Call, entry: "CatalogueEntry", width: int) -> None:
    out = call.output
    name = entry["name"].ljust(width)
    if entry["startable"]:
        about = f"{entry.get('description', '')}"
        out.line(f"{out.style('bold', name)}  {about}")
        facts = [f"version {entry['version']}"] if "version" in entry else []
        facts += [f"priority {entry['priority']}"] if "priority" in entry else []
        facts += [f"mode {entry['mode']}"] if "mode" in entry else []
        facts += [f"{entry['steps']} steps"] if "steps" in entry else []
        facts += [f"inputs {', '.join(entry['inputs'])}"] if entry.get("inputs") else []
        out.line(f"{' ' * width}  {out.style('dim', ', '.join(facts))}")
    else:
        out.line(f"{out.style('red', name)}  cannot be started")
    for problem in entry.get("problems", ()):
        out.line(f"{' ' * width}  {problem}")


def run(call: Call) -> int:
    """List."""
    from procedo.surfaces.catalogue import catalogue_view

    library, settings = opened(call)
    view = catalogue_view(settings.sops_dir, library.entries(), settings)
    every = view["sops"]
    view["sops"] = [entry for entry in every if _wanted(call, entry)]
    if every and not view["sops"]:
        view["note"] = f"None of the {len(every)} procedures fits."
    if call.json:
        call.output.value(view)
        return 0
    width = max((len(entry["name"]) for entry in view["sops"]), default=0)
    for entry in view["sops"]:
        _show(call, entry, width)
    if "note" in view:
        call.output.line(f"{view['folder']}: {view['note']}")
    return 0

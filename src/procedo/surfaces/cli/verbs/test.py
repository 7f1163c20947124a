"""Rehearses a procedure with scripted reports and answers, and compares what comes of it with what is expected.

No model is called and nothing acts outside: the engine is the real one, the store is in memory, time jumps. Scripts
are `tests.toml` and `*.test.toml` beside the procedure, or named with `--script`. Exit code 1 when a case fails.

A script, in which steps are named by number or id:

  [[case]]
  name = "filled after a yes"
  inputs = { tank = "A" }
  reports = [ { step = 1, output = { level = 3 } }, { step = 2, status = "failed", output = "valve stuck" } ]
  gates = [ { step = 2, answer = "approve", by = "ida" } ]
  expect = { status = "failed", path = [1, 2], gates = [2], reason = "valve" }

`late = true` in a report or answer lets its time run out; `expect` may also have `output` and `outputs`. A report
of a step that would act outside is taken for its result.
"""

import asyncio
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from procedo.core.altered import altered
from procedo.errors import InvalidSop, NotFound
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.library import chosen

if TYPE_CHECKING:
    from procedo.config import Settings
    from procedo.rehearsal import Branch, Played
    from procedo.sopfile import Entry

EXAMPLES = (
    "procedo test",
    "procedo test ship-release",
    "procedo test ship-release --script late.test.toml",
    "procedo test --coverage 100",
)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("what", metavar="NAME|PATH", nargs="*", help="procedures (default: all that have a script)")
    parser.add_argument("--script", metavar="FILE", type=Path, help="the script, for one procedure")
    parser.add_argument("--coverage", metavar="PCT", type=float, help="fail when fewer branches are walked, in percent")


def _scripts(call: Call, entry: "Entry") -> list[Path]:
    if call["script"] is not None:
        return [(call.cwd / call["script"]).resolve()]
    if "SOP.toml" not in entry.files:
        # A single-file procedure may share its folder with others; only a script of its own name is its own.
        own = entry.folder / f"{entry.name}.test.toml"
        return [own] if own.exists() else []
    tests = entry.folder / "tests.toml"
    beside = sorted(entry.folder.glob("*.test.toml"))
    return [tests, *beside] if tests.exists() else beside


async def _rehearse(settings: "Settings", entry: "Entry", scripts: Sequence[Path]) -> list[dict[str, Any]]:
    from procedo.rehearsal import play, read_script

    stage = altered(settings, sops_dir=entry.folder.parent)
    results: list[dict[str, Any]] = []
    for script in scripts:
        for case in read_script(script):
            results.append({"script": script, "played": await play(stage, entry.name, case)})
    return results


def _walked(settings: "Settings", entry: "Entry", played: Sequence["Played"]) -> "tuple[list[Branch], list[Branch]]":
    """Every branch of the procedure, and those that no case took."""
    from procedo.rehearsal import declared

    if entry.sop is None:
        raise InvalidSop(
            "invalid_sop", f"{entry.name!r} cannot be used.", "See: procedo check", [*map(str, entry.problems)]
        )
    every = declared(entry.sop, entry.sop.mode or settings.default_mode)
    return sorted(every), sorted(every.difference(*(one.branches for one in played)))


def _value(
    entry: "Entry", results: Sequence[dict[str, Any]], every: Sequence[Any], missing: Sequence[Any]
) -> dict[str, Any]:
    return {
        "name": entry.name,
        "cases": [
            {
                "script": str(result["script"]),
                "name": result["played"].case.name,
                "ok": not result["played"].failures,
                "failures": list(result["played"].failures),
            }
            for result in results
        ],
        "branches": {"all": len(every), "walked": len(every) - len(missing), "missing": [str(one) for one in missing]},
    }


def _show(call: Call, value: dict[str, Any]) -> None:
    out = call.output
    out.line(out.style("bold", value["name"]))
    for case in value["cases"]:
        out.line(f"  {out.style('green', 'ok    ') if case['ok'] else out.style('red', 'failed')}  {case['name']}")
        for failure in case["failures"]:
            out.line(f"          {failure}")
    branches = value["branches"]
    out.line(f"  {branches['walked']} of {branches['all']} branches walked")
    for missing in branches["missing"]:
        out.line(f"    {out.style('dim', 'not walked:')} {missing}")


def _passed(call: Call, values: Sequence[dict[str, Any]]) -> bool:
    wanted = call["coverage"] or 0.0
    return all(
        all(case["ok"] for case in value["cases"])
        and 100 * value["branches"]["walked"] >= wanted * value["branches"]["all"]
        for value in values
    )


def run(call: Call) -> int:
    """Rehearse."""
    entries, settings = chosen(call, call["what"])
    with_scripts = [(entry, scripts) for entry in entries if (scripts := _scripts(call, entry))]
    if call["what"] and len(with_scripts) < len(entries):
        lacking = next(entry for entry in entries if not _scripts(call, entry))
        hint = "Put a tests.toml beside it, or name a file with --script."
        raise NotFound("no_script", f"There is no script for {lacking.name!r} in {lacking.folder}.", hint)
    values = []
    for entry, scripts in with_scripts:
        results = asyncio.run(_rehearse(settings, entry, scripts))
        every, missing = _walked(settings, entry, [result["played"] for result in results])
        values.append(_value(entry, results, every, missing))
    passed = _passed(call, values)
    if call.json:
        call.output.value({"ok": passed, "procedures": values})
    else:
        for value in values:
            _show(call, value)
        call.output.line(_summary(values, entries, passed=passed))
    return 0 if passed else 1


def _summary(values: Sequence[dict[str, Any]], entries: Sequence["Entry"], *, passed: bool) -> str:
    """The last line. Where nothing was rehearsed, nothing was as expected either."""
    if not entries:
        return "There is no procedure here to rehearse. Make one: procedo new NAME"
    if not values:
        first = entries[0]
        place = first.folder / ("tests.toml" if "SOP.toml" in first.files else f"{first.name}.test.toml")
        return (
            f"Nothing to rehearse: no procedure here has a script. Write one, such as {place}:\n"
            '\n[[case]]\nname = "it goes to its end"\nreports = [{ step = 1, output = "done" }]\n'
            'expect = { status = "completed", path = [1] }\n'
            "\nprocedo test --help tells what a script may say."
        )
    cases = sum(len(value["cases"]) for value in values)
    of = f"{cases} case{'' if cases == 1 else 's'} of {len(values)} procedure{'' if len(values) == 1 else 's'}"
    return f"{of}: {'all as expected' if passed else 'not as expected'}."

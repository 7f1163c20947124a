"""Every problem code has an example that has that problem, and a remedy; this is what the reference shows."""

from pathlib import Path

import pytest
from definitions import HEADER, problems_of, surroundings

from procedo.capabilities.registry import built_in
from procedo.config import load
from procedo.core.altered import altered
from procedo.core.approval import Policy
from procedo.sopfile import CODES, Surroundings
from procedo.sopfile.remedies import REMEDIES, Remedy

SHOWN = {code: remedy for code, remedy in REMEDIES.items() if remedy.place != "files"}
PLAIN = "1. **Load**\n2. **Fire**\n3. **Cool**\n"
HELD = {"smith": {"pump"}, "retired": {"valve"}}
PAIR = Policy("pair", frozenset({"ida"}), "pair", 2)


def around(tmp_path: Path, code: str) -> Surroundings:
    """A workspace with agents and policies; nothing outward is on, except where the problem is about that."""
    if code == "ungated-effect":
        (tmp_path / "procedo.toml").write_text('[capabilities.http]\nallowed_hosts = ["example.org"]\n')
    policies = [PAIR, Policy("nightly", auto_approve=True)]
    found = surroundings(agents=["host", *HELD], policies=policies, sops=("refund", "mailing"))
    return altered(
        found,
        capabilities=built_in(load(tmp_path).capabilities, {}),
        break_glass=frozenset({"noor"} if code == "break-glass-policy" else ()),
        tools=frozenset({"pump", "valve"}) if code == "unknown-tool" else None,
        holds=lambda agent, tool: tool in HELD.get(agent, ()),
        disabled=frozenset({"retired"}),
    )


def texts(remedy: Remedy) -> dict[str, str]:
    """The definition with the example in it."""
    header = HEADER.replace("kiln-firing", "refund") + 'execution_mode = "auto"\n'
    match remedy.place:
        case "header":
            return {"SOP.toml": f"{header}{remedy.example}\n", "SOP.md": f"## Steps\n\n{PLAIN}"}
        case "bullets":
            bullets = "\n".join(
                f"   {line}" if line.startswith(" ") else f"   - {line}" for line in remedy.example.splitlines()
            )
            return {"SOP.toml": header, "SOP.md": f"## Steps\n\n1. **Load**\n{bullets}\n2. **Fire**\n3. **Cool**\n"}
        case _:
            return {"SOP.toml": header, "SOP.md": f"## Steps\n\n{remedy.example}\n"}


def test_every_code_has_a_remedy_and_no_other_has() -> None:
    assert sorted(REMEDIES) == sorted(CODES)
    assert [code for code, remedy in REMEDIES.items() if not (remedy.example and remedy.remedy.endswith("."))] == []


@pytest.mark.parametrize("code", SHOWN)
def test_the_example_of_a_code_has_that_problem(tmp_path: Path, code: str) -> None:
    found = {problem.code for problem in problems_of(texts(SHOWN[code]), around(tmp_path, code))}
    assert code in found, found

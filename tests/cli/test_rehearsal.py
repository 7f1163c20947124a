from pathlib import Path

import pytest
from commands import Workspace

STEPS = """\
1. **Measure** — Measure the level.
   - id: measure
   - output: {"type": "object", "required": ["level"], "properties": {"level": {"type": "integer"}}}
   - switch: low>$.steps.1.level < 10>2; high>>3
2. **Fill** — Fill it up.
   - requires_confirmation: true
   - on_failure: retry:1
   - terminal: true
3. **Alarm** — Ring.
"""
GOOD = """\
[[case]]
name = "a low level is filled after a yes"
inputs = { tank = "A" }
reports = [
  { step = "measure", output = { level = 3 } },
  { step = 2, status = "failed", output = "valve stuck" },
  { step = 2, output = "filled" },
]
gates = [ { step = 2, answer = "approve" }, { step = 2, answer = "approve" } ]
expect = { status = "completed", path = [1, 2, "2.2"], gates = [2, 2], outputs = { measure = { level = 3 } } }

[[case]]
name = "a low level that nobody wants filled ends the run"
reports = [ { step = 1, output = { level = 3 } } ]
gates = [ { step = 2, answer = "deny", comment = "not today" } ]
expect = { status = "cancelled", path = [1], reason = "not today" }

[[case]]
name = "a high level rings"
reports = [ { step = 1, output = { level = 30 } }, { step = 3, status = "failed", output = "no bell" } ]
expect = { status = "failed", path = ["measure", 3], gates = [], reason = "no bell" }
"""


@pytest.fixture
def tank(workspace: Workspace) -> Workspace:
    """A workspace with a procedure that branches."""
    workspace.simple("tank", STEPS)
    return workspace


def script(workspace: Workspace, text: str, name: str = "tests.toml") -> Path:
    file = workspace.root / "sops" / "tank" / name
    file.write_text(text, encoding="utf-8")
    return file


def failures(workspace: Workspace, case: str) -> list[str]:
    script(workspace, f'[[case]]\nname = "c"\n{case}')
    done = workspace.run("test", "tank", "--json")
    assert done.code in {0, 1}, done.err
    found: list[str] = done.value["procedures"][0]["cases"][0]["failures"]
    assert done.value["ok"] is (found == [])
    assert done.code == (1 if found else 0)
    return found


def test_cases_that_come_out_as_expected_pass(tank: Workspace) -> None:
    script(tank, GOOD)
    done = tank.run("test", "tank")
    assert (done.code, done.err) == (0, ""), done.out
    assert done.out == (
        "tank\n"
        "  ok      a low level is filled after a yes\n"
        "  ok      a low level that nobody wants filled ends the run\n"
        "  ok      a high level rings\n"
        "  5 of 6 branches walked\n"
        "    not walked: step 3: done\n"
        "3 cases of 1 procedure: all as expected.\n"
    )


def test_coverage_can_be_demanded(tank: Workspace) -> None:
    script(tank, GOOD)
    assert tank.run("test", "tank", "--coverage", "80").code == 0
    assert tank.run("test", "tank", "--coverage", "100").code == 1


LOW = "reports = [ { step = 1, output = { level = 3 } } ]\n"
HIGH = 'reports = [ { step = 1, output = { level = 30 } }, { step = 3, output = "rang" } ]\n'


@pytest.mark.parametrize(
    ("case", "told"),
    [
        (HIGH + 'expect = { status = "failed" }', ["status: expected failed; was completed"]),
        (HIGH + "expect = { path = [1, 2] }", ["path: expected 1, 2; was 1.1, 3.1"]),
        (HIGH + "expect = { gates = [2] }", ["gates: expected at 2; were at none"]),
        (HIGH + 'expect = { output = "silent" }', ['output: expected "silent"; was "rang"']),
        (HIGH + 'expect = { outputs = { 3 = "x", 2 = 1 } }', [
            'output of step 3: expected "x"; was "rang"',
            "output of step 2: expected 1; it has none",
        ]),
        (HIGH + 'expect = { reason = "bell" }', ["reason: expected to contain 'bell'; was ''"]),
        (LOW + 'expect = { status = "completed" }', ["step 2 'Fill' has no gate answer left in the script"]),
        (
            LOW + 'gates = [ { step = 2 } ]\nexpect = { status = "completed" }',
            ["step 2 'Fill' has no report left in the script"],
        ),
        (
            HIGH + 'gates = [ { step = 2 } ]\nexpect = { status = "completed" }',
            ["the gate answer of step 2 was never asked for"],
        ),
        (
            'reports = [ { step = 1, late = true } ]\nexpect = { status = "failed" }',
            ["step 1 has no time limit, so nothing can be late there"],
        ),
    ],
)  # fmt: skip
def test_what_is_not_as_expected_is_told(tank: Workspace, case: str, told: list[str]) -> None:
    assert failures(tank, case) == told


def test_the_positive_control_of_those_cases(tank: Workspace) -> None:
    expect = 'expect = { status = "completed", path = [1, 3], gates = [], output = "rang", outputs = { 3 = "rang" } }'
    assert failures(tank, HIGH + expect) == []


def test_a_script_with_mistakes_tells_them_all(tank: Workspace) -> None:
    file = script(
        tank,
        '[[case]]\nname = "c"\nreport = []\nreports = [ { output = 1 }, { step = 1, status = "done" } ]\n'
        'gates = [ { step = 2, answer = "yes" } ]\nexpect = { pth = [1] }\n',
    )
    done = tank.run("test", "tank", "--json")
    assert done.code == 1
    assert done.error["problems"] == [
        f"{file}:3: case 'c': unknown key 'report' (did you mean 'reports'?)",
        f"{file}:4: case 'c', reports 1: there is no step (write step = 3, or step = \"its-id\")",
        f"{file}:4: case 'c', reports 2: status 'done' is no known word (one of completed, failed, skipped)",
        f"{file}:5: case 'c', gates 1: answer 'yes' is no known word "
        "(one of approve, deny, amend, revise, repeat, skip, fail, retract)",
        f"{file}:6: case 'c', expect: unknown key 'pth' (did you mean 'path'?)",
    ]


def test_a_byte_order_mark_is_no_part_of_a_script(tank: Workspace) -> None:
    script(tank, "\ufeff" + GOOD)
    assert tank.run("test", "tank").code == 0


def test_a_name_that_stands_twice_is_told_at_the_second(tank: Workspace) -> None:
    file = script(tank, '[[case]]\nname = "c"\nexpect.status = "failed"\n' * 2)
    assert tank.run("test", "tank", "--json").error["problems"] == [f"{file}:5: case 'c': the name stands twice"]


def test_a_script_that_is_no_toml_is_told_with_its_line(tank: Workspace) -> None:
    file = script(tank, '[[case]]\nname = "c\n')
    assert f"{file}:2 is no TOML: " in tank.run("test", "tank").err


def test_without_a_script_it_says_how_to_write_one_and_that_one_works(tank: Workspace) -> None:
    done = tank.run("test")
    assert done.code == 0
    assert "as expected" not in done.out
    place = tank.root / "sops" / "tank" / "tests.toml"
    assert done.out.startswith(f"Nothing to rehearse: no procedure here has a script. Write one, such as {place}:")
    _, example, help_line = done.out.split("\n\n", 2)
    tank.simple("one", "1. **Say** — Say it.\n")
    (tank.root / "sops" / "one" / "tests.toml").write_text(example, encoding="utf-8")
    assert tank.run("test").out.endswith("1 case of 1 procedure: all as expected.\n")
    assert help_line == "procedo test --help tells what a script may say.\n"


def test_without_a_procedure_there_is_nothing_to_rehearse(workspace: Workspace) -> None:
    done = workspace.run("test")
    assert (done.code, done.out) == (0, "There is no procedure here to rehearse. Make one: procedo new NAME\n")


def test_a_case_that_expects_nothing_is_none(tank: Workspace) -> None:
    script(tank, '[[case]]\nname = "c"\n')
    assert tank.run("test", "tank").code == 1


def test_every_script_beside_a_procedure_is_played(tank: Workspace) -> None:
    script(tank, GOOD)
    script(tank, f'[[case]]\nname = "more"\n{HIGH}expect = {{ status = "completed" }}', "more.test.toml")
    value = tank.json("test")
    assert len(value["procedures"][0]["cases"]) == 4
    assert value["procedures"][0]["branches"]["missing"] == []
    assert tank.json("check", "tank")["counts"] == {"error": 0, "warning": 0, "note": 0}


def test_a_script_can_lie_elsewhere(tank: Workspace) -> None:
    file = tank.root / "elsewhere.toml"
    file.write_text(GOOD, encoding="utf-8")
    assert tank.run("test", "tank", "--script", str(file)).code == 0
    missing = tank.run("test", "tank", "--script", str(tank.root / "nowhere.toml"), "--json")
    assert missing.code == 2


def test_a_procedure_without_a_script_is_told(tank: Workspace) -> None:
    done = tank.run("test", "tank", "--json")
    assert done.code == 4
    assert done.error["code"] == "no_script"


def test_a_rehearsal_leaves_no_trace(tank: Workspace) -> None:
    script(tank, GOOD)
    before = sorted(str(file) for file in tank.root.rglob("*"))
    assert tank.run("test").code == 0
    assert sorted(str(file) for file in tank.root.rglob("*")) == before


def test_what_would_act_outside_is_played_and_time_jumps(workspace: Workspace) -> None:
    (workspace.root / "procedo.toml").write_text(
        '[capabilities.http]\nallowed_hosts = ["api.invalid"]\n', encoding="utf-8"
    )
    workspace.simple(
        "tank",
        """\
1. **Ask** — Ask.
   - kind: capability
   - capability: http.request
   - with: {"url": "https://api.invalid/level", "method": "GET"}
2. **Wait** — Wait.
   - wait: 3h
3. **Report** — Tell.
   - timeout: 1h
""",
    )
    case = (
        'reports = [ { step = 1, output = { status = 200, headers = {}, body = "7" } }, { step = 3, late = true } ]\n'
        'expect = { status = "failed", path = [1, 2, 3], reason = "exceeded" }'
    )
    assert failures(workspace, case) == []

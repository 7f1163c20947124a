from collections.abc import Callable
from pathlib import Path

import pytest

from procedo.config import KEYS, Settings, load, reference
from procedo.config.capability_settings import CapabilitySettings, HttpSettings, ShellSettings
from procedo.config.keys import default
from procedo.core.admission import Limits
from procedo.core.altered import altered
from procedo.core.approval import HUMAN, OnExpiry, Policy
from procedo.core.model import Mode
from procedo.errors import InvalidConfig
from procedo.hosts import HostPattern

Load = Callable[[str], Settings]

EVERYTHING = """\
[procedo]
host_agent = "desk"

[sop]
sops_dir = "procedures"
default_execution_mode = "auto"
max_concurrent_total = 9
max_value_bytes = 1000
max_step_visits = 7

[sop.approval]
default_policy = "careful"

[sop.approval.groups.pharmacists]
members = ["ida", "cli:noor"]

[sop.approval.policies.release]
required_group = "pharmacists"
quorum = 2
distinct_from = ["starter"]
timeout = "2h"
on_timeout = "remind"
max_reminders = 5
agents = ["checker"]
out_of_band = true

[sop.approval.policies.careful]
distinct_from = ["starter"]

[capabilities.http]
allowed_hosts = ["api.example.com", "*.example.org", "localhost:8080"]
timeout = 12
max_bytes = 2000

[capabilities.shell]
enabled = true
allowed_commands = ["git", "/usr/bin/make"]
env = ["PATH", "LANG"]
timeout = "90s"
max_output_bytes = 3000
cwd = "work"

[worker]
lease = 20
"""


@pytest.fixture
def loaded(tmp_path: Path) -> Load:
    """Settings of a workspace with this `procedo.toml`."""

    def read(text: str) -> Settings:
        (tmp_path / "procedo.toml").write_text(text, encoding="utf-8")
        return load(tmp_path)

    return read


@pytest.fixture
def problems(loaded: Load) -> Callable[[str], tuple[str, ...]]:
    """The problems of this `procedo.toml`."""

    def read(text: str) -> tuple[str, ...]:
        with pytest.raises(InvalidConfig) as caught:
            loaded(text)
        return tuple(caught.value.problems)

    return read


Problems = Callable[[str], tuple[str, ...]]


def test_a_byte_order_mark_is_no_part_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "procedo.toml").write_text('[procedo]\nhost_agent = "desk"\n', encoding="utf-8-sig")
    assert load(tmp_path).host_agent == "desk"


def test_without_a_file_every_default_holds(tmp_path: Path) -> None:
    root = tmp_path.resolve()

    assert load(tmp_path) == Settings(
        root=root,
        sops_dir=root / "sops",
        data_dir=root / ".procedo",
        capabilities=CapabilitySettings(ShellSettings(root, root), HttpSettings()),
        host_agent="host",
        default_mode=Mode.SUPERVISED,
        limits=Limits(total=4, visits=256),
        max_value_bytes=65536,
        policies={"human": HUMAN},
        default_policy=HUMAN,
        lease_s=10.0,
    )


def test_an_empty_file_says_nothing(loaded: Load, tmp_path: Path) -> None:
    empty = loaded("# nothing yet\n")

    (tmp_path / "procedo.toml").unlink()
    assert empty == load(tmp_path)


def test_every_key_reaches_its_setting(loaded: Load, tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "work").mkdir()
    release = Policy(
        name="release",
        members=frozenset({"ida", "cli:noor"}),
        group="pharmacists",
        quorum=2,
        distinct_from=("starter",),
        timeout_s=7200.0,
        on_expiry=OnExpiry.REMIND,
        reminders=5,
        agents=frozenset({"checker"}),
        out_of_band=True,
    )

    careful = Policy("careful", distinct_from=("starter",))
    assert loaded(EVERYTHING) == Settings(
        root=root,
        sops_dir=root / "procedures",
        data_dir=root / ".procedo",
        capabilities=CapabilitySettings(
            ShellSettings(
                root, root / "work", True, frozenset({"git", "/usr/bin/make"}), frozenset({"PATH", "LANG"}), 90.0, 3000
            ),
            HttpSettings(
                (
                    HostPattern("api.example.com"),
                    HostPattern("example.org", subdomains=True),
                    HostPattern("localhost", port=8080),
                ),
                12.0,
                2000,
            ),
        ),
        host_agent="desk",
        default_mode=Mode.AUTO,
        limits=Limits(total=9, visits=7),
        max_value_bytes=1000,
        policies={"human": HUMAN, "release": release, "careful": careful},
        default_policy=careful,
        lease_s=20.0,
    )


def test_settings_cannot_be_changed(loaded: Load) -> None:
    settings = loaded("")

    with pytest.raises(AttributeError):
        settings.host_agent = "other"  # type: ignore[misc]  # what is tested
    with pytest.raises(TypeError):
        settings.policies["x"] = HUMAN  # type: ignore[index]  # what is tested


@pytest.mark.parametrize(("text", "folder"), [("/abs/sops", "/abs/sops"), ("~/sops", "home/sops"), ("../x", "../x")])
def test_procedures_may_lie_anywhere(
    loaded: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, folder: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert loaded(f'[sop]\nsops_dir = "{text}"\n').sops_dir == (tmp_path / folder).resolve()


@pytest.mark.requirement("C14")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[sop]\n\nmax_concurent_total = 3\n",
            "procedo.toml:3: error[unknown-key]: unknown key 'max_concurent_total' in [sop]"
            " (did you mean 'max_concurrent_total'?)",
        ),
        (
            "[sop]\nhost_agent = 'x'\n",
            "procedo.toml:2: error[unknown-key]: unknown key 'host_agent' in [sop] (it belongs in [procedo])",
        ),
        (
            "[policies.two]\nquorum = 2\n",
            "procedo.toml:1: error[unknown-key]: unknown key 'policies' at the top of the file"
            " (write it as [sop.approval.policies])",
        ),
        (
            "[sop.mcp_bundles.desk]\nservers = []\n",
            "procedo.toml:1: error[unknown-key]: unknown key 'mcp_bundles' in [sop] (known here: ",
        ),
        (
            "\n[sops]\nx = 1\n",
            "procedo.toml:2: error[unknown-key]: unknown key 'sops' at the top of the file (did you mean 'sop'?)",
        ),
        (
            "[metrics]\n",
            "procedo.toml:1: error[unknown-key]: unknown key 'metrics' at the top of the file"
            " (known here: ",
        ),
        (
            "[sop]\nmax_concurrent_total = '4'\n",
            "procedo.toml:2: error[bad-value]: sop.max_concurrent_total = '4' cannot be used"
            " (expected a whole number from 1 to 10000)",
        ),
        (
            "[sop]\nmax_step_visits = true\n",
            "procedo.toml:2: error[bad-value]: sop.max_step_visits = True cannot be used"
            " (expected a whole number from 1 to 1000000)",
        ),
        (
            "[sop]\ndefault_execution_mode = 'autp'\n",
            "procedo.toml:2: error[bad-value]: sop.default_execution_mode = 'autp' cannot be used (expected one of"
            " auto, supervised, step_by_step, priority_based, deterministic; did you mean 'auto'?)",
        ),
        (
            "[procedo]\nhost_agent = ' '\n",
            "procedo.toml:2: error[bad-value]: procedo.host_agent = ' ' cannot be used"
            " (expected text that is not blank; leave the key out for the default)",
        ),
        (
            "sop = 5\n",
            "procedo.toml:1: error[wrong-type]: 'sop' has to be a table, got a number"
            " (write it as a table of its own: [sop])",
        ),
        (
            "[sop.approval.groups]\ng = ['ida']\n",
            "procedo.toml:2: error[wrong-type]: 'g' has to be a table, got a list"
            " (write it as a table of its own: [sop.approval.groups.g])",
        ),
        (
            "[sop.approval.groups.g]\n",
            "procedo.toml:1: error[missing-key]: [sop.approval.groups.g] lacks 'members'"
            " (add members",
        ),
        (
            "[worker]\nlease = '1 fortnight'\n",
            "procedo.toml:2: error[bad-value]: worker.lease = '1 fortnight' cannot be used"
            ' (expected a number with a unit (ms, s, m, h, d) such as "30s", "15m", "1h30m")',
        ),
        (
            "[worker]\nlease = 0\n",
            "procedo.toml:2: error[bad-value]: worker.lease = 0 cannot be used"
            " (expected a time from 1 to 3600 seconds)",
        ),
        (
            "a = = 1\n",
            "procedo.toml:1: error[syntax]: this is no TOML: Invalid value (see https://toml.io for the syntax)",
        ),
    ],
)  # fmt: skip
def test_a_wrong_key_or_value_is_told_with_its_line_and_what_would_be_right(
    problems: Problems, text: str, expected: str
) -> None:
    (problem,) = problems(text)

    assert problem.startswith(expected)


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("word", ["approve", "auto_approve", "accept"])
def test_no_policy_approves_by_silence(problems: Problems, loaded: Load, word: str) -> None:
    text = "[sop.approval.policies.p]\ntimeout = 60\non_timeout = '{}'\n"

    (problem,) = problems(text.format(word))
    assert problem.startswith("procedo.toml:3: error[bad-value]")
    assert "silence is no approval" in problem

    assert loaded(text.format("deny")).policies["p"].on_expiry is OnExpiry.DENY


def test_every_problem_of_a_file_is_told_at_once_in_the_order_of_its_lines(problems: Problems) -> None:
    text = """\
[worker]
lease = -1
[sop]
sops_dirr = "x"
[sop.approval]
default_policy = "absent"
[sop.approval.policies.p]
required_group = "absent"
on_timeout = "approve"
quorum = "two"
[capabilities.shell]
cwd = "../.."
enabled = 1
[capabilities.http]
allowed_hosts = ["*"]
"""

    assert [problem.split(":")[1] for problem in problems(text)] == ["2", "4", "6", "8", "9", "10", "12", "13", "15"]


def test_the_error_itself_names_the_file_and_the_first_problem(loaded: Load, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig) as caught:
        loaded("[sop]\nx = 1\ny = 2\n")

    path = tmp_path.resolve() / "procedo.toml"
    assert str(caught.value).startswith(f"{path} has 2 problems, the first is procedo.toml:2: error[unknown-key]")
    assert caught.value.code == "invalid_config"


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ('required_group = "pharmacist"\n', "error[unknown-group]: policy 'p' requires the group 'pharmacist'"),
        (
            'required_group = "pharmacists"\nquorum = 3\n',
            "procedo.toml:5: error[unsatisfiable-policy]: policy 'p' is unsatisfiable: its quorum is 3, and 2 may"
            " decide (group 'pharmacists': ida, noor)",
        ),
        ('required_group = "nobody"\n', "its quorum is 1, and 0 may decide (group 'nobody': nobody)"),
        ('on_timeout = "deny"\n', "error[idle-key]: on_timeout of policy 'p' has no effect"),
        ("max_reminders = 1\n", "error[idle-key]: max_reminders of policy 'p' has no effect"),
        ('distinct_from = ["executer"]\n', "did you mean 'executor'?"),
        ('auto_approve = "timeout"\n', "expected true or false"),
        ("auto_approve = true\n", "error[auto-approve-default]: default_policy names 'p', which approves by itself"),
        ('agents = ["bot"]\n', "error[agents-default]: default_policy names 'p', by which an agent decides"),
        ('agents = ["smtp:bot"]\n', "one of the doors host, cli, web, http"),
        ("quorum = -1\n", "expected a whole number from 0 to 1000"),
    ],
)
def test_a_policy_that_cannot_work_is_a_problem(problems: Problems, policy: str, told: str) -> None:
    groups = (
        '\n[sop.approval.groups.pharmacists]\nmembers = ["Ida", "cli:ida", "noor"]\n'
        "[sop.approval.groups.nobody]\nmembers = []\n"
    )

    (problem,) = problems(f"[sop.approval]\ndefault_policy = 'p'\n[sop.approval.policies.p]\n{policy}{groups}")

    assert told in problem


def test_agents_that_a_policy_names_count_for_its_quorum(loaded: Load) -> None:
    policy = loaded(
        '[sop.approval.groups.g]\nmembers = ["ida"]\n'
        '[sop.approval.policies.p]\nrequired_group = "g"\nquorum = 2\nagents = ["checker"]\n'
    ).policies["p"]

    assert (policy.members, policy.agents, policy.quorum) == (frozenset({"ida"}), frozenset({"checker"}), 2)


def test_a_quorum_of_nought_means_one(loaded: Load) -> None:
    assert loaded("[sop.approval.policies.p]\nquorum = 0\n").policies["p"] == altered(HUMAN, name="p")


def test_a_group_with_a_bad_member_is_not_called_too_small_as_well(problems: Problems) -> None:
    text = '[sop.approval.groups.g]\nmembers = [""]\n[sop.approval.policies.p]\nrequired_group = "g"\n'

    (problem,) = problems(text)

    assert problem.startswith("procedo.toml:2: error[bad-value]")


def test_an_unknown_default_policy_is_a_problem_and_the_built_in_one_is_known(problems: Problems, loaded: Load) -> None:
    (problem,) = problems("[sop.approval]\ndefault_policy = 'humam'\n")

    assert "error[unknown-policy]" in problem
    assert "did you mean 'human'?" in problem
    assert loaded("[sop.approval]\ndefault_policy = 'human'\n").default_policy is HUMAN


def test_the_built_in_policy_cannot_be_replaced(problems: Problems) -> None:
    (problem,) = problems("[sop.approval.policies.human]\nquorum = 2\n")

    assert "error[reserved-name]: the policy 'human' is built in" in problem


@pytest.mark.parametrize(
    ("names", "code"), [(("Ops", "ops"), "name-collision"), (('"a b"',), "bad-name"), (('""',), "bad-name")]
)
def test_names_that_could_be_confused_are_problems(problems: Problems, names: tuple[str, ...], code: str) -> None:
    found = problems("".join(f'[sop.approval.groups.{name}]\nmembers = ["ida"]\n' for name in names))

    assert [code in problem for problem in found] == [True] * len(names)


@pytest.mark.parametrize(
    ("shell", "told"),
    [
        ("enabled = true\n", "error[no-commands]: shell.exec is enabled, but no command is allowed"),
        ('allowed_commands = ["git status"]\n', "expected the program alone, without arguments"),
        ('allowed_commands = ["bin/git"]\n', "expected a plain name, or an absolute path"),
        ('allowed_commands = ["git", "git"]\n', "expected each only once"),
        ('env = ["A=1"]\n', "expected the name of a variable"),
        ('cwd = ".."\n', "error[outside]"),
        ('cwd = "/"\n', "error[outside]"),
        ('cwd = "absent"\n', "error[no-folder]"),
        ("timeout = 0\n", "expected a time from 0.05"),
    ],
)
def test_settings_of_the_shell_that_cannot_work_are_problems(problems: Problems, shell: str, told: str) -> None:
    (problem,) = problems(f"[capabilities.shell]\n{shell}")

    assert told in problem


def test_a_link_out_of_the_workspace_is_no_place_for_commands(problems: Problems, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path.parent)

    assert "error[outside]" in problems('[capabilities.shell]\ncwd = "out"\n')[0]


def test_a_file_that_cannot_be_read_as_text_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "procedo.toml"
    for content, told in (
        (b"[sop]\n\xff = 1\n", "procedo.toml:2: error[encoding]"),
        (b"#" * 1_100_000, "error[too-large]"),
    ):
        path.write_bytes(content)
        with pytest.raises(InvalidConfig, match="has 1 problem:") as caught:
            load(tmp_path)
        assert told in caught.value.problems[0]


def test_a_folder_of_that_name_is_a_problem_instead_of_no_file(tmp_path: Path) -> None:
    (tmp_path / "procedo.toml").mkdir()

    with pytest.raises(InvalidConfig, match="unreadable"):
        load(tmp_path)


def test_endless_nesting_is_a_problem(problems: Problems) -> None:
    assert "nested too deeply" in problems(f"a = {'[' * 5000}{']' * 5000}\n")[0]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key.table}.{key.name}")
def test_every_default_has_the_form_of_its_key_and_every_key_is_documented(key: object) -> None:
    found = next(one for one in KEYS if one is key)

    assert default(found.table, found.name) == found.default
    assert found.meaning.endswith(".")
    assert f"| `[{found.table}]` | `{found.name}` |" in reference()


def test_no_key_stands_twice() -> None:
    names = [(key.table, key.name) for key in KEYS]

    assert len(set(names)) == len(names)


def test_who_may_break_the_glass_makes_an_unsatisfiable_policy_usable(loaded: Load) -> None:
    groups = "[sop.approval.groups.nobody]\nmembers = []\n[sop.approval.policies.p]\nrequired_group = 'nobody'\n"
    assert loaded("").break_glass == frozenset()
    assert loaded(f"[sop.approval]\nbreak_glass = ['ida', 'web:noor']\n{groups}").break_glass == {"ida", "web:noor"}
    with pytest.raises(InvalidConfig, match=r"break_glass who may decide alone in an emergency"):
        loaded(groups)


def test_a_policy_approves_by_itself_and_bars_the_delegation_chain_only_where_it_says_so(loaded: Load) -> None:
    text = "[sop.approval.policies.p]\nauto_approve = true\n[sop.approval.policies.q]\ndistinct_from = ['delegation']\n"
    policies = loaded(text).policies
    assert {name: (p.auto_approve, p.distinct_from) for name, p in policies.items()} == {
        "human": (False, ("executor",)),
        "p": (True, ("executor",)),
        "q": (False, ("delegation",)),
    }

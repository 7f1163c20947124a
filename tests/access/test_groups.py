"""Membership by token: a group counts what a credential says only when the configuration opens it to that."""

from pathlib import Path

import pytest
from engine import Desk, person, sop

from procedo.config import load
from procedo.core.altered import altered
from procedo.core.approval import Policy, objection
from procedo.core.model import Step
from procedo.core.principal import PrincipalKind
from procedo.core.state import Run
from procedo.errors import InvalidConfig

LISTED = Policy("two", members=frozenset({"noor"}), group="sre")
BY_TOKEN = altered(LISTED, by_token=True)


@pytest.fixture
def run() -> Run:
    desk = Desk(sop(Step(1, "Load kiln"))).start()
    assert desk.run is not None
    return desk.run


def test_a_token_that_names_the_group_makes_a_member_where_the_group_is_open_to_tokens(run: Run) -> None:
    ida = altered(person("ida"), groups=frozenset({"sre"}))
    assert objection(BY_TOKEN, ida, run) is None
    assert objection(LISTED, ida, run) is not None


def test_a_token_that_names_another_group_makes_no_member(run: Run) -> None:
    ida = altered(person("ida"), groups=frozenset({"cooks", "SRE"}))
    assert objection(BY_TOKEN, ida, run) is not None


def test_a_listed_member_needs_no_token(run: Run) -> None:
    assert objection(BY_TOKEN, person("noor"), run) is None


def test_an_agent_does_not_become_a_member_by_its_token(run: Run) -> None:
    bot = altered(person("bot"), kind=PrincipalKind.AGENT, groups=frozenset({"sre"}))
    assert objection(BY_TOKEN, bot, run) is not None


CONFIG = """
[sop.approval.groups.sre]
members = []
{more}

[sop.approval.policies.two]
required_group = "sre"
quorum = 2
"""


def test_a_group_that_is_filled_by_tokens_alone_can_satisfy_a_quorum(tmp_path: Path) -> None:
    (tmp_path / "procedo.toml").write_text(CONFIG.format(more="by_token = true"))
    policy = load(tmp_path).policies["two"]
    assert (policy.by_token, policy.group, policy.members) == (True, "sre", frozenset())


def test_without_that_an_empty_group_is_a_problem_at_load(tmp_path: Path) -> None:
    (tmp_path / "procedo.toml").write_text(CONFIG.format(more=""))
    with pytest.raises(InvalidConfig, match="unsatisfiable"):
        load(tmp_path)

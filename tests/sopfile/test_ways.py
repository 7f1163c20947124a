import random

import pytest
from definitions import HEADER, compiled, files, problems_of, surroundings, told
from hypothesis import given
from hypothesis import strategies as st

from procedo.core.approval import Policy
from procedo.sopfile.flow import Flow
from procedo.sopfile.graphs import Dominators, circles

AUTO = HEADER + 'execution_mode = "auto"\n'


@pytest.mark.requirement("C13")
def test_a_loop_with_a_way_out_is_no_problem_and_one_without_is() -> None:
    steps = '1. **A**\n2. **B**\n   - switch: again>$.steps.2.done == "no">1; out>>{}\n3. **C**\n'
    assert told(steps.format(3)) == []
    assert told(steps.format(1)) == [("SOP.md", 4, "endless-loop"), ("SOP.md", 5, "unreachable-step")]


@pytest.mark.requirement("C17")
def test_a_false_guard_beside_a_switch_and_next_beside_a_switch_are_mentioned() -> None:
    steps = """1. **A**
2. **B**
   - when: inputs.wet == true
   - switch: dry>inputs.level < 10>4; other>>4
   - next: 3
3. **C**
4. **D**
"""
    assert told(steps) == [("SOP.md", 4, "when-beside-switch"), ("SOP.md", 6, "next-beside-switch")]


@pytest.mark.requirement("C25")
def test_dependencies_are_honest() -> None:
    assert told("1. **A**\n2. **B**\n3. **C**\n   - depends_on: 2, 9\n") == [("SOP.md", 5, "unknown-step")]
    circle = "1. **A**\n2. **B**\n   - depends_on: 3\n3. **C**\n   - depends_on: 2\n"
    assert told(circle) == [("SOP.md", 4, "dependency-cycle"), ("SOP.md", 6, "dependency-cycle")]
    apart = "1. **A**\n2. **B**\n   - depends_on: 1\n3. **C**\n   - depends_on: 1\n"
    assert told(apart) == [("SOP.md", 6, "independent-steps")]
    assert told("1. **A**\n2. **B**\n   - depends_on: 1\n3. **C**\n   - depends_on: 2\n") == []


def test_a_fork_that_joins_is_no_problem() -> None:
    steps = """1. **A**
   - next: 2, 3
2. **B**
   - next: 4
3. **C** {{steps.1}}
   - next: 4
4. **D** {{steps.2}} {{steps.3}}
   - depends_on: 2, 3
"""
    assert told(steps) == []


def test_branches_that_fork_again_and_join_inside_are_no_problem() -> None:
    steps = """1. **A**
   - next: 2, 5
2. **B**
   - next: 3, 4
3. **C**
   - next: 6
4. **D**
   - next: 6
5. **E**
   - next: 7
6. **F**
   - depends_on: 3, 4
   - next: 7
7. **G**
   - depends_on: 5, 6
"""
    assert told(steps) == []


PAST_THE_FORK = """1. **A**
{}2. **B**
   - next: 3, 4
3. **C**
{}   - next: 5
4. **D**
   - next: 5
5. **E**
   - depends_on: {}
6. **F**
"""


@pytest.mark.parametrize(
    ("first", "branch", "needed", "named"),
    [
        ("   - switch: u>inputs.u == true>5; n>>2\n", "", "3, 4", "steps 3, 4"),
        ("   - requires_confirmation: true\n   - on_deny: goto:5\n", "", "3, 4", "steps 3, 4"),
        ("   - on_failure: goto:5\n", "", "3, 4", "steps 3, 4"),
        ("   - when: inputs.u == true\n   - next: 5\n", "", "3, 4", "steps 3, 4"),
        ("", "   - on_failure: goto:5\n", "3, 4", "step 3"),
        ("", "   - requires_confirmation: true\n   - on_deny: goto:6\n", "3, 4", "step 3"),
        ("", "   - if: inputs.u == true\n", "3, 4", "step 3"),
        ("   - switch: u>inputs.u == true>5; n>>2\n", "", "3", "step 3"),
        # positive controls: every way completes what is waited for
        ("   - switch: u>inputs.u == true>6; n>>2\n", "", "3, 4", ""),
        ("   - requires_confirmation: true\n   - on_deny: goto:6\n", "", "3, 4", ""),
        ("", "   - on_failure: retry:2\n", "3, 4", ""),
        ("", "", "3", ""),
    ],
)
def test_a_way_past_a_fork_to_its_join_is_told_with_what_it_never_completes(
    first: str, branch: str, needed: str, named: str
) -> None:
    found = problems_of(files(PAST_THE_FORK.format(first, branch, needed)))
    told_of = [problem.message for problem in found if problem.code == "dependency-uncertain"]
    assert told_of == ([f"step 5 waits for {named}, which some ways to it never complete"] if named else [])


def test_a_join_may_serve_the_forks_of_two_ways() -> None:
    steps = """1. **A**
   - switch: a>$.inputs.x == 1>2; b>>3
2. **B**
   - next: 4, 5
3. **C**
   - next: 4, 5
4. **D**
   - next: 6
5. **E**
   - next: 6
6. **F**
   - depends_on: {}
"""
    assert told(steps.format("4, 5")) == []
    lines = [line for _, line, code in told(steps.format("4")) if code == "fork-without-join"]
    assert lines == [5, 7]


def test_a_step_that_may_fail_is_not_always_before_its_failure_route() -> None:
    steps = "1. **A**\n2. **B**\n   - on_failure: goto:3\n3. **C**\n   use {}\n"
    assert told(steps.format("{{steps.1}}")) == []
    assert told(steps.format("{{steps.2}}")) == [("SOP.md", 6, "binding-uncertain")]


def test_a_step_that_may_be_passed_over_is_not_always_there() -> None:
    steps = "1. **A**\n2. **B**\n   - if: inputs.x == 1\n3. **C**\n   {{steps.2}}\n"
    assert told(steps) == [("SOP.md", 6, "binding-uncertain")]


@pytest.mark.requirement("C99")
def test_bindings_to_the_same_a_later_and_an_unknown_step_are_reported() -> None:
    steps = "1. **A**\n   {{steps.1.x}}\n   {{steps.2.x}}\n   {{steps.9.x}}\n2. **B** {{steps.1.x}}\n"
    assert told(steps) == [
        ("SOP.md", 3, "binding-order"),
        ("SOP.md", 4, "binding-order"),
        ("SOP.md", 5, "unknown-step"),
    ]


@pytest.mark.requirement("C39")
def test_a_tool_that_no_agent_has_is_named_and_one_that_some_agent_has_is_not() -> None:
    assert told("1. **A**\n   - tools: forklift.move\n") == [("SOP.md", 3, "unknown-tool")]
    assert told("1. **A**\n   - tools: pump\n") == []
    assert told("1. **A**\n   - tools: forklift.move\n", around=surroundings(tools=None)) == []


@pytest.mark.requirement("C41")
def test_triggers_that_nothing_feeds_are_noted_and_the_catalogue_knows() -> None:
    header = HEADER + '[[triggers]]\ntype = "manual"\n[[triggers]]\ntype = "webhook"\npath = "/x"\n'
    assert told("1. **A**\n", header) == [("SOP.toml", 6, "trigger-not-served")]
    assert [(trigger.type, trigger.served) for trigger in compiled("1. **A**\n", header).triggers] == [
        ("manual", True),
        ("webhook", False),
    ]


@pytest.mark.parametrize(
    ("policy", "codes"),
    [
        (Policy("p", frozenset({"ida", "noor"}), "g", 2), []),
        (Policy("p", frozenset({"ida", "noor"}), "g", 3), ["unsatisfiable-policy"]),
        (Policy("p", frozenset({"ida", "IDA ", "cli:ida"}), "g", 2), ["unsatisfiable-policy"]),
        (Policy("p", frozenset(), "g", 1), ["unsatisfiable-policy"]),
        (Policy("p", frozenset({"ida"}), "g", 2, agents=frozenset({"smith"})), []),
        (Policy("p"), []),
    ],
)
def test_a_policy_that_nobody_can_satisfy_is_told(policy: Policy, codes: list[str]) -> None:
    found = told("1. **A**\n   - policy: p\n", around=surroundings(policies=[policy]))
    assert [code for _, _, code in found] == codes


NARROW = AUTO + "[inputs.properties.message]\nenum = ['a', 'b']\n"
OUTWARD = '1. **A**\n2. **B**\n{}   - capability: mail.send\n   - with: {{"text": "{{{{inputs.message}}}}"}}\n'


def test_free_text_reaches_an_outward_action_only_by_a_gate_or_when_it_is_narrowed() -> None:
    bare = OUTWARD.format("")
    assert told(bare, AUTO) == [("SOP.md", 5, "ungated-effect")]
    assert told(bare, NARROW) == []
    assert told(OUTWARD.format("   - requires_confirmation: true\n"), AUTO) == []
    assert told("1. **Ask**\n   - kind: checkpoint\n" + bare.replace("1. **A**\n", ""), AUTO) == []
    assert told(bare.replace("mail.send", "text.render"), AUTO) == []


# --- the graph -----------------------------------------------------------------------------------


def graph(seed: int, size: int) -> dict[int, list[int]]:
    chance = random.Random(seed)  # noqa: S311  # a reproducible graph, no secret
    return {node: chance.sample(range(size), chance.randint(0, min(3, size))) for node in range(size)}


def reach(edges: dict[int, list[int]], start: int, without: int | None = None) -> set[int]:
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        node = waiting.pop()
        if node not in seen and node != without:
            seen.add(node)
            waiting += edges[node]
    return seen


@given(seed=st.integers(0, 10**6), size=st.integers(1, 12))
def test_dominators_agree_with_their_definition(seed: int, size: int) -> None:
    edges = graph(seed, size)
    dominators = Dominators(edges, 0)
    for above in edges:
        beyond = reach(edges, 0, above) if above else set()
        for below in edges:
            expected = below in reach(edges, 0) and above in reach(edges, 0) and below not in beyond
            assert dominators.dominates(above, below) == expected


@given(seed=st.integers(0, 10**6), size=st.integers(1, 12))
def test_circles_are_the_sets_of_nodes_that_reach_each_other(seed: int, size: int) -> None:
    edges = graph(seed, size)
    mutual = {frozenset(b for b in edges if b in reach(edges, a) and a in reach(edges, b)) for a in edges}
    expected = {nodes for nodes in mutual if len(nodes) > 1 or next(iter(nodes)) in edges[next(iter(nodes))]}
    assert set(circles(edges)) == expected


def test_ten_thousand_steps_are_checked_without_a_walk_for_each() -> None:
    size = 10_000
    steps = "".join(
        f"{n}. **S{n}**\n   - depends_on: {n - 1}\n" if n > 1 else "1. **S1**\n" for n in range(1, size + 1)
    )
    sop = compiled(steps)
    flow = Flow(sop)
    assert len(flow.reached) == size
    assert flow.always_before(1, size)
    assert not flow.always_before(size, 1)
    assert flow.only_behind(1, size)

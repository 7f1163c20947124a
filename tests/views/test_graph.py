from procedo.core.model import Condition, FailureRule, Kind, Mode, OnFailure, Port, Sop, Step, Truth
from procedo.surfaces.graph import END, Edge, edges, graph_text, mermaid


def condition(source: str) -> Condition:
    return Condition(source, lambda _: Truth(True))


def sop(*steps: Step) -> Sop:
    return Sop("demo", "A demo", steps, "d" * 64)


INCIDENT = sop(
    Step(1, "Triage", switch=(Port("bad", condition('$.level == "high"'), 2), Port("fine", None, None))),
    Step(2, "Fix", requires_confirmation=True, on_failure=FailureRule(OnFailure.GOTO, target=4)),
    Step(3, "Check", kind=Kind.CHECKPOINT, on_deny=2),
    Step(4, "Report", terminal=True),
)
FORKED = sop(
    Step(1, "Split", next=(2, 3)),
    Step(2, "Left", next=(4,)),
    Step(3, "Right", kind=Kind.SOP, sub_sop="paint", on_failure=FailureRule(OnFailure.RETRY, 2)),
    Step(4, "Join", depends_on=(2, 3), when=condition("steps['2'].ok"), next=(1,)),
)


def test_every_way_is_an_edge() -> None:
    assert edges(INCIDENT) == (
        Edge(1, 2, 'bad: $.level == "high"'),
        Edge(1, END, "fine: else"),
        Edge(2, 3),
        Edge(2, 4, "on failure"),
        Edge(3, 4),
        Edge(3, 2, "on deny", back=True),
        Edge(4, END),
    )


def test_forks_joins_retries_and_loops_are_edges() -> None:
    assert edges(FORKED) == (
        Edge(1, 2, "fork"),
        Edge(1, 3, "fork"),
        Edge(2, 4),
        Edge(3, 4),
        Edge(3, 3, "on failure: 2 more", back=True),
        Edge(4, END, "when not steps['2'].ok"),
        Edge(4, 1, "when steps['2'].ok", back=True),
        Edge(2, 4, "needed by", waits=True),
        Edge(3, 4, "needed by", waits=True),
    )


def test_a_mermaid_graph_shows_steps_gates_guards_and_the_state_of_a_run() -> None:
    assert mermaid(INCIDENT, Mode.AUTO, marks={1: "done", 2: "waiting"}).split("\n") == [
        "flowchart TD",
        '  s1["1. Triage"]',
        '  s2["2. Fix"]',
        '  g2{"approval"} --> s2',
        '  s3{{"3. Check"}}',
        '  s4["4. Report"]',
        "  finish([end])",
        '  s1 -->|"bad: $.level == &quot;high&quot;"| g2',
        '  s1 -->|"fine: else"| finish',
        "  s2 --> s3",
        '  s2 -->|"on failure"| s4',
        "  s3 --> s4",
        '  s3 -->|"on deny"| g2',
        "  s4 --> finish",
        "  classDef done fill:#d7f0dd,stroke:#2d7a46",
        "  class s1 done",
        "  classDef waiting fill:#ffe0cc,stroke:#b34700,stroke-width:3px",
        "  class s2 waiting",
    ]


def test_the_mode_decides_where_gates_stand() -> None:
    assert "g1" not in mermaid(INCIDENT, Mode.AUTO)
    assert '  g1{"approval"} --> s1' in mermaid(INCIDENT, Mode.SUPERVISED)


def test_a_graph_of_titles_keeps_conditions_back() -> None:
    shown = mermaid(INCIDENT, Mode.AUTO, titles_only=True)
    assert "level" not in shown
    assert "  s1 --> g2" in shown


def test_a_title_cannot_leave_its_label() -> None:
    evil = sop(Step(1, 'x"]\n  click s1 "https://evil.example" <script>'))
    assert mermaid(evil, Mode.AUTO).split("\n")[1] == (
        '  s1["1. x&quot;] click s1 &quot;https://evil.example&quot; &lt;script&gt;"]'
    )


def test_a_graph_in_text_shows_the_same_ways() -> None:
    assert graph_text(FORKED, Mode.AUTO, marks={1: "done", 2: "active"}).split("\n") == [
        "[x] 1. Split",
        "       -> 2  [fork]",
        "       -> 3  [fork]",
        "[>] 2. Left",
        "       -> 4",
        "[ ] 3. Right (sop) = procedure paint",
        "       -> 4",
        "       => back to 3  [on failure: 2 more]",
        "[ ] 4. Join needs 2, 3",
        "       -> end  [when not steps['2'].ok]",
        "       => back to 1  [when steps['2'].ok]",
    ]
    assert graph_text(INCIDENT, Mode.SUPERVISED).split("\n")[0] == "1. gate, then Triage"

import itertools
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedo.core.altered import altered
from procedo.core.model import Condition, FailureRule, Kind, Mode, OnFailure, Port, Sop, Step, Truth
from procedo.surfaces.drawing import STYLE, drawing
from procedo.surfaces.graph import MARKS, outline
from procedo.surfaces.layout import Box, Line, layered

pytestmark = pytest.mark.requirement("console-drawing")
SPACE = "{http://www.w3.org/2000/svg}"


def condition(source: str) -> Condition:
    return Condition(source, lambda _: Truth(True))


def sop(*steps: Step) -> Sop:
    return Sop("demo", "A demo", steps, "d" * 64)


FORKED = sop(
    Step(1, "Split", next=(2, 3), requires_confirmation=True),
    Step(2, "Left", next=(4,), for_each="{{steps.1.items}}"),
    Step(3, "Right", kind=Kind.SOP, sub_sop="paint", on_failure=FailureRule(OnFailure.RETRY, 2)),
    Step(4, "Join", depends_on=(2, 3), when=condition("steps['2'].ok"), next=(1,)),
)
SWITCHED = sop(
    Step(1, "Triage", switch=(Port("bad", condition('$.level == "high"'), 2), Port("fine", None, None))),
    Step(2, "Fix", agent="smith", terminal=True),
)


def drawn(of: Sop, **options: object) -> ET.Element:
    """The drawing as a file, read by a parser that wants it well formed."""
    return ET.fromstring(drawing(outline(of, Mode.AUTO), standalone=True, **options))  # type: ignore[arg-type]  # noqa: S314  # our own text


def steps_of(svg: ET.Element) -> dict[str, str]:
    """The name of each step as a screen reader says it, with the class that shows its state."""
    found = [g for g in svg.iter(f"{SPACE}g") if g.get("class", "").startswith("step ")]
    return {str(g.get("aria-label")): str(g.get("class")) for g in found}


def ways(svg: ET.Element, kind: str = "way") -> list[str]:
    return [str(p.get("d")) for p in svg.iter(f"{SPACE}path") if kind in str(p.get("class")).split()]


def test_every_step_has_a_name_that_tells_what_it_is() -> None:
    assert steps_of(drawn(FORKED)) == {
        "Step 1, Split, host, asks a person before it begins": "step ahead execute",
        "Step 2, Left, host, for each of {{steps.1.items}}": "step ahead execute",
        "Step 3, Right, procedure paint": "step ahead sop",
        "Step 4, Join, host": "step ahead execute",
    }
    assert list(steps_of(drawn(SWITCHED)))[1] == "Step 2, Fix, agent smith"


def test_in_a_run_every_step_tells_how_it_stands() -> None:
    for mark, word in MARKS.items():
        found = steps_of(drawn(SWITCHED, marks={1: mark}))
        assert found == {
            f"Step 1, Triage, host: {word}": f"step {mark} execute",
            "Step 2, Fix, agent smith: not reached": "step ahead execute",
        }


def test_the_ways_are_told_in_words() -> None:
    description = drawn(SWITCHED).findtext(f"{SPACE}desc")
    assert description == 'Step 1 leads to step 2, bad: $.level == "high". Step 1 leads to the end, fine: else. ' + (
        "Step 2 leads to the end."
    )
    told = drawn(FORKED).findtext(f"{SPACE}desc") or ""
    assert "Step 4 leads back to step 1, when steps['2'].ok." in told
    assert "Step 2 is needed by step 4." in told


def test_each_way_is_one_line_and_what_was_taken_is_marked() -> None:
    # Out of the fork two, into the join two, from the join the end and back, and the loop of the retry.
    assert len(ways(drawn(FORKED))) == 7
    assert not ways(drawn(FORKED), "taken")
    assert len(ways(drawn(FORKED, marks={1: "done"}, taken={(1, 2), (2, 4)}), "taken")) == 2


def test_a_dependency_that_no_way_leads_along_is_a_line_of_its_own_kind() -> None:
    assert not ways(drawn(FORKED), "waits")
    loose = sop(Step(1, "A", terminal=True), Step(2, "B", depends_on=(1,)))
    assert len(ways(drawn(loose), "waits")) == 1


def test_text_of_a_procedure_stays_text() -> None:
    evil = '</title><script>alert(1)</script> & "quoted"'
    hostile = sop(altered(SWITCHED.steps[0], title=evil, for_each=evil), altered(SWITCHED.steps[1], agent=evil))
    text = drawing(outline(altered(hostile, name=evil), Mode.AUTO), {1: "done"}, link=lambda _: f'#"{evil}')
    assert "<script" not in text
    assert f"Step 1, {evil}, host, for each of {evil}: done" in steps_of(drawn(hostile, marks={1: "done"}))


def test_a_page_with_a_strict_policy_takes_a_drawing() -> None:
    text = drawing(outline(FORKED, Mode.SUPERVISED), {1: "waiting"}, link=lambda number: f"#step-{number}")
    assert "style" not in text
    assert " on" not in "".join(part.partition(">")[0] for part in text.split("<"))
    assert 'href="#step-4"' in text


def test_a_file_of_its_own_carries_its_style_in_light_and_dark() -> None:
    text = drawing(outline(FORKED, Mode.SUPERVISED), standalone=True)
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert STYLE in text
    assert "prefers-color-scheme: dark" in STYLE
    for mark in MARKS:
        assert f".{mark}" in STYLE


def test_several_drawings_stand_in_one_page() -> None:
    one, other = (drawing(outline(FORKED, Mode.AUTO), name=name) for name in ("a", "b"))

    def names(text: str) -> set[str]:
        return {part.partition('"')[0] for part in text.split(' id="')[1:]}

    assert names(one)
    assert not names(one) & names(other)


def test_steps_far_apart_are_joined_by_signs() -> None:
    long = sop(*(Step(n, f"S{n}", on_deny=1 if n == 60 else None) for n in range(1, 61)))
    signs = [text.text for g in drawn(long).iter(f"{SPACE}g") if g.get("class") == "end" for text in g]
    assert [sign for sign in signs if sign] == ["end", "↑ 1"]


# --- layout -----------------------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[Line]]:
    count = draw(st.integers(1, 12))
    boxes = [Box(n, draw(st.sampled_from([40.0, 236.0])), 54.0) for n in range(count)]
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] != pair[1])
    pairs = draw(st.sets(ends, max_size=20)) if count > 1 else set()
    return boxes, [Line(a, b, draw(st.sampled_from([0.0, 90.0, 180.0]))) for a, b in sorted(pairs)]


def apart(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    """True when two rectangles (middle, width, height) do not meet."""
    return abs(a[0] - b[0]) * 2 >= a[2] + b[2] - 0.01 or abs(a[1] - b[1]) * 2 >= a[3] + b[3] - 0.01


@given(graphs())
def test_nothing_covers_anything(graph: tuple[list[Box], list[Line]]) -> None:
    boxes, lines = graph
    found = layered(boxes, lines)
    taken = [(*found.boxes[box.key], box.width, box.height) for box in boxes]
    taken += [(*at, line.label_width, 18.0) for line, at in zip(lines, found.labels, strict=True) if at is not None]
    assert all(itertools.starmap(apart, itertools.combinations(taken, 2)))
    assert all(w / 2 - 0.01 <= x <= found.width - w / 2 + 0.01 for x, _, w, _ in taken)
    assert all(h / 2 - 0.01 <= y <= found.height - h / 2 + 0.01 for _, y, _, h in taken)


@given(graphs())
def test_each_line_goes_from_its_source_to_its_target_past_every_other_box(
    graph: tuple[list[Box], list[Line]],
) -> None:
    boxes, lines = graph
    found = layered(boxes, lines)
    sizes = {box.key: (*found.boxes[box.key], box.width, box.height) for box in boxes}
    for line, points in zip(lines, found.lines, strict=True):
        for key, end in ((line.source, points[0]), (line.target, points[-1])):
            x, y, width, height = sizes[key]
            assert abs(end[0] - x) <= width / 2
            assert abs(abs(end[1] - y) - height / 2) < 0.01
        between = points[1:-1]
        others = [sizes[box.key] for box in boxes]
        assert all(apart((x, y, 0, 0), other) for x, y in between for other in others)


@given(graphs())
def test_the_same_graph_is_laid_out_in_the_same_way(graph: tuple[list[Box], list[Line]]) -> None:
    assert layered(*graph) == layered(*graph)


@pytest.mark.parametrize("back", [False, True])
def test_a_line_back_leads_up(back: bool) -> None:
    boxes = [Box("a", 10, 10), Box("b", 10, 10)]
    points = layered(boxes, [Line("b", "a") if back else Line("a", "b")]).lines[0]
    assert (points[0][1] > points[-1][1]) is back


def test_branches_stand_beside_each_other_and_a_join_below_both() -> None:
    boxes = [Box(key, 100, 50) for key in "abcd"]
    found = layered(boxes, [Line("a", "b"), Line("a", "c"), Line("b", "d"), Line("c", "d")]).boxes
    assert found["b"][1] == found["c"][1] > found["a"][1]
    assert found["d"][1] > found["b"][1]
    assert found["b"][0] < found["a"][0] == found["d"][0] < found["c"][0]

"""How far credentials reach: names and patterns, and the order of narrower and wider."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from procedo.core.reach import BOUNDLESS, UNLIMITED, Reach, admits_agent, admits_sop, broader, pattern, without
from procedo.errors import BadArgument

pytestmark = pytest.mark.requirement("reach")

FITS = {
    "the name itself": ("refund", "refund", True),
    "another name": ("refund", "refunds", False),
    "any ending": ("refund*", "refund-small", True),
    "an ending of nothing": ("refund*", "refund", True),
    "only from the beginning": ("refund*", "no-refund", False),
    "one character": ("refund-?", "refund-9", True),
    "not none for one": ("refund-?", "refund-", False),
    "letters as they are written": ("Refund", "refund", False),
    "brackets are letters": ("kiln[ab]", "kilna", False),
    "brackets of a name": ("kiln[ab]", "kiln[ab]", True),
    "a dot is a dot": ("a.b", "axb", False),
}


@pytest.mark.parametrize(("text", "name", "fits"), FITS.values(), ids=FITS)
def test_a_name_or_pattern_matches(text: str, name: str, *, fits: bool) -> None:
    assert admits_sop((Reach(sops=(text,)),), name) is fits
    assert admits_agent((Reach(agents=(text,)),), name) is fits


def test_without_limits_everything_is_reached_and_an_empty_list_reaches_nothing() -> None:
    for reach in (BOUNDLESS, (UNLIMITED,)):
        assert (admits_sop(reach, "any"), admits_agent(reach, "any")) == (True, True)
    assert not admits_sop((Reach(sops=()),), "any")
    assert admits_agent((Reach(sops=()),), "any"), "the one says nothing of the other"
    assert not admits_agent((Reach(agents=()),), "any")


def test_every_one_of_several_has_to_admit() -> None:
    both = (Reach(sops=("a*",)), Reach(sops=("*b",)))
    assert [name for name in ("ab", "a", "b", "axb") if admits_sop(both, name)] == ["ab", "axb"]


def test_a_reach_is_taken_over_once() -> None:
    one, other = Reach(sops=("a",)), Reach(agents=())
    assert without((one, other, one, other), (other,)) == (one,)


@pytest.mark.parametrize("text", ["", "  ", "a\nb", "a\x00", "x" * 121])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(BadArgument) as refusal:
        pattern("procedure", text)
    assert "names no procedure" in str(refusal.value)


def test_a_name_is_kept_without_its_outer_blanks() -> None:
    assert pattern("agent", " reviewer ") == "reviewer"


ORDER = {
    "nothing was held back": (Reach(("a",)), (), []),
    "a name of a pattern": (Reach(("refund-small",)), (Reach(("refund*",)),), []),
    "a longer beginning": (Reach(("refund-*",)), (Reach(("refund*",)),), []),
    "nothing at all": (Reach((), ()), (Reach(("a",), ("b",)),), []),
    "another name": (Reach(("b",)), (Reach(("a",)),), ["procedure b"]),
    "a shorter beginning": (Reach(("r*",)), (Reach(("refund*",)),), ["procedure r*"]),
    "no limit": (Reach(), (Reach(("a",), ("b",)),), ["every procedure", "every agent"]),
    "one of two makers": (Reach(("a",)), (Reach(("a",)), Reach(("b",))), ["procedure a"]),
    "an agent more": (Reach(None, ("writer", "reviewer")), (Reach(None, ("reviewer",)),), ["agent writer"]),
}


@pytest.mark.parametrize(("wanted", "held", "more"), ORDER.values(), ids=ORDER)
def test_what_reaches_further_is_named(wanted: Reach, held: tuple[Reach, ...], more: list[str]) -> None:
    assert broader(wanted, held) == more


names = st.text("ab", max_size=4)
patterns = st.lists(st.text("ab*?", min_size=1, max_size=4), max_size=3).map(tuple)


@given(patterns, patterns, names)
@example(("a?",), ("a*",), "a")
@example(("*",), ("a*", "b*"), "")
def test_what_is_not_called_broader_admits_no_name_more(
    wanted: tuple[str, ...], held: tuple[str, ...], name: str
) -> None:
    if not broader(Reach(wanted), (Reach(held),)) and admits_sop((Reach(wanted),), name):
        assert admits_sop((Reach(held),), name)

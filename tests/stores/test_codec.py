import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from anything import anything, json_values
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import NODEFAULT
from msgspec.structs import fields

import procedo.stores
from procedo.core import messages as m
from procedo.core.model import Mode
from procedo.core.state import (
    Arrival,
    Closing,
    Execution,
    Fan,
    Gate,
    Performer,
    Principal,
    PrincipalKind,
    Run,
    Source,
    StepState,
    Verdict,
)
from procedo.errors import StoreError
from procedo.stores.codec import FORMAT, Body, Origin, decode, decode_event, encode, encode_event
from procedo.stores.head import COLUMNS
from procedo.stores.jsontext import canonical, instant, moment, parsed, text

AT = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)
OPENED = Execution("1.1", Arrival(1), Performer.HOST, "host", AT)


@pytest.mark.parametrize("kind", m.EVENTS, ids=lambda kind: kind.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_every_event_comes_back_as_it_was(kind: type[Any], data: st.DataObject) -> None:
    event = data.draw(anything(kind))
    name, written = encode_event(event)
    assert decode_event(name, parsed(written)) == event


@pytest.mark.parametrize("kind", [Execution, Gate, StepState, Origin, Body], ids=lambda kind: kind.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_every_part_of_a_run_comes_back_as_it_was(kind: type[Any], data: st.DataObject) -> None:
    value = data.draw(anything(kind))
    assert decode(kind, parsed(encode(value))) == value


@given(json_values())
def test_the_type_of_a_raw_value_survives(value: Any) -> None:
    closing = decode(Closing, parsed(encode(Closing(AT, "ida", "", value))))
    assert repr(closing.output) == repr(value)


@pytest.mark.parametrize("value", [0, 0.0, False, "", [], {}])
def test_a_value_that_equals_nothing_is_not_left_out(value: object) -> None:
    assert parsed(encode(Closing(AT, "ida", "", value)))["output"] == value
    assert "output" not in parsed(encode(Closing(AT, "ida", "")))


def test_what_equals_its_default_is_left_out() -> None:
    assert parsed(encode(OPENED)) == {
        "agent": "host",
        "arrival": {"step": 1},
        "id": "1.1",
        "opened_at": "2026-03-01T12:00:00.000005Z",
        "performer": "host",
    }


def test_an_event_is_written_in_canonical_form() -> None:
    by = Principal(Source.CLI, "idä", PrincipalKind.HUMAN, frozenset({"b", "a"}))
    kind, written = encode_event(m.GateResolved("g1", Verdict.AMEND, by, value={"b": 1, "a": [1.5, None]}))
    assert kind == "GateResolved"
    assert written == json.dumps(json.loads(written), sort_keys=True, separators=(",", ":"))
    assert '"groups":["a","b"]' in written


def test_a_value_keeps_the_order_of_its_keys_outside_the_record() -> None:
    assert '{"b":1,"a":2}' in encode(Closing(AT, "ida", "", {"b": 1, "a": 2}))


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"id": "1.1"}, "Missing"),
        ({**json.loads(encode(OPENED)), "colour": "red"}, "'colour'"),
        ({**json.loads(encode(OPENED)), "fence": "1"}, "expected int, found str"),
        ({**json.loads(encode(OPENED)), "fence": True}, "expected int, found bool"),
        ({**json.loads(encode(OPENED)), "performer": "ghost"}, "'ghost' is no Performer"),
        ({**json.loads(encode(OPENED)), "performer": ["host"]}, "is no Performer"),
        ({**json.loads(encode(OPENED)), "opened_at": "yesterday"}, "'yesterday' is no time"),
        ({**json.loads(encode(OPENED)), "opened_at": "2026-03-01T12:00:00"}, "no time zone"),
        ({**json.loads(encode(OPENED)), "arrival": {"step": 1, "sources": "1.1"}}, "expected list"),
        ({**json.loads(encode(OPENED)), "arrival": 1}, "expected Arrival, found int"),
        ([], "expected Execution, found list"),
    ],
)
def test_a_record_that_is_not_understood_is_refused(record: object, says: str) -> None:
    with pytest.raises(StoreError) as caught:
        decode(Execution, record)
    assert says in caught.value.message
    assert caught.value.code == "unreadable_record"
    assert decode(Execution, json.loads(encode(OPENED))) == OPENED


def test_keys_of_the_wrong_kind_are_refused() -> None:
    fan = {"arrival": {"step": 1}, "items": [], "done": {"1": "1.1"}}
    assert decode(Fan, fan).done == {1: "1.1"}
    with pytest.raises(StoreError, match="a key is no int"):
        decode(Fan, {**fan, "done": {"one": "1.1"}})


def test_an_unknown_kind_or_format_is_refused() -> None:
    with pytest.raises(StoreError, match="'RunDreamt'"):
        decode_event("RunDreamt", {})
    with pytest.raises(StoreError, match="format is 2"):
        decode_event("StepVisited", {"step": 1}, FORMAT + 1)
    assert decode_event("StepVisited", {"step": 1}, FORMAT) == m.StepVisited(1)


def test_times_are_fixed_width_utc_text_in_the_order_of_time() -> None:
    times = [AT, AT.replace(microsecond=0), AT + timedelta(days=400), AT.astimezone(timezone(timedelta(hours=5)))]
    written = [moment(time) for time in times]
    assert written[0] == written[3] == "2026-03-01T12:00:00.000005Z"
    assert {len(one) for one in written} == {27}
    assert sorted(written) == [moment(time) for time in sorted(times)]
    assert [instant(one) for one in written] == times


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(StoreError, match="no time zone"):
        moment(AT.replace(tzinfo=None))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x", object()])
@pytest.mark.parametrize("write", [text, canonical])
def test_what_is_no_json_is_refused_and_not_kept_in_another_form(write: Any, value: object) -> None:
    with pytest.raises(StoreError, match="no JSON"):
        write({"value": value})


def test_nesting_without_end_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(StoreError, match="no JSON"):
        text(value)


def test_every_field_of_a_run_has_a_place() -> None:
    """A new field of `Run` must be put into a column, the origin, the body or a table of its own, or it is lost."""
    own_tables = {"executions", "gates", "fans", "steps", "last_output"}
    origin, body = ({one.name for one in fields(cls)} for cls in (Origin, Body))
    assert {one.name for one in fields(Run)} - own_tables - origin - body - set(COLUMNS) == set()


def test_the_dictionary_of_the_stored_record_never_changes() -> None:
    """Every stored transition was deflated with it: another word, and none can be read any more."""
    words = Path(procedo.stores.__path__[0], "words.txt").read_bytes()
    assert hashlib.sha256(words).hexdigest() == "78c02beac9ced2fe628021e6a6e7be46cbe6efd326cb17ac31b70f3789f1e018"


def test_defaults_are_the_ones_that_the_classes_declare() -> None:
    """What is left out comes back as the default of the class: a changed default would change old records."""
    declared = {one.name: one.default for one in fields(Execution) if one.default is not NODEFAULT}
    opened = decode(Execution, parsed(encode(OPENED)))
    assert {name: getattr(opened, name) for name in declared} == declared
    assert opened.closing is None
    assert Mode("auto") is Mode.AUTO

import pytest

from procedo.core.model import Json
from procedo.duration import seconds


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0.0), (90, 90.0), (1.5, 1.5), ("250ms", 0.25), ("30s", 30.0), ("15m", 900.0), ("2h", 7200.0),
        ("1d", 86400.0), ("1h30m", 5400.0), ("1h 30m", 5400.0), (" 2h ", 7200.0), ("0.5h", 1800.0),
    ],
)  # fmt: skip
def test_a_time_is_read_as_seconds(value: Json, expected: float) -> None:
    assert seconds(value) == expected


@pytest.mark.parametrize(
    "value",
    [-1, True, None, [], float("nan"), float("inf"), "", " ", "90", "1 fortnight", "h", "-5s", "2h!", "1e3s", "٣s"],
)
def test_what_is_no_time_is_refused(value: Json) -> None:
    with pytest.raises(ValueError, match="expected"):
        seconds(value)

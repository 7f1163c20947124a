"""What was found about one thing, and how it is mended."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from procedo.errors import InvalidConfig, ProcedoError

__all__ = ["OK", "PROBLEM", "WARNING", "Finding", "told", "unseen"]

OK: Final = "ok"
WARNING: Final = "warning"
PROBLEM: Final = "problem"


class Finding(Struct, frozen=True):
    """One thing that was looked at."""

    about: str
    state: str
    found: str
    hint: str = ""

    def value(self) -> dict[str, Any]:
        """The finding as JSON."""
        return asdict(self)


def told(about: str, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """What a look found; a look that fails is itself a finding."""
    try:
        return list(look())
    except ProcedoError as error:
        lines = error.problems if isinstance(error, InvalidConfig) else ()
        found = "\n".join((error.message, *lines))
        return [Finding(about, PROBLEM, found, error.hint or "Mend each place that is named.")]
    except OSError as error:
        return [unseen(about, error)]


def unseen(about: str, error: OSError) -> Finding:
    """What stands in the way of a look at the machine."""
    where = "" if error.filename is None else f"{error.filename} "
    found = f"{where}cannot be looked at: {error.strerror or error}"
    return Finding(about, PROBLEM, found, "See that it is what it should be, and that your account may read it.")

"""How log lines look on standard error, as text for people or as JSON lines, with nothing secret in them.

What is shown of an error is its code, or its kind with the places it came through: its words may quote what
nobody outside the record may read. At level debug they are shown as well.
"""

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any, Final

from procedo.core.characters import spelled_out
from procedo.credential_shapes import masked_text
from procedo.errors import ProcedoError, StoreError
from procedo.telemetry.lines import UNDELIVERED
from procedo.telemetry.logbook import EVENT, FIELDS

__all__ = ["FORMATS", "LEVELS", "log_to_stderr"]

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")
_OUR_LOGGER: Final = "procedo"
_EXPORTERS: Final = ("opentelemetry", "urllib3")
_SAID_EVERY_S: Final = 600.0
_FRAMES: Final = 12
_RUN: Final = re.compile(r"\brun-[0-9a-z]{8,}\b")


def log_to_stderr(form: str = "text", level: str = "warning", trace: Callable[[], Mapping[str, str]] = dict) -> None:
    """Send every log line to standard error, in place of what this did before: standard output is the protocol's.

    `level` holds for procedo; other libraries are heard from warnings on. `trace` gives the ids of the span
    that a line belongs to.
    """
    root = logging.getLogger()
    for known in [handler for handler in root.handlers if isinstance(handler, _Handler)]:
        root.removeHandler(known)
    handler = _Handler()
    handler.setFormatter(_Json(trace) if form == "json" else _Text())
    handler.addFilter(_Exporters())
    root.addHandler(handler)
    chosen = logging.getLevelNamesMapping()[level.upper()]
    root.setLevel(max(chosen, logging.WARNING))
    logging.getLogger(_OUR_LOGGER).setLevel(chosen)


class _Handler(logging.StreamHandler):  # type: ignore[type-arg]  # generic for the type checker alone
    """Writes to whatever standard error is at the moment."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        self.stream = sys.stderr
        super().emit(record)


class _Exporters(logging.Filter):
    """Lets the complaints of exporters about a collector pass once in a while, without what they drag along."""

    def __init__(self) -> None:
        super().__init__()
        self._said: float | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """False for a line that was said a moment ago."""
        if not record.name.startswith(_EXPORTERS):
            return True
        now = time.monotonic()
        if record.levelno < logging.WARNING or (self._said is not None and now - self._said < _SAID_EVERY_S):
            return False
        self._said = now
        cause = _cause(record)
        record.msg, record.args, record.exc_info, record.exc_text = UNDELIVERED.text, None, None, None
        record.levelno, record.levelname = UNDELIVERED.level, logging.getLevelName(UNDELIVERED.level)
        setattr(record, FIELDS, {"cause": cause})
        setattr(record, EVENT, UNDELIVERED.event)
        return True


def _cause(record: logging.LogRecord) -> str:
    text = record.getMessage()
    if "refused" in text or "NewConnectionError" in text:
        return "the collector cannot be reached"
    if "timeout" in text or "timed out" in text:
        return "the collector does not answer in time"
    code = re.search(r"code: (\d{3})", text)
    return f"the collector answers {code.group(1)}" if code is not None else "the collector takes nothing"


def _words(record: logging.LogRecord) -> str:
    """The message, on one line, with errors among its arguments as their codes."""
    debug = logging.getLogger(_OUR_LOGGER).isEnabledFor(logging.DEBUG)
    args = record.args
    if not debug and isinstance(args, tuple):
        args = tuple(_short(arg) for arg in args)
    text = str(record.msg) % args if args else str(record.msg)
    return masked_text(" ".join(text.split()))


def _short(arg: object) -> object:
    if isinstance(arg, ProcedoError) and not isinstance(arg, StoreError):
        return f"[{arg.code}]"
    return arg


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = dict(getattr(record, FIELDS, {}))
    if "run" not in fields and (found := _RUN.search(_words(record))) is not None:
        fields["run"] = found.group(0)
    return {name: masked_text(value) if isinstance(value, str) else value for name, value in fields.items()}


def _error(record: logging.LogRecord) -> tuple[str, list[str]] | None:
    """The kind of an error with the places that it came through, innermost last."""
    if not record.exc_info or record.exc_info[1] is None:
        return None
    _, error, trace = record.exc_info
    name = type(error).__name__
    if logging.getLogger(_OUR_LOGGER).isEnabledFor(logging.DEBUG):
        name = f"{name}: {masked_text(' '.join(str(error).split()))}"
    return name, _places(trace)


def _places(trace: TracebackType | None) -> list[str]:
    frames = [(frame.f_code, line) for frame, line in walk_tb(trace)]
    return [f"{Path(code.co_filename).name}:{line} {code.co_name}" for code, line in frames[-_FRAMES:]]


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Text(logging.Formatter):
    """`2026-11-29T22:51:09.123Z INFO    run started  run=… sop=…`, and an error's places below it."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and more for an error."""
        behind = [f"{name}={_value(value)}" for name, value in _fields(record).items()]
        words = _words(record)
        if getattr(record, EVENT, None) is None:
            words, behind = f"{record.name}: {words}", []
        text = f"{_moment(record)} {record.levelname:<7} {words}" + (f"  {' '.join(behind)}" if behind else "")
        lines, error = [text], _error(record)
        if error is not None:
            lines += [f"  {error[0]}", *(f"    {place}" for place in error[1])]
        return "\n".join(map(spelled_out, lines))


def _value(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return json.dumps(text, ensure_ascii=False) if not text or re.search(r"[\s\"=]", text) else text


class _Json(logging.Formatter):
    """One JSON object for each line: time, level, logger, event, message, and the fields."""

    def __init__(self, trace: Callable[[], Mapping[str, str]]) -> None:
        super().__init__()
        self._trace = trace

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        shown: dict[str, Any] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, EVENT, None),
            "message": _words(record),
            **_fields(record),
            **self._trace(),
        }
        error = _error(record)
        if error is not None:
            shown |= {"error": error[0], "places": error[1]}
        known = {name: value for name, value in shown.items() if value is not None}
        return spelled_out(json.dumps(known, ensure_ascii=False))

"""Writes the lines of what happens to the log: of commits as a watcher, and of what calls tell by themselves."""

import logging
from typing import Final

from procedo.core.session import SessionState
from procedo.telemetry import lines
from procedo.telemetry.happenings import Commit, Written
from procedo.telemetry.lines import Fields, Line

__all__ = ["EVENT", "FIELDS", "Logbook", "say"]

FIELDS: Final = "procedo_fields"
"""The attribute of a log record that holds the fields of its line."""
EVENT: Final = "procedo_event"
"""The attribute that holds its name."""

_log: Final = logging.getLogger("procedo.events")
_UNHAPPY: Final = (SessionState.FAILED, SessionState.REFUSED, SessionState.EXHAUSTED)


def say(line: Line, fields: Fields, *, level: int | None = None) -> None:
    """Write a line. `level` None: the line's own."""
    level = line.level if level is None else level
    if _log.isEnabledFor(level):
        known = {name: value for name, value in fields.items() if name in line.fields and value is not None}
        _log.log(level, line.text, extra={FIELDS: known, EVENT: line.event})


class Logbook:
    """A `Watcher`."""

    def committed(self, commit: Commit) -> None:
        """See `Watcher.committed`."""
        quiet = () if _log.isEnabledFor(logging.DEBUG) else lines.QUIET
        for move in commit.moves:
            for line, fields in lines.lines_of(move, quiet):
                say(line, fields)
        for written in commit.sessions:
            self._session(written)
        for telling in commit.tellings:
            line = lines.NOTICE_FAILED if telling.error else lines.NOTICE_DELIVERED
            say(
                line,
                {
                    "run": telling.run_id,
                    "gate": telling.gate_id,
                    "route": telling.route,
                    "occasion": str(telling.occasion),
                    "attempt": telling.attempts,
                    "given_up": telling.given_up,
                },
            )

    @staticmethod
    def _session(written: Written) -> None:
        row = written.row
        if row.state is SessionState.RUNNING:
            return
        fields: Fields = {
            "run": row.run_id,
            "execution": row.execution_id,
            "agent": row.agent,
            "state": str(row.state),
            "turns": row.turns,
            "calls": row.calls,
            "input_tokens": row.input_tokens,
            "output_tokens": row.output_tokens,
            "cost_usd": row.cost_usd,
            "seconds": round(row.seconds, 3),
        }
        say(lines.SESSION_ENDED, fields, level=logging.WARNING if row.state in _UNHAPPY else None)

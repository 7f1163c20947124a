"""A session's transcript as people read it: what was said, what was called, who allowed it, what it cost."""

from collections.abc import Iterator
from typing import Any, Final

from procedo.core.session import CallRow, Transcript
from procedo.surfaces.cli.output import Output, pretty, visible
from procedo.surfaces.redaction import masked, masked_text
from procedo.surfaces.transcripts import call_text, session_facts, turn_text

__all__ = ["transcript_text"]

_WIDTH: Final = 4000


def transcript_text(transcript: Transcript, out: Output) -> None:
    """Print one session for a person. Foreign text stays behind a bar, so that it cannot pose as ours."""
    row = transcript.session
    out.line(f"{out.style('bold', row.execution_id)}  {'; '.join(session_facts(row, row.root))}")
    if row.reason:
        out.line(f"  {masked_text(row.reason)}")
    for message in transcript.messages:
        if message.kind == "request":
            _request(message.data, first=message.seq == 1, out=out)
        else:
            _response(message.data, transcript, (message.seq + 1) // 2, out)


def _request(data: Any, *, first: bool, out: Output) -> None:
    if first and data.get("instructions"):
        _quoted("instructions", str(data["instructions"]), out)
    for part in data.get("parts", ()):
        if part.get("part_kind") == "user-prompt":
            _quoted("step" if first else "procedo", str(part.get("content")), out)


def _response(data: Any, transcript: Transcript, turn: int, out: Output) -> None:
    found = next((one for one in transcript.turns if one.turn == turn), None)
    out.line(f"  {out.style('bold', f'turn {turn}')}  {turn_text(found)}")
    for part in data.get("parts", ()):
        if part.get("part_kind") == "text" and part.get("content"):
            _quoted("says", str(part["content"]), out)
    for call in transcript.calls:
        if call.turn == turn:
            _call(call, out)


def _call(call: CallRow, out: Output) -> None:
    out.line(f"  {out.style('bold', f'call {call.key}')}  {visible(call.offered, lines=False)}: {call_text(call)}")
    _quoted("with", pretty(masked(call.arguments)), out)
    if call.text:
        _quoted("gave", call.full or call.text, out)


def _quoted(name: str, text: str, out: Output) -> None:
    lines = [*_lines(text)]
    for number, line in enumerate(lines):
        out.line(f"    {(name if number == 0 else '').ljust(12)} | {line}")


def _lines(text: str) -> Iterator[str]:
    shown = visible(masked_text(text))
    yield from shown[:_WIDTH].split("\n")
    if len(shown) > _WIDTH:
        yield f"… ({len(shown)} characters in all; --json prints everything)"

"""A model as the tests play it: it does what the answers tell it to do next, and knows nothing else.

It sees what a client hands to its model: the structured part of an answer, or the text of it, or both. Each must do.
"""

import json
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

__all__ = ["TOOLS", "Call", "Script", "Seen", "goes_on", "idle", "starts"]

TOOLS: Final = frozenset(
    f"sop_{verb}" for verb in ("advance", "approve", "cancel", "describe", "list", "resume", "start", "status")
)
FINAL: Final = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; a client may offer the tool under a longer name."""

    tool: str
    arguments: dict[str, Any]


def _views(value: Any) -> Iterator[dict[str, Any]]:
    """The structured answers in what a client handed over, which may be JSON in JSON, or below its own words."""
    if isinstance(value, str):
        for line in value.splitlines():
            if line.startswith(("{", "[")):
                with suppress(ValueError):
                    yield from _views(json.loads(line))
    elif isinstance(value, dict):
        if "run_id" in value or "runs" in value:
            yield value
        else:
            for part in value.values():
                yield from _views(part)
    elif isinstance(value, list):
        for part in value:
            yield from _views(part)


def _prose(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except ValueError:
            yield value
        else:
            yield from _prose(parsed) if isinstance(parsed, dict | list) else iter([value])
    elif isinstance(value, dict):
        for key, part in value.items():
            if key not in ("structuredContent", "structured_content"):
                yield from _prose(part)
    elif isinstance(value, list):
        for part in value:
            yield from _prose(part)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a model was given as the result of its call."""

    given: str

    @property
    def view(self) -> dict[str, Any] | None:
        """The structured part, if the client hands it over."""
        return next(_views(self.given), None)

    @property
    def text(self) -> str:
        """The text, if the client hands it over."""
        return "" if self.given.lstrip().startswith('{"run') else "\n".join(_prose(self.given))

    @property
    def forms(self) -> frozenset[str]:
        """In which forms the model has the answer."""
        found = {"structured"} if self.view is not None else set[str]()
        return frozenset(found | ({"text"} if re.search(r"^(Run|Live runs:) ", self.text, re.MULTILINE) else set()))

    def _found(self, pattern: str) -> str:
        match = re.search(pattern, self.text)
        assert match is not None, f"nothing like {pattern} in what the model was given: {self.given}"
        return match[1]

    @property
    def status(self) -> str:
        return str(self.view["status"]) if self.view else self._found(r"Run \S+ of [^:]+: (\w+)\.")

    @property
    def person_acts(self) -> bool:
        return self.view["who_acts"] == "human" if self.view else "A person has to act" in self.text

    @property
    def gate(self) -> str:
        return str(self.view["actions"][0]["context"]["code"]) if self.view else self._found(r"Gate (\w{6}) \(")

    @property
    def live_run(self) -> str:
        """The one live run of a list."""
        return str(self.view["runs"][0]["run_id"]) if self.view else self._found(r"- (run-\w+) ")

    @property
    def next_call(self) -> Call:
        """What the answer says that comes next."""
        if self.view:
            call = self.view["actions"][0]["call"]
            return Call(call["tool"], dict(call["arguments"]))
        return Call(self._found(r"Next call: (\w+) "), json.loads(self._found(r"Next call: \w+ (\{.*\})")))

    @property
    def output(self) -> Any:
        """What the run ended with."""
        if self.view:
            return self.view["output"]
        return json.loads(self._found(r"Final output: <data-\w+>(.*)</data-\w+>"))


Script: TypeAlias = Generator[Call, Seen, str]
"""Calls of the model and what it sees of each, until it says its last word."""


def _follows(call: Call) -> Script:
    seen, proposed = (yield call), False
    while seen.status not in FINAL:
        if seen.person_acts and proposed:
            return f"Gate {seen.gate} waits for a person."
        if seen.person_acts:
            proposed = True
            seen = yield Call("sop_approve", {"gate_id": seen.gate, "decision": "approve", "comment": "I say so"})
            continue
        call = seen.next_call
        result = {"done": call.arguments["execution_id"]} if call.tool == "sop_advance" else None
        seen = yield Call(call.tool, {**call.arguments, **({"output": result} if result else {})})
    return f"The run is {seen.status}: {json.dumps(seen.output)}"


def starts(name: str, inputs: Any) -> Script:
    """Starts a procedure and follows it, and tries to open its gate alone."""
    return (yield from _follows(Call("sop_start", {"name": name, "inputs": inputs})))


def goes_on() -> Script:
    """In a new conversation, goes on with the run that there is."""
    seen = yield Call("sop_status", {})
    return (yield from _follows(Call("sop_resume", {"run_id": seen.live_run})))


def idle() -> Script:
    """Calls nothing."""
    yield from ()
    return "There is nothing to do."

"""What every client of another maker has to get through: a start, a gate that a person alone opens, and the end."""

import json
import re
from collections.abc import Sequence, Set
from typing import Any, Protocol

from reached import Reach
from scripted_agent import TOOLS, Script, Seen, goes_on, starts

__all__ = ["Client", "walks_through_its_gate"]


class Client(Protocol):
    """A client with a model behind it. `offered` are the names under which that may call our tools."""

    @property
    def seen(self) -> Sequence[Seen]: ...

    @property
    def offered(self) -> Set[str]: ...

    def turn(self, script: Script) -> str:
        """One conversation; answers with what was said or printed, the last words at its end."""
        ...


def _record(reach: Reach) -> list[tuple[str, str]]:
    done = reach.place.run("audit", "export")
    assert done.code == 0, done.err
    lines: list[Any] = [json.loads(line) for line in done.out.splitlines()]
    telling = ("RunStarted", "GateResolved", "RunCompleted")
    return [(line["kind"], line["acting"]) for line in lines if line["kind"] in telling]


def walks_through_its_gate(client: Client, reach: Reach, name: str) -> None:
    """Two conversations with a person between them; `name` is what the client calls itself."""
    said = client.turn(starts("kiln-firing", {"temp": 980}))
    waiting = re.search(r"Gate (\w{6}) waits for a person\.", said)
    assert waiting is not None, said
    (_, answered) = client.seen
    assert "othing was decided" in answered.given
    (gate,) = reach.place.json("inbox")["gates"]
    assert gate["code"] == waiting[1]

    screen = reach.place.person("approve", waiting[1])
    assert screen.code == 0, screen.text

    said = client.turn(goes_on())
    assert said.rstrip().endswith('The run is completed: {"done": "2.1"}'), said
    assert reach.place.json("inbox")["gates"] == []
    assert {offered[offered.rfind("sop_") :] for offered in client.offered} == TOOLS
    # Over HTTP nobody is known without a token, whatever the client calls itself.
    host = "agent:http:" if reach.url else f"agent:host:{name}"
    (started, resolved, completed) = _record(reach)
    assert (started, completed) == (("RunStarted", host), ("RunCompleted", host))
    assert resolved[0] == "GateResolved"
    assert resolved[1].startswith("human:cli:")

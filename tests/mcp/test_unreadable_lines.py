"""Over standard input, a line that cannot be read is answered, and what follows is served as ever."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Workspace
from mcp_host import PLAIN, workspace
from served_process import LIMIT_S, forked

DEEP = '{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":' + "[" * 300 + "]" * 300 + "}}"
LONE = '{"jsonrpc":"2.0","id":"x","method":"ping","params":{"a":"\\ud800"}}'
LINES: dict[str, tuple[str, list[Any]]] = {
    "nested too deep": (DEEP, [7]),
    "half a character": (LONE, ["x"]),
    "no json": ("nonsense", [None]),
    "a batch": ("[]", [None]),
    "an id that is none": (LONE.replace('"x"', "true"), [None]),
    "an empty line": ("  ", []),
    "a notification": (LONE.replace('"id":"x",', ""), []),
    "an answer": ('{"jsonrpc":"2.0","id":3,"result":{"a":"\\ud800"}}', []),
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "d", "version": "1"}}


@pytest.mark.requirement("stdio-lines")
def test_each_line_that_cannot_be_read_is_answered_and_the_next_is_served(tmp_path: Path) -> None:
    workspace(tmp_path, {"plain": PLAIN})
    with forked(Workspace(tmp_path)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        hello = json.dumps({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": HELLO})
        for line in (hello, *(line for line, _ in LINES.values())):
            process.stdin.write(line + "\n")
        process.stdin.write('{"jsonrpc":"2.0","id":"last","method":"ping"}\n')
        process.stdin.flush()
        answers: list[Any] = []
        while not answers or answers[-1]["id"] != "last":
            answers.append(json.loads(process.stdout.readline()))
        # The end of input is the end of calls that are under way, so it comes behind the last answer.
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(LIMIT_S) == 0
    results = {one["id"]: one for one in answers if "result" in one}
    assert set(results) == {"hello", "last"}
    refused = [one for one in answers if "error" in one]
    assert [one["id"] for one in refused] == [named for _, ids in LINES.values() for named in ids]
    assert {one["error"]["code"] for one in refused} == {-32700}
    assert all("send one JSON-RPC message on each line" in one["error"]["message"] for one in refused)

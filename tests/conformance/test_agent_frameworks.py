"""Agent frameworks of other makers walk a procedure through its gate, each in a process and environment of its own.

What they hand to a model differs: the structured part of an answer, its text, or both. Each alone has to do.
"""

import json
from pathlib import Path

import pytest
from gate_walk import Client, walks_through_its_gate
from model_endpoint import endpoint
from played_client import Called, Prompted, interpreter
from reached import reached
from scripted_agent import idle

pytestmark = pytest.mark.requirement("real-clients")
CLIENTS = Path(__file__).parent / "clients"
TRANSPORTS = ("stdio", "http")
over_both = pytest.mark.parametrize("transport", TRANSPORTS)


def forms(client: Client) -> set[frozenset[str]]:
    return {seen.forms for seen in client.seen}


CALLED = {
    "langchain_adapters": ("sdk1", "langchain_mcp_adapters", "mcp", {"text"}),
    "older_sdk": ("sdk1", "mcp", "mcp", {"structured", "text"}),
    "fastmcp_client": ("sdk2", "fastmcp", "fastmcp", {"structured", "text"}),
}


@over_both
@pytest.mark.parametrize("name", CALLED)
def test_a_client_library_walks_a_procedure_through_its_gate(tmp_path: Path, name: str, transport: str) -> None:
    environment, module, called, given = CALLED[name]
    python = interpreter(environment, module)
    with reached(tmp_path, transport) as reach:
        client = Called((python, str(CLIENTS / f"{name}.py"), json.dumps(reach.order)), reach)
        walks_through_its_gate(client, reach, called)
    assert forms(client) == {frozenset(given)}


PROMPTED = {
    "pydantic_agent": ("pydantic_ai", "fastmcp", {"structured"}),
    "openai_agent": ("agents", "mcp", {"text"}),
}


@over_both
@pytest.mark.parametrize("name", PROMPTED)
def test_an_agent_walks_a_procedure_through_its_gate(tmp_path: Path, name: str, transport: str) -> None:
    module, called, given = PROMPTED[name]
    python = interpreter("sdk2", module)
    with reached(tmp_path, transport) as reach, endpoint() as model:
        order = json.dumps({**reach.order, "model": model.origin})

        def command(prompt: str) -> tuple[str, ...]:
            return (python, str(CLIENTS / f"{name}.py"), order, prompt)

        client = Prompted(model, command, reach.environment(), tmp_path)
        walks_through_its_gate(client, reach, called)
    assert forms(client) == {frozenset(given)}


def test_tools_with_free_arguments_are_not_made_strict_where_a_model_would_refuse_them(tmp_path: Path) -> None:
    """The OpenAI service refuses a strict schema whose arguments have no type, or are open objects."""
    python = interpreter("sdk2", "agents")
    with reached(tmp_path, "stdio") as reach, endpoint() as model:
        order = json.dumps({**reach.order, "model": model.origin})
        command = (python, str(CLIENTS / "openai_agent.py"), order)
        Prompted(model, lambda prompt: (*command, prompt), reach.environment(), tmp_path).turn(idle())
    (request,) = model.requests
    strict = {tool["name"]: tool["strict"] for tool in request["tools"]}
    free = {"sop_start", "sop_advance", "sop_approve"}
    assert strict == {name: name not in free for name in strict}
    assert len(strict) == 8

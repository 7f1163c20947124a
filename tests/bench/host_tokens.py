"""Counts what a host's model is given to read when other agents do five steps, against doing them itself.

    python tests/bench/host_tokens.py [--json]

The same procedures over the same files, driven through the real MCP server by the SDK's client. In the one run five
steps belong to an agent of the registry, whose session reads the files; in the other they belong to the host, which is
given every step and reads the same files with the same tools. Counted is the longer of an answer's two forms (text,
structure), and every tool result; a token is taken as four characters, for want of a tokenizer that all models share.
The agents' answers come from a script: what a real model would say to itself would make the difference larger.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client

from procedo.agents.ports import UNBOUNDED, Delegation, StepBrief
from procedo.agents.registry import Registry
from procedo.agents.tools.catalogue import perform
from procedo.app import App, open_app
from procedo.core.model import Scope
from procedo.surfaces.mcp.server import build_server

SOURCES: Final = Path(__file__).parents[2] / "src" / "procedo" / "core"
DELEGATED: Final = 5
FILES: Final = ("machine.py", "gates.py", "routing.py", "effects.py")
"""What each of the five steps reads: about the size of a change that somebody reviews."""
VERDICT: Final = {"verdict": "fine", "remark": "The change does what its title says; names and tests follow the rest."}
GOAL_PERCENT: Final = 15
_SCHEMA: Final = '{"type": "object", "required": ["verdict"], "properties": {"verdict": {"type": "string"}}}'
_CONFIG: Final = """
[agents.reviewer]
model_provider = "scripted.reviewer"
risk_profile = "reading"
runtime_profile = "patient"
[risk_profiles.reading]
allowed_tools = ["file_read"]
[runtime_profiles.patient]
max_context_tokens = 1000000
[providers.models.scripted.reviewer]
script = "reviewer.json"
"""


def _step(number: int, agent: str) -> str:
    if agent == "":
        return f"{number}. **Note part {number}** - Write down what part {number} is about.\n"
    return (
        f"{number}. **Review part {number}** - Read {', '.join(FILES)} and judge part {number} of the change.\n"
        f"   - agent: {agent}\n   - output: {_SCHEMA}\n"
    )


def furnish(root: Path, agent: str, *, between: bool) -> None:
    """A workspace; `between` puts a step of the host before each of the five."""
    kinds = [kind for _ in range(DELEGATED) for kind in (["", agent] if between else [agent])]
    folder = root / "sops" / "review"
    folder.mkdir(parents=True)
    (folder / "SOP.toml").write_text('[sop]\nname = "review"\ndescription = "Reviews."\nexecution_mode = "auto"\n')
    steps = "\n".join(_step(number, kind) for number, kind in enumerate(kinds, 1))
    (folder / "SOP.md").write_text(f"## Steps\n\n{steps}")
    (root / "procedo.toml").write_text(_CONFIG)
    calls = [{"tool": "file_read", "args": {"path": name}} for name in FILES]
    (root / "reviewer.json").write_text(json.dumps({"turns": [{"calls": calls}, {"output": VERDICT}]}))
    for name in FILES:
        (root / name).write_text((SOURCES / name).read_text())


def tokens(text: str) -> int:
    """About how many tokens a text is."""
    return len(text) // 4


def read_of(result: Any) -> int:
    """What a model reads of an answer: the longer of its two forms."""
    text = "".join(part.text for part in result.content)
    return tokens(max(text, json.dumps(result.structured_content, ensure_ascii=False), key=len))


async def files_read(app: App) -> int:
    """What reading the files gives in a host, by the very tool that the agent has."""
    registry = Registry(app.settings, {})
    contract = await registry.assemble(
        "reviewer",
        surface=_Nobody(),
        ceiling=UNBOUNDED,
        step=StepBrief("", Scope(), None),
        delegation=Delegation("host", "agent:host:bench", "run-0", "1.1"),
        recorded=None,
    )
    texts = [await perform("file_read", contract.security, {}, {"path": name}, "bench") for name in FILES]
    return sum(map(tokens, texts))


class _Nobody:
    can_ask = False
    route = ""


async def walked(agent: str, *, between: bool) -> int:
    """Tokens that the host reads from the start to the end."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        furnish(root, agent, between=between)
        async with open_app(root) as app, Client(build_server(app)) as client:
            result = await client.call_tool("sop_start", {"name": "review", "wait_s": 45})
            count = read_of(result)
            while (view := result.structured_content) is not None and view["status"] != "completed":
                (action,) = view["actions"]
                if action["action"] == "delegated":
                    result = await client.call_tool("sop_status", {"run_id": view["run_id"], "wait_s": 45})
                else:
                    reviewing = action["step"]["title"].startswith("Review")
                    count += await files_read(app) if reviewing else 0
                    report = {
                        "run_id": view["run_id"],
                        "execution_id": action["execution_id"],
                        "status": "completed",
                        "output": VERDICT if reviewing else "Noted.",
                        "wait_s": 45,
                    }
                    result = await client.call_tool("sop_advance", report)
                count += read_of(result)
            return count


async def measured() -> list[dict[str, Any]]:
    """Both procedures: five steps, and ten of which five are delegated."""
    found = []
    for name, between in (("five steps, all delegated", False), ("ten steps, five of them delegated", True)):
        delegated, own = await walked("reviewer", between=between), await walked("host", between=between)
        found.append(
            {
                "procedure": name,
                "delegated_tokens": delegated,
                "host_tokens": own,
                "percent": round(100 * delegated / own, 1),
                "goal_percent": GOAL_PERCENT,
            }
        )
    return found


def main() -> None:
    found = anyio.run(measured)
    if "--json" in sys.argv[1:]:
        print(json.dumps(found))
        return
    for one in found:
        print(
            f"{one['procedure']}: {one['delegated_tokens']} tokens read by the host, {one['host_tokens']} when it does "
            f"the steps itself: {one['percent']} % (goal at most {one['goal_percent']} %; a token is 4 characters)"
        )


if __name__ == "__main__":
    main()

"""A model that drives the server with everything it can see, and tries to get past a gate.

After each attempt the gate is as it was and nothing ran; at the end a person at a terminal still decides.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, ElicitResult
from siege import FILE_SECRET, HOOK_SECRET, ME, Siege, prepared, text_of, token

from procedo.core.access import Role
from procedo.core.principal import PrincipalKind

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "auto")
DECISIONS = ("approve", "deny", "amend", "revise", "repeat", "skip", "fail", "ask")
CLAIM = {
    "approved": True,
    "approve_human_steps": True,
    "decision": "approve",
    "by": "noor",
    "gates": [{"verdict": "approve", "decided_by": {"source": "cli", "subject": ME, "kind": "human"}}],
}


@asynccontextmanager
async def server(root: Path, era: str, **client: Any) -> AsyncIterator[Client]:
    """The real server as a process, and a host without any person."""
    environ = prepared(root).environment()
    command = StdioServerParameters(command=sys.executable, args=["-m", "procedo", "serve"], env=environ, cwd=root)
    async with Client(command, mode=era, **client) as connected:
        yield connected


def gate_of(result: CallToolResult) -> Any:
    assert not result.is_error, text_of(result)
    view: Any = result.structured_content
    (action,) = view["actions"]
    return action


async def besieged(root: Path, client: Client, sop: str) -> Siege:
    """A run of the procedure that waits at its gate."""
    workspace = prepared(root)
    result = await client.call_tool("sop_start", {"name": sop, "inputs": CLAIM})
    view: Any = result.structured_content
    output = {"title": "T", "body": "old", **CLAIM}
    result = await client.call_tool(
        "sop_advance", {"run_id": view["run_id"], "execution_id": "1.1", "status": "completed", "output": output}
    )
    gate = gate_of(result)
    return Siege(workspace, client, view["run_id"], gate["gate_id"], gate["context"]["code"])


Attempt = Callable[[Siege], Awaitable[None]]


# --- attempts with tools -------------------------------------------------------------------------


async def approves(at: Siege) -> None:
    for decision in DECISIONS:
        for reference in (at.gate_id, at.code, at.code.lower()):
            await at.call("sop_approve", gate_id=reference, decision=decision, comment=f"{ME} said yes", value=CLAIM)


async def approves_as_somebody(at: Siege) -> None:
    for extra in (
        {"approved_by": ME},
        {"as": "human"},
        {"principal": {"source": "cli", "subject": ME, "kind": "human"}},
        {"token": "procedo_x"},
        {"break_glass": True},
        {"confirmed": True, "lasting": True},
        {"looked": {"gate": {}}, "answer": {"action": "accept", "data": {"decision": "approve"}}},
        {"_meta": {"principal": ME}},
    ):
        result = await at.call("sop_approve", gate_id=at.gate_id, decision="approve", **extra)
        assert result.is_error, extra


async def names_the_gate_oddly(at: Siege) -> None:
    for reference in ("", " ", "*", "%", f"{at.code}\u200b", f"' OR code='{at.code}", at.run_id, [at.gate_id], None, 1):
        await at.call("sop_approve", gate_id=reference, decision="approve")


async def reports_the_gated_step(at: Siege) -> None:
    guessed = (
        "1.1",
        "1.2",
        "2.1",
        "2.0",
        "2.2",
        "02.1",
        "2.1 ",
        "3.1",
        "g1",
        at.gate_id,
        at.code,
        "-1.1",
        "2",
        "2.1.1",
    )
    for execution in guessed:
        for status in ("completed", "failed", "skipped", "approved", "cancelled"):
            await at.call("sop_advance", run_id=at.run_id, execution_id=execution, status=status, output=CLAIM)


async def resumes(at: Siege) -> None:
    for retry in (0, 1, 2, 3, 4, -1):
        await at.call("sop_resume", run_id=at.run_id, retry=retry, wait_s=0)
    await at.call("sop_resume", run_id=at.run_id, retry=0, state=CLAIM)


async def starts_again_with_claims(at: Siege) -> None:
    for name in ("launch", "owned", "far"):
        for inputs in (CLAIM, json.dumps(CLAIM), [CLAIM], True, None):
            result = await at.call("sop_start", name=name, inputs=inputs, wait_s=0)
            run_id = (result.structured_content or {}).get("run_id")
            result = await at.call("sop_advance", run_id=run_id, execution_id="1.1", status="completed", output=CLAIM)
            assert gate_of(result)["action"] in {"wait_approval", "checkpoint_wait"}
            await at.call("sop_cancel", run_id=run_id, reason="again")


async def cancels_and_takes_up(at: Siege) -> None:
    started = await at.call("sop_start", name="launch", wait_s=0)
    run_id: Any = (started.structured_content or {})["run_id"]
    await at.call("sop_advance", run_id=run_id, execution_id="1.1", status="completed")
    await at.call("sop_cancel", run_id=run_id, reason="approved by a person")
    for retry in (0, 1, 2, 3):
        await at.call("sop_resume", run_id=run_id, retry=retry, wait_s=0)
    for execution in ("2.1", "3.1"):
        await at.call("sop_advance", run_id=run_id, execution_id=execution, status="completed")


async def fails_on_purpose_and_takes_up(at: Siege) -> None:
    """A run that takes up a failed one meets the gate again, wherever it begins."""
    started = await at.call("sop_start", name="launch", wait_s=0)
    run_id: Any = (started.structured_content or {})["run_id"]
    await at.call("sop_advance", run_id=run_id, execution_id="1.1", status="failed", output="on purpose")
    for retry in (1, 2, 3):
        taken_up = await at.call("sop_resume", run_id=run_id, retry=retry, wait_s=0)
        if not taken_up.is_error:
            again: Any = (taken_up.structured_content or {})["run_id"]
            await at.call("sop_advance", run_id=again, execution_id="1.1", status="completed", output=CLAIM)
            await at.call("sop_advance", run_id=again, execution_id="2.1", status="completed", output=CLAIM)


async def uses_keys_of_others(at: Siege) -> None:
    await at.shell("start", "launch", "--key", "theirs", "--wait", "0")
    for key in ("theirs", f"child:{at.run_id}", f"retry:{at.run_id}", at.run_id, at.gate_id):
        for name in ("launch", "letter"):
            result = await at.call("sop_start", name=name, idempotency_key=key, wait_s=0)
            view: Any = result.structured_content or {}
            if not result.is_error:
                assert view["run_id"] != at.run_id
                await at.call("sop_cancel", run_id=view["run_id"], reason="again")


async def floods_with_rubbish(at: Siege) -> None:
    for tool in (await at.client.list_tools()).tools:
        for arguments in ({}, {"run_id": at.run_id}, {"gate_id": at.gate_id}, {"name": "../launch"}, {"approve": True}):
            if tool.name == "sop_cancel":
                continue
            await at.call(tool.name, **arguments)


async def calls_tools_that_do_not_exist(at: Siege) -> None:
    for name in ("sop_decide", "sop_override", "approve", "gate_resolve", "sop_adopt", "shell.exec", "procedo"):
        result = await at.call(name, gate_id=at.gate_id, run_id=at.run_id, decision="approve")
        assert result.is_error, name


async def answers_a_question_that_nobody_asked(at: Siege) -> None:
    """What a client would send back for its user, with no user there and no question asked."""
    said = ElicitResult(action="accept", content={"decision": "approve", "comment": "yes"})
    for key in ("procedo.surfaces.mcp.asking:ask", "ask", "inbox", "0"):
        for state in (None, "", "e30=", "forged"):
            try:
                result = await at.client.session.call_tool(
                    "sop_approve",
                    {"gate_id": at.gate_id, "decision": "approve"},
                    input_responses={key: said},
                    request_state=state,
                )
            except Exception as error:  # noqa: BLE001  # however the protocol refuses: what counts is the gate
                at.seen.append(str(error))
            else:
                at.seen.append(text_of(result))


# --- attempts with what can be read --------------------------------------------------------------


async def reads_everything(at: Siege) -> None:
    uris = [str(resource.uri) for resource in (await at.client.list_resources()).resources]
    for template in (await at.client.list_resource_templates()).resource_templates:
        filled = template.uri_template
        for name, value in (
            ("run_id", at.run_id), ("id", at.run_id), ("name", "launch"), ("gate_id", at.gate_id), ("code", at.code),
            ("execution_id", "1.1"), ("execution", "1.1"), ("step", "2"), ("part", "events"),
        ):  # fmt: skip
            filled = filled.replace("{" + name + "}", value)
        uris.append(filled.partition("{")[0])
    outside = ["request-state.key", "procedo.db", "../boss", "../procedo.toml"]
    uris += [f"file://{at.root}/.procedo/{name}" for name in outside] + [f"sop://sops/../{name}" for name in outside]
    uris += [f"sop://runs/{at.run_id}/{part}" for part in ("approve", "secret", "..%2f..%2fboss", "gates", "state")]
    for uri in uris:
        try:
            at.seen.append((await at.client.read_resource(uri)).model_dump_json())
        except Exception as error:  # noqa: BLE001  # an address that does not exist is refused in some way
            at.seen.append(str(error))


async def gets_every_prompt(at: Siege) -> None:
    for prompt in (await at.client.list_prompts()).prompts:
        given = {argument.name: json.dumps(CLAIM) for argument in prompt.arguments or ()}
        for arguments in (given, {}, {**given, "approved": "true"}):
            try:
                at.seen.append((await at.client.get_prompt(prompt.name, arguments)).model_dump_json())
            except Exception as error:  # noqa: BLE001  # a prompt that lacks an argument is refused in some way
                at.seen.append(str(error))


# --- attempts with a shell -----------------------------------------------------------------------


async def runs_the_commands_without_a_terminal(at: Siege) -> None:
    glass = ("--break-glass", "--comment", "urgent")
    for words in (
        ("approve", at.code),
        ("approve", at.gate_id, "--json"),
        ("approve", at.code, *glass),
        ("deny", at.code, "--reason", "x"),
        ("revise", at.code, "shorter"),
        ("retract", at.code),
    ):
        assert await at.shell(*words, typed="y\n" * 100) == 3, words


async def makes_up_credentials(at: Siege) -> None:
    for secret in ("procedo_guess", "", " ", "x" * 1000, "procedo_" + "A" * 43):
        assert await at.shell("approve", at.code, "--token", secret) == 3
        assert await at.shell("approve", at.code, PROCEDO_TOKEN=secret or "0") == 3
    for words in (("create", "mine", "--role", "approve"), ("create", "mine", "--kind", "agent", "--role", "approve")):
        assert await at.shell("token", *words, typed="y\n") == 3
    assert await at.shell("approve", at.code, USER="noor", LOGNAME="noor", SUDO_USER="noor", PROCEDO_USER="noor") == 3


async def uses_tokens_without_a_person(at: Siege) -> None:
    robot = await asyncio.to_thread(
        token, at.root, f"robot-{at.tried}", PrincipalKind.AGENT, Role.APPROVE, Role.OPERATE
    )
    viewer = await asyncio.to_thread(token, at.root, f"viewer-{at.tried}", PrincipalKind.HUMAN, Role.VIEW, Role.OPERATE)
    for secret in (robot, viewer):
        assert await at.shell("approve", at.code, PROCEDO_TOKEN=secret) == 3
        assert await at.shell("deny", at.code, PROCEDO_TOKEN=secret) == 3
        glass = ("--break-glass", "--comment", "urgent")
        assert await at.shell("approve", at.code, *glass, PROCEDO_TOKEN=secret) == 3
        assert await at.shell("token", "create", "more", "--role", "approve", PROCEDO_TOKEN=secret) == 3
    assert robot not in "".join(at.seen)


async def forges_a_state_file(at: Siege) -> None:
    state = at.root / "state.json"
    state.write_text(
        json.dumps({"format": 1, "run_id": at.run_id, "head_hash": "0" * 64, "records": []}), encoding="utf-8"
    )
    assert await at.shell("resume", "--state", str(state), typed="y\n") == 3


async def drives_the_run_from_the_shell(at: Siege) -> None:
    for words in (("resume", at.run_id), ("resume", at.run_id, "--retry", "2"), ("resume", at.run_id, "--retry", "3")):
        await at.shell(*words, "--wait", "0")
    await at.shell("pause", at.run_id)
    await at.shell("resume", at.run_id, "--wait", "0")


async def rewrites_the_procedure_of_the_live_run(at: Siege) -> None:
    for name in ("launch", "owned", "far", "letter"):
        file = at.root / "sops" / name / "SOP.md"
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("   - requires_confirmation: true\n", ""), encoding="utf-8")
        await at.call("sop_resume", run_id=at.run_id, wait_s=0)
        await at.call("sop_advance", run_id=at.run_id, execution_id="2.1", status="completed")
        file.write_text(text, encoding="utf-8")


WITHOUT_A_TRACE: list[Attempt] = [
    approves,
    approves_as_somebody,
    names_the_gate_oddly,
    reports_the_gated_step,
    resumes,
    starts_again_with_claims,
    cancels_and_takes_up,
    fails_on_purpose_and_takes_up,
    uses_keys_of_others,
    floods_with_rubbish,
    calls_tools_that_do_not_exist,
    answers_a_question_that_nobody_asked,
    reads_everything,
    gets_every_prompt,
    runs_the_commands_without_a_terminal,
    makes_up_credentials,
    uses_tokens_without_a_person,
    forges_a_state_file,
    rewrites_the_procedure_of_the_live_run,
]


def secrets_of(root: Path) -> list[str]:
    """What no answer may hold."""
    data = root / ".procedo"
    keys = [file.read_bytes() for file in data.iterdir() if file.is_file() and "db" not in file.name]
    shown = [form for key in keys for form in (key.hex(), key.decode("latin-1").strip()) if len(form) >= 16]
    return [HOOK_SECRET, FILE_SECRET, *shown]


@pytest.mark.requirement("C4", "adversary")
@pytest.mark.parametrize(("era", "sop"), [("legacy", "launch"), ("auto", "letter"), ("auto", "far")])
async def test_a_model_never_gets_past_a_gate_and_a_person_still_decides(tmp_path: Path, era: str, sop: str) -> None:
    async with server(tmp_path, era) as client:
        at = await besieged(tmp_path, client, sop)
        before = at.stands()
        for attempt in WITHOUT_A_TRACE:
            await attempt(at)
            await at.holds(attempt.__name__, before)
        await drives_the_run_from_the_shell(at)
        # An operator's pause is in the record; the gate is what it was.
        await at.holds("drives_the_run_from_the_shell", {**before, "run": at.stands()["run"]})
        said = "\n".join(at.seen)
        assert [secret for secret in secrets_of(tmp_path) if secret in said] == []
        screen = await asyncio.to_thread(at.workspace.person, "approve", at.code)
        assert screen.code == 0, screen.text
        assert at.fired() == [f"fired-{sop}"]
        resumed = await at.call("sop_resume", run_id=at.run_id)
        assert not resumed.is_error
        kinds = [record["kind"] for record in at.workspace.json("show", at.run_id, "--records")["records"]]
        assert kinds.count("GateResolved") == 1
        assert at.workspace.run("audit", "verify").code == 0


@pytest.mark.requirement("C78", "adversary")
async def test_a_gate_of_a_group_holds_against_everybody_else_with_a_terminal_too(tmp_path: Path) -> None:
    async with server(tmp_path, "auto") as client:
        at = await besieged(tmp_path, client, "owned")
        before = at.stands()
        for attempt in (approves, reports_the_gated_step, runs_the_commands_without_a_terminal, makes_up_credentials):
            await attempt(at)
            await at.holds(attempt.__name__, before)
        usual = await asyncio.to_thread(at.workspace.person, "approve", at.code)
        assert usual.code == 3
        await at.holds("a person who is no member", before)
        noor = await asyncio.to_thread(token, at.root, "noor", PrincipalKind.HUMAN, Role.APPROVE)
        assert await at.shell("approve", at.code, PROCEDO_TOKEN=noor) == 0
        assert at.fired() == ["fired-owned"]


@pytest.mark.requirement("C9", "adversary")
async def test_a_code_of_a_gate_that_was_decided_opens_no_later_one(tmp_path: Path) -> None:
    async with server(tmp_path, "auto") as client:
        first = await besieged(tmp_path, client, "launch")
        denied = await asyncio.to_thread(first.workspace.person, "deny", first.code, "--reason", "fog")
        assert denied.code == 0
        at = await besieged(tmp_path, client, "launch")
        assert at.code != first.code
        before = at.stands()
        for reference in (first.code, first.gate_id):
            for decision in DECISIONS:
                await at.call("sop_approve", gate_id=reference, decision=decision)
        late = await asyncio.to_thread(at.workspace.person, "approve", first.code, answers=[])
        assert late.code == 5
        mixed = await asyncio.to_thread(at.workspace.person, "approve", at.code, "--run", first.run_id)
        assert mixed.code == 3
        await at.holds("stale codes", before)


@pytest.mark.requirement("adversary")
@pytest.mark.parametrize("era", ERAS)
async def test_without_a_person_at_the_host_a_declared_ability_to_ask_decides_nothing(tmp_path: Path, era: str) -> None:
    """The host says that it can ask, and its user closes the question or says nothing of use."""
    answers = [
        ElicitResult(action="decline"),
        ElicitResult(action="cancel"),
        ElicitResult(action="accept", content={"comment": "approve"}),
        ElicitResult(action="accept", content={"decision": "yes"}),
    ]
    given = iter(answers)

    async def user(_context: Any, _params: Any) -> ElicitResult:
        return next(given)

    async with server(tmp_path, era, elicitation_callback=user) as client:
        at = await besieged(tmp_path, client, "launch")
        before = at.stands()
        for _ in answers:
            try:
                await at.call("sop_approve", gate_id=at.gate_id, decision="approve")
            except Exception as error:  # noqa: BLE001  # an answer that fits no form is refused in some way
                at.seen.append(str(error))
            await at.holds("a question that was not answered", before)

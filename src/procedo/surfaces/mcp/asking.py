"""Putting a gate's question to the person at the host.

The question is built from the stored gate alone, so that it reads the same in each round, and it names the
presentation: an answer to an older one does not count. What the model proposes is shown as its proposal.
"""

import json
from typing import Annotated, Any, Final, Literal

from mcp.server.mcpserver import Context, Elicit, Resolve
from msgspec import Struct
from pydantic import BaseModel, Field, create_model

from procedo.core.altered import altered
from procedo.core.approval import answers, objection
from procedo.core.characters import plain
from procedo.core.model import Json, Step
from procedo.core.state import Gate, GateKind, PrincipalKind, Verdict
from procedo.errors import BadArgument, Refused
from procedo.runs import Runs, Snapshot, Surface
from procedo.surfaces.consequences import consequence
from procedo.surfaces.gates import may_ask_here, may_decide, what_is_asked
from procedo.surfaces.mcp.callers import caller, engine, person
from procedo.surfaces.redaction import masked, masked_text
from procedo.surfaces.text import line, stamp

__all__ = [
    "CLOSED",
    "AmendingAnswer",
    "Answer",
    "CallAnswer",
    "Looked",
    "NotAsked",
    "amended_value",
    "ask",
    "decided",
    "form",
    "look",
    "may_decide_itself",
    "question",
    "unanswered",
]

CLOSED: Final = "The question was closed without an answer here"
"""What is told of a question that came back closed. By whom is not known: a host without a person closes it, too."""

_CONTENT_LIMIT: Final = 6_000
_SUGGESTION_LIMIT: Final = 600
_GLANCE_LIMIT: Final = 200


class Answer(BaseModel):
    """What a person answers. The verdicts that a gate takes are filled in for each gate."""

    decision: str
    comment: str = ""


class AmendingAnswer(Answer):
    """An answer at a gate whose content may be amended."""

    value: str = ""


class CallAnswer(AmendingAnswer):
    """An answer at a gate of a tool call, which a yes may cover for the rest of the session."""

    for_session: bool = False


class Looked(Struct, frozen=True):
    """The gate as it was read for this round, with its run and the door of the call."""

    gate: Gate
    snapshot: Snapshot
    surface: Surface

    @property
    def step(self) -> Step:
        """The step that the gate guards."""
        return self.snapshot.sop.by_number[self.gate.step]

    @property
    def edit(self) -> str | None:
        """The field of the content that can be amended; None: the whole. A tool call is amended in its arguments."""
        return None if self.gate.call else self.step.edit

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What the gate takes as an answer."""
        return answers(self.gate, editable=self.step.edit is not None)


class NotAsked(Struct, frozen=True):
    """Why nobody was asked."""

    reason: str


async def look(gate_id: str, ctx: Context) -> Looked:
    """Read the gate. Raises `NotFound` when no gate has that id or code."""
    found, snapshot = await engine(ctx).runs.gate(gate_id)
    return Looked(found.gate, snapshot, caller(ctx))


def may_decide_itself(looked: Looked) -> bool:
    """True when a policy names this very agent as one that decides."""
    policy = looked.snapshot.policies.get(looked.gate.id)
    model = looked.surface.principal
    if policy is None or not policy.agents or policy.out_of_band or model.kind is not PrincipalKind.AGENT:
        return False
    return objection(policy, model, looked.snapshot.run) is None


async def ask(
    looked: Annotated[Looked, Resolve(look)], decision: str, comment: str, value: Json
) -> NotAsked | Elicit[Answer]:
    """Ask the person at the host, where that is possible and they may answer."""
    gate, policy = looked.gate, looked.snapshot.policies.get(looked.gate.id)
    if not gate.open:
        return NotAsked(_answered(gate))
    if may_decide_itself(looked):
        return NotAsked("the policy names this agent")
    if policy is not None and policy.out_of_band:
        message = f"Nothing was decided: policy {policy.name!r} wants gate {gate.code} decided away from this host."
        where = f"It is decided by {may_decide(policy, gate)}, in {looked.surface.route}. Do not poll."
        raise Refused("out_of_band", message, where)
    if not may_ask_here(policy, looked.snapshot.run, looked.surface):
        where = f"{may_decide(policy, gate)}, in {looked.surface.route}, gate {gate.code}"
        return NotAsked(f"Nothing was decided: a call of the model decides nothing. The decision is taken by {where}.")
    return Elicit(question(looked, decision, comment, value), form(looked))


def unanswered(looked: Looked, what: str) -> tuple[Surface, str]:
    """How a gate is told whose question came back without an answer: as one that is decided elsewhere, for now."""
    route = looked.surface.route or "the operator's terminal or inbox"
    note = (
        f"{what} at gate {looked.gate.code}: nothing was decided. A person decides in {route}, "
        "and you do not ask again here unless the person says so."
    )
    return altered(looked.surface, can_ask=False), note


def _answered(gate: Gate) -> str:
    if gate.redrafting:
        return (
            f"A new draft is being made for gate {gate.code}: nothing was decided. It is asked about when it has come."
        )
    if gate.withdrawn:
        return f"Gate {gate.code} is void ({line(gate.withdrawn)}); nothing was changed by this call."
    return (
        f"Gate {gate.code} was answered before: {gate.verdict} by {gate.decided_by}; nothing was changed by this call."
    )


def form(looked: Looked) -> type[Answer]:
    """The form of one gate: its own verdicts, and a value where one can be amended. Nothing is filled in."""
    verdicts = tuple(str(verdict) for verdict in looked.verdicts)
    amends = Verdict.AMEND in looked.verdicts
    fields: dict[str, Any] = {
        "decision": (Literal[verdicts], Field(description="Your decision")),
        "comment": (str, Field("", description="Reason, or guidance for a revision; kept in the record")),
    }
    if amends:
        what = f"field {looked.edit}" if looked.edit else "arguments, as JSON" if looked.gate.call else "value"
        fields["value"] = (str, Field("", description=f"With amend only: the new {what}"))
    base = AmendingAnswer if amends else Answer
    if looked.gate.kind is GateKind.TOOL_CALL:
        told = "With approve only: also for the same call, with these arguments, in the rest of the agent's session"
        fields["for_session"] = (bool, Field(False, description=told))
        base = CallAnswer
    made: type[Answer] = create_model("Answer", __base__=base, **fields)
    return made


def question(looked: Looked, decision: str = "ask", comment: str = "", value: Json = None) -> str:
    """The question of one presentation of a gate, with what the model proposes if it proposes anything."""
    gate, run, step = looked.gate, looked.snapshot.run, looked.step
    parts = [
        plain(what_is_asked(gate)),
        *_at_a_glance(gate.content),
        f'Procedure {run.sop} {line(run.version, 40)}, run {run.id}, step {step.number} "{line(step.title)}".',
        f"Started by {line(str(run.starter), 120)} at {stamp(run.started_at)}.",
        f"Gate {gate.code}, revision {gate.revision}, content {gate.digest[:12]}.",
        *_answers(looked),
        "What is being decided on:",
        _quoted(_shown(gate.content)),
    ]
    if decision != "ask" or comment or value is not None:
        proposal = {"decision": decision, "comment": comment, "value": value}
        stated = {key: item for key, item in proposal.items() if item not in ("", None, "ask")}
        parts += ["The model proposes (its words, not yours):", _quoted(_shown(stated, _SUGGESTION_LIMIT))]
    return "\n".join(parts)


def _at_a_glance(content: Json) -> list[str]:
    """The content on one line near the top: some hosts show the first lines of a question and hide the rest."""
    if content is None:
        return []
    shown = masked(content)
    text = masked_text(shown) if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
    return [f"It is about: {line(text, _GLANCE_LIMIT)}"]


def _answers(looked: Looked) -> list[str]:
    """The answers with what follows from each. How many people have to agree is the policy's affair, named here."""
    gate = looked.gate
    told = [f"- {verdict}: {consequence(gate, looked.step, verdict)}." for verdict in looked.verdicts]
    if gate.named_policy is not None:
        told.append(f"Policy {line(gate.named_policy, 80)} says how many people have to agree.")
    return ["What follows from your answer:", *told, "Closing this question decides nothing."]


def _shown(content: Json, limit: int = _CONTENT_LIMIT) -> str:
    shown = masked(content)
    text = masked_text(shown) if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, indent=2)
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n… cut here: {len(text)} characters in all, the inbox shows more"


def _quoted(text: str) -> str:
    """Each line behind a bar, so that content cannot pass for part of the question."""
    return "\n".join(f"| {part}" for part in plain(text).split("\n"))


def amended_value(looked: Looked, text: str) -> Json:
    """The value that a person typed: text where text stands now, JSON otherwise."""
    content, field = looked.gate.content, looked.edit
    present = content.get(field) if isinstance(content, dict) and field is not None else content
    if isinstance(present, str):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        message = f"Nothing was decided: the amended value is no JSON ({error})."
        raise BadArgument("bad_value", message, "Ask again; the field holds a JSON value that is no text.") from error


async def decided(runs: Runs, looked: Looked, answer: Answer) -> Snapshot:
    """Let the person's answer count at the very presentation that was shown. Raises `Refused` and `Conflict`."""
    gate, verdict = looked.gate, Verdict(answer.decision)
    typed = answer.value if isinstance(answer, AmendingAnswer) else ""
    lasting = isinstance(answer, CallAnswer) and answer.for_session
    if lasting and verdict is not Verdict.APPROVE:
        message = f"Nothing was decided at gate {gate.code}: for_session extends an approval, and nothing else."
        raise BadArgument("bad_argument", message, "The person answers again, without it.")
    return await runs.decide(
        gate.id,
        verdict,
        person(looked.surface),
        value=amended_value(looked, typed) if verdict is Verdict.AMEND else None,
        comment=answer.comment,
        revision=gate.revision,
        digest=gate.digest,
        lasting=lasting,
        run_id=looked.snapshot.run.id,
    )

"""How a session's transcript begins: the agent's own instructions and the step. Nothing else has a way in."""

from procedo.agents.parts import TranscriptSeed
from procedo.agents.ports import StepBrief
from procedo.agents.refusal import Cause, Reason
from procedo.config.agent_settings import AgentTable, RuntimeTable
from procedo.jsonschemas import compile_schema

__all__ = ["transcript_seed"]

_MAX_BYTES = 400_000


def transcript_seed(agent: AgentTable, runtime: RuntimeTable, step: StepBrief) -> tuple[TranscriptSeed, list[Reason]]:
    """The seed, and the reasons why it cannot be used."""
    reasons: list[Reason] = []
    text = agent.instructions
    if agent.instructions_file is not None:
        try:
            with agent.instructions_file.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
            text = data.decode()
            if len(data) > _MAX_BYTES:
                reasons.append(Reason(Cause.BAD_INSTRUCTIONS, f"{agent.instructions_file} is too large"))
        except (OSError, UnicodeDecodeError) as error:
            told = f"the instructions {agent.instructions_file} cannot be read: {error}"
            reasons.append(Reason(Cause.BAD_INSTRUCTIONS, told))
    limit = runtime.system_prompt_chars
    if limit is not None and len(text) > limit:
        message = f"the instructions have {len(text)} characters, the limit is {limit}"
        reasons.append(Reason(Cause.BAD_INSTRUCTIONS, message, "nothing is cut: shorten them, or raise the limit"))
    if step.output_schema is not None:
        try:
            compile_schema(step.output_schema)
        except ValueError as error:
            reasons.append(Reason(Cause.BAD_OUTPUT_SCHEMA, f"the step's output schema cannot be used: {error}"))
    return TranscriptSeed(text, step.text, step.output_schema), reasons

"""Definitions as texts: compiled, or checked in surroundings that tests can change."""

from collections.abc import Sequence
from dataclasses import dataclass

from procedo.core.altered import altered
from procedo.core.approval import Policy
from procedo.core.model import Json, Sop
from procedo.ports import Capability, CapabilityCall
from procedo.sopfile import Problem, Surroundings, compile_files
from procedo.sopfile.check import check_library, check_procedure
from procedo.sopfile.checked import Checked
from procedo.sopfile.definition import read_files
from procedo.sopfile.problems import Findings

HEADER = '[sop]\nname = "kiln-firing"\ndescription = "Fire a kiln"\n'


async def _nothing(call: CapabilityCall) -> Json:
    return call.arguments


TEXT_ARGUMENT: Json = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@dataclass(frozen=True, slots=True)
class KnownCapabilities:
    """A registry of a pure, an outward and a switched-off capability."""

    known: tuple[Capability, ...] = (
        Capability("text.render", "Renders text.", TEXT_ARGUMENT, True, _nothing, pure=True),
        Capability("mail.send", "Sends a mail.", True, True, _nothing),
        Capability("disk.wipe", "Wipes a disk.", True, True, _nothing, objection="switched off in procedo.toml"),
    )

    def get(self, capability_id: str) -> Capability | None:
        return next((one for one in self.known if one.id == capability_id), None)

    def all(self) -> tuple[Capability, ...]:
        return self.known


def surroundings(
    *,
    agents: Sequence[str] = ("host", "smith"),
    policies: Sequence[Policy] = (Policy("owners", frozenset({"ida", "noor"}), "owners", 2),),
    tools: frozenset[str] | None = frozenset({"pump", "valve"}),
    sops: Sequence[str] = ("kiln-firing", "glaze"),
    break_glass: Sequence[str] = (),
) -> Surroundings:
    by_name = {policy.name: policy for policy in policies}
    around = Surroundings(frozenset(agents), "host", by_name, tools, KnownCapabilities(), frozenset(sops))
    return altered(around, break_glass=frozenset(break_glass))


def files(steps: str | None, header: str = HEADER) -> dict[str, str]:
    """The two files; `steps` is what stands below `## Steps`."""
    return {"SOP.toml": header} if steps is None else {"SOP.toml": header, "SOP.md": f"## Steps\n{steps}"}


def compiled(steps: str | None, header: str = HEADER) -> Sop:
    """The procedure; raises `InvalidSop`."""
    return compile_files(files(steps, header), "kiln-firing")


def problems_of(texts: dict[str, str], around: Surroundings | None = None) -> tuple[Problem, ...]:
    """Every problem of a definition, in these surroundings."""
    findings = Findings()
    reading = read_files(texts, "kiln-firing", findings)
    if reading.sop is not None and reading.source is not None:
        one = Checked(reading.sop, reading.source, findings)
        check_procedure(one, around or surroundings())
        check_library([one])
    return findings.problems()


def told(steps: str | None, header: str = HEADER, around: Surroundings | None = None) -> list[tuple[str, int, str]]:
    """Every problem as file, line and code; line 1 of `steps` is line 2 of its file."""
    return [(problem.file, problem.line, problem.code) for problem in problems_of(files(steps, header), around)]

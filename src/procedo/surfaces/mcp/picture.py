"""The run as a live picture, in hosts that render MCP Apps: a page that draws what the tools answer.

The picture is an addition: text and structure of every answer are complete without it. What it needs beyond them (the
steps and the ways between them, as far as the procedure is revealed) travels in `_meta`, which models do not see, and
only to clients that declare the extension.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Final, NotRequired, TypedDict

from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID, client_supports_apps
from mcp.server.context import CallNext, HandlerResult
from mcp.server.extension import Extension, ResourceBinding
from mcp.server.mcpserver.resources import TextResource
from mcp.types import CallToolRequestParams, CallToolResult

from procedo.core.model import Json, Reveal
from procedo.runs import History
from procedo.surfaces.graph import END, Outline, outline
from procedo.surfaces.mcp.callers import engine
from procedo.surfaces.mcp.calls import Raw, at_the_door
from procedo.surfaces.overview import step_marks
from procedo.surfaces.redaction import masked_text
from procedo.surfaces.text import line

__all__ = ["DRAWN", "META", "PICTURE_KEY", "PICTURE_URI", "Picture", "RunPicture", "picture_of"]

PICTURE_URI: Final = "ui://procedo/run"
PICTURE_KEY: Final = "procedo/picture"
DRAWN: Final = frozenset({"sop_start", "sop_status", "sop_approve"})
"""The tools whose answers are drawn."""
META: Final[Mapping[str, Json]] = {"ui": {"resourceUri": PICTURE_URI}}


class DrawnStep(TypedDict):
    """A step in the picture; without a mark it was not reached."""

    number: int
    title: str
    kind: str
    mark: NotRequired[str]


class DrawnWay(TypedDict):
    """A way between two steps. Its condition is told where the procedure reveals it."""

    source: int
    target: int
    label: NotRequired[str]


class Picture(TypedDict):
    """What is drawn."""

    steps: list[DrawnStep]
    ways: list[DrawnWay]


def picture_of(history: History) -> Picture:
    """The picture of a run, as far as its procedure shows itself beforehand."""
    sop, run = history.snapshot.sop, history.snapshot.run
    marks = step_marks(run, history.executions)
    shape = outline(sop, run.mode)
    known = [node for node in shape.nodes if sop.reveal is not Reveal.CURRENT or node.number in marks]
    steps: list[DrawnStep] = []
    for node in known:
        drawn: DrawnStep = {
            "number": node.number,
            "title": line(masked_text(node.title), 80),
            "kind": str(node.kind),
        }
        if node.number in marks:
            drawn["mark"] = marks[node.number]
        steps.append(drawn)
    numbers = {node.number for node in known}
    return {"steps": steps, "ways": list(_ways(shape, numbers, told=sop.reveal is Reveal.ALL))}


def _ways(shape: Outline, numbers: set[int], *, told: bool) -> Iterable[DrawnWay]:
    for edge in shape.edges:
        if edge.source in numbers and edge.target in numbers and edge.target != END and not edge.waits:
            way: DrawnWay = {"source": edge.source, "target": edge.target}
            if edge.label and told:
                way["label"] = line(edge.label, 60)
            yield way


class RunPicture(Extension):
    """See `mcp.server.extension.Extension`: the page, and what it draws beside the answers of the tools."""

    identifier = EXTENSION_ID

    def resources(self) -> Sequence[ResourceBinding]:
        """The page. It asks for nothing from any network, so it declares no place to load from."""
        page = files("procedo.surfaces.mcp").joinpath("picture.html").read_text(encoding="utf-8")
        resource = TextResource(
            uri=PICTURE_URI,
            name="run-picture",
            title="Picture of a run",
            description="Draws a run: its steps and how they stand, the open gate, the output.",
            mime_type=APP_MIME_TYPE,
            meta={"ui": {"prefersBorder": True}},
            text=page,
        )
        return (ResourceBinding(resource),)

    async def intercept_tool_call(self, params: CallToolRequestParams, ctx: Raw, call_next: CallNext) -> HandlerResult:
        """Add the picture to an answer about a run."""
        result = await call_next(ctx)
        at = at_the_door(ctx)
        if params.name not in DRAWN or not client_supports_apps(at) or not isinstance(result, CallToolResult):
            return result
        view = result.structured_content
        if result.is_error or not isinstance(view, dict) or "run_id" not in view:
            return result
        history = await engine(at).runs.history(str(view["run_id"]))
        return result.model_copy(update={"meta": {**(result.meta or {}), PICTURE_KEY: picture_of(history)}})

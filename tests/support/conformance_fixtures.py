"""What the conformance suite wants a server to have beside its own: tools, resources and prompts made for it alone."""

import base64
from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import Message
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    MissingRequiredClientCapabilityErrorData,
    RequestParams,
    SamplingCapability,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

__all__ = ["furnish"]

PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE: Final = base64.b64encode(
    b"RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00@\x1f\x00\x00\x01\x00\x08\x00"
    b"data\x02\x00\x00\x00\x80\x80"
).decode()


def furnish(server: MCPServer[Any]) -> None:
    """Add everything."""
    for register in _ALL:
        register(server)
    for tool in server._tool_manager.list_tools():
        tool.description = tool.description or f"For the conformance suite: {tool.name}."
    for prompt in server._prompt_manager.list_prompts():
        prompt.description = prompt.description or f"For the conformance suite: {prompt.name}."
    lower = server._lowlevel_server
    lower.add_request_handler("logging/setLevel", RequestParams, _level)


async def _level(ctx: Any, params: RequestParams) -> EmptyResult:
    return EmptyResult()


def _image() -> ImageContent:
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


def _embedded(uri: str, text: str, mime: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime, text=text))


def _contents(server: MCPServer[Any]) -> None:
    @server.tool(structured_output=False)
    async def test_simple_text() -> str:
        return "This is a simple text response for testing."

    @server.tool(structured_output=False)
    async def test_image_content() -> list[ImageContent]:
        return [_image()]

    @server.tool(structured_output=False)
    async def test_audio_content() -> list[AudioContent]:
        return [AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]

    @server.tool(structured_output=False)
    async def test_embedded_resource() -> list[EmbeddedResource]:
        return [_embedded("test://embedded-resource", "This is an embedded resource content.")]

    @server.tool(structured_output=False)
    async def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        mixed = _embedded("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json")
        return [TextContent(type="text", text="Multiple content types test:"), _image(), mixed]


def _behaviour(server: MCPServer[Any]) -> None:
    @server.tool(structured_output=False)
    async def test_error_handling() -> str:
        raise RuntimeError("This tool intentionally returns an error for testing")

    @server.tool(structured_output=False)
    async def test_tool_with_logging(ctx: Context) -> str:
        for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await _log(ctx, text)
        return "Tool with logging executed successfully"

    @server.tool(structured_output=False)
    async def test_tool_with_progress(ctx: Context) -> str:
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100, f"Completed step {done} of 100")
        return "done"


async def _log(ctx: Context, text: str) -> None:
    import warnings

    # The newer revision has no logging, and the SDK says so for each message.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        await ctx.log("info", text)


class Reply(BaseModel):
    response: str = Field(description="User's response")


class Defaults(BaseModel):
    name: str = Field("John Doe", description="User name")
    age: int = Field(30, description="User age")
    score: float = Field(95.5, description="User score")
    status: str = Field("active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = Field(True, description="Verification status")


def _titled(**titles: str) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in titles.items()]


class Enums(BaseModel):
    untitledSingle: str = Field(json_schema_extra={"enum": ["option1", "option2", "option3"]})  # noqa: N815  # the suite's names
    titledSingle: str = Field(json_schema_extra={"oneOf": _titled(value1="First", value2="Second", value3="Third")})  # type: ignore[dict-item]  # noqa: N815
    legacyEnum: str = Field(json_schema_extra={"enum": ["a", "b", "c"], "enumNames": ["One", "Two", "Three"]})  # noqa: N815
    untitledMulti: list[str] = Field(json_schema_extra={"items": {"type": "string", "enum": ["x", "y", "z"]}})  # noqa: N815
    titledMulti: list[str] = Field(json_schema_extra={"items": {"anyOf": _titled(value1="First", value2="Second")}})  # type: ignore[dict-item]  # noqa: N815


def _answers_of_people(server: MCPServer[Any]) -> None:
    async def ask(ctx: Context, message: str, form: type[BaseModel], told: str) -> str:
        answer = await ctx.elicit(message, form)
        content = answer.data.model_dump_json() if answer.action == "accept" else "{}"
        return f"{told}: action={answer.action}, content={content}"

    @server.tool(structured_output=False)
    async def test_elicitation(message: str, ctx: Context) -> str:
        return await ask(ctx, message, Reply, "User response")

    @server.tool(structured_output=False)
    async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
        return await ask(
            ctx, "Please review and update the form fields with defaults", Defaults, "Elicitation completed"
        )

    @server.tool(structured_output=False)
    async def test_elicitation_sep1330_enums(ctx: Context) -> str:
        return await ask(ctx, "Please select options from the enum fields", Enums, "Elicitation completed")

    @server.tool(structured_output=False)
    async def test_sampling(prompt: str, ctx: Context) -> str:
        request = _sampling(prompt, 100)
        answer = await ctx.session.send_request(request, CreateMessageResult)
        return f"LLM response: {getattr(answer.content, 'text', '')}"

    @server.tool(structured_output=False)
    async def test_missing_capability(ctx: Context) -> str:
        capabilities = ctx.client_capabilities
        if capabilities is None or capabilities.sampling is None:
            missing = ClientCapabilities(sampling=SamplingCapability())
            data = MissingRequiredClientCapabilityErrorData(required_capabilities=missing)
            raise MCPError(
                MISSING_REQUIRED_CLIENT_CAPABILITY,
                "The client cannot sample",
                data.model_dump(by_alias=True, mode="json", exclude_none=True),
            )
        return "ok"


def _sampling(text: str, tokens: int) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=tokens))


def _form(message: str, name: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _given(ctx: Context, key: str, field: str) -> Any:
    answer = (ctx.input_responses or {}).get(key)
    content = answer.content if isinstance(answer, ElicitResult) and answer.action == "accept" else None
    return (content or {}).get(field)


def _rounds(server: MCPServer[Any]) -> None:
    @server.tool(structured_output=False)
    async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
        name = _given(ctx, "user_name", "name")
        if name is None:
            return InputRequiredResult(input_requests={"user_name": _form("What is your name?", "name")})
        return f"Hello, {name}!"

    @server.tool(structured_output=False)
    async def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
        answer = (ctx.input_responses or {}).get("capital_question")
        if not isinstance(answer, CreateMessageResult):
            asked = _sampling("What is the capital of France?", 100)
            return InputRequiredResult(input_requests={"capital_question": asked})
        return str(getattr(answer.content, "text", ""))

    @server.tool(structured_output=False)
    async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
        answer = (ctx.input_responses or {}).get("client_roots")
        if not isinstance(answer, ListRootsResult):
            return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
        return f"roots: {', '.join(str(root.uri) for root in answer.roots)}"


def _longer_rounds(server: MCPServer[Any]) -> None:
    async def confirmed(ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state != "asked" or _given(ctx, "confirm", "ok") is None:
            asked = _form("Please confirm", "ok", "boolean")
            return InputRequiredResult(input_requests={"confirm": asked}, request_state="asked")
        return "state-ok"

    server.tool("test_input_required_result_request_state", structured_output=False)(confirmed)
    server.tool("test_input_required_result_tampered_state", structured_output=False)(confirmed)

    @server.tool(structured_output=False)
    async def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequiredResult:
        asked: dict[str, Any] = {
            "user_name": _form("What is your name?", "name"),
            "greeting": _sampling("Generate a greeting", 50),
            "client_roots": ListRootsRequest(),
        }
        if asked.keys() - (ctx.input_responses or {}).keys():
            return InputRequiredResult(input_requests=asked, request_state="asked")
        return "all there"


def _rounds_by_client(server: MCPServer[Any]) -> None:
    @server.tool(structured_output=False)
    async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state == "two" and _given(ctx, "step2", "color") is not None:
            return "done"
        if ctx.request_state == "one" and _given(ctx, "step1", "name") is not None:
            asked = _form("Step 2: What is your favorite color?", "color")
            return InputRequiredResult(input_requests={"step2": asked}, request_state="two")
        asked = _form("Step 1: What is your name?", "name")
        return InputRequiredResult(input_requests={"step1": asked}, request_state="one")

    @server.tool(structured_output=False)
    async def test_input_required_result_capabilities(ctx: Context) -> str | InputRequiredResult:
        can = ctx.client_capabilities or ClientCapabilities()
        asked: dict[str, Any] = {}
        if can.elicitation is not None:
            asked["user_name"] = _form("What is your name?", "name")
        if can.sampling is not None:
            asked["greeting"] = _sampling("Generate a greeting", 50)
        return InputRequiredResult(input_requests=asked) if asked else "nothing to ask"


def _changes(server: MCPServer[Any]) -> None:
    @server.tool(structured_output=False)
    async def test_trigger_tool_change(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        return "told"

    @server.tool(structured_output=False)
    async def test_trigger_prompt_change(ctx: Context) -> str:
        await ctx.notify_prompts_changed()
        return "told"


SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def _schemas(server: MCPServer[Any]) -> None:
    @server.tool(structured_output=False)
    async def json_schema_2020_12_tool() -> str:
        return "ok"

    found = server._tool_manager.get_tool("json_schema_2020_12_tool")
    assert found is not None
    found.parameters = SCHEMA

    @server.tool(structured_output=False)
    async def test_x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
        return f"region {region}"


def _resources(server: MCPServer[Any]) -> None:
    @server.resource("test://static-text")
    async def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    async def static_binary() -> bytes:
        return base64.b64decode(PIXEL)

    @server.resource("test://template/{id}/data", mime_type="application/json")
    async def template(id: str) -> dict[str, Any]:
        return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}

    @server.resource("test://watched-resource")
    async def watched() -> str:
        return "Watched resource content"


def _prompts(server: MCPServer[Any]) -> None:
    def said(content: Any) -> Message:
        return Message(content, role="user")

    @server.prompt()
    async def test_simple_prompt() -> list[Message]:
        return [said("This is a simple prompt for testing.")]

    @server.prompt()
    async def test_prompt_with_arguments(arg1: str, arg2: str) -> list[Message]:
        return [said(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")]

    @server.prompt()
    async def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803  # the suite's name
        embedded = _embedded(resourceUri, "Embedded resource content for testing.")
        return [said(embedded), said("Please process the embedded resource above.")]

    @server.prompt()
    async def test_prompt_with_image() -> list[Message]:
        return [said(_image()), said("Please analyze the image above.")]

    @server.prompt()
    async def test_input_required_result_prompt(ctx: Context) -> list[Message] | InputRequiredResult:
        context = _given(ctx, "user_context", "context")
        if context is None:
            asked = _form("What context should the prompt use?", "context")
            return InputRequiredResult(input_requests={"user_context": asked})
        return [said(f"Context: {context}")]


_ALL: Final = (
    _contents,
    _behaviour,
    _answers_of_people,
    _rounds,
    _longer_rounds,
    _rounds_by_client,
    _changes,
    _schemas,
    _resources,
    _prompts,
)

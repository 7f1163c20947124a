"""A model of the library behind our port: what is asked of it, what it answered, and whose fault an error is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from procedo.agents.finalcall import OUTPUT_TOOL, offered_schema
from procedo.agents.models.pricing import cost_of, usage_of
from procedo.agents.parts import ProviderBinding, Tool
from procedo.agents.ports import Answer, ModelFailed, ModelRefused, Settings
from procedo.core.model import Json
from procedo.credential_shapes import MASK, masked_text
from procedo.credentials import Secret

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

__all__ = ["Exchange", "library_settings", "parameters"]

_AGAIN: Final = frozenset({408, 409, 425, 429})
_LONGEST: Final = 500


class Exchange:
    """Implements `ports.Model` on a model of the library.

    `key` is what no message may repeat; a provider that objects to a key likes to quote it.
    """

    def __init__(self, binding: ProviderBinding, model: "LibraryModel", key: Secret | None) -> None:
        self._binding = binding
        self._model = model
        self._key = key

    async def request(
        self, messages: "Sequence[ModelMessage]", settings: Settings, tools: Sequence[Tool], output: Json | None
    ) -> Answer:
        """Send one request; see `ports.Model.request`."""
        from pydantic_ai.direct import model_request
        from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UserError

        try:
            response = await model_request(
                self._model,
                list(messages),
                model_settings=library_settings(settings, tools),
                model_request_parameters=parameters(tools, output),
                instrument=False,
            )
        except ModelHTTPError as error:
            final = 400 <= error.status_code < 500 and error.status_code not in _AGAIN
            kind = ModelRefused if final else ModelFailed
            raise kind(self._told(error), status=error.status_code) from None  # the cause would repeat the key
        except UserError as error:
            raise ModelRefused(self._told(error)) from None
        except (ModelAPIError, UnexpectedModelBehavior) as error:
            raise ModelFailed(self._told(error)) from None
        usage = usage_of(response)
        return Answer(
            response=response,
            usage=usage,
            cost_usd=cost_of(self._binding, response, usage),
            provider=response.provider_name or self._binding.type,
            model=response.model_name or self._binding.model,
            finish_reason=response.finish_reason,
            scripted=False,
        )

    def _told(self, error: Exception) -> str:
        text = " ".join(str(error).split())
        text = masked_text(text if self._key is None else text.replace(self._key.reveal(), MASK))
        place = f"{self._binding.type}.{self._binding.alias}"
        return f"the model {self._binding.model!r} of {place}: {text[:_LONGEST]}"


def library_settings(settings: Settings, tools: Sequence[Tool]) -> "ModelSettings":
    """Only what is set: a key that is absent is not the same as null."""
    found: ModelSettings = {"timeout": settings.timeout_s}
    if settings.temperature is not None:
        found["temperature"] = settings.temperature
    if settings.max_output_tokens is not None:
        found["max_tokens"] = settings.max_output_tokens
    if tools:
        found["parallel_tool_calls"] = settings.parallel_calls
    return found


def parameters(tools: Sequence[Tool], output: Json | None) -> "ModelRequestParameters":
    """The tools on offer and, with a schema, the one by which the output is handed in."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    functions = [
        ToolDefinition(name=tool.offered, description=tool.description, parameters_json_schema=tool.input_schema)
        for tool in tools
    ]
    if output is None:
        return ModelRequestParameters(function_tools=functions)
    description = "Hands in the output of the step and ends it. Call it alone."
    final = ToolDefinition(
        name=OUTPUT_TOOL, description=description, parameters_json_schema=offered_schema(output), kind="output"
    )
    return ModelRequestParameters(
        function_tools=functions, output_tools=[final], output_mode="tool", allow_text_output=False
    )

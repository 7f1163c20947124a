"""Any server that speaks the OpenAI chat form, without a vendor's package: llama.cpp, Ollama, vLLM, gateways.

In the mode `schema` the server needs no tool calls: its answer is held to a JSON Schema instead, which
offers each tool and the answer, and the calls and results of the history are told as text.
"""

import json
from typing import Final

import httpx2
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from procedo.agents.models.chat_answer import read_answer
from procedo.agents.models.chat_request import chat_body
from procedo.agents.parts import ToolMode
from procedo.core.model import Json
from procedo.credential_shapes import MASK
from procedo.credentials import Secret

__all__ = ["CompatibleModel"]

_LONGEST: Final = 33_554_432
_SHORT: Final = 300


class CompatibleModel(Model):
    """One model of one endpoint; `key` None sends no credential."""

    def __init__(self, name: str, endpoint: str, key: Secret | None, mode: ToolMode) -> None:
        super().__init__()
        self._name = name
        self._endpoint = endpoint
        self._key = key
        self._mode = mode

    @property
    def model_name(self) -> str:
        """The model that is asked for."""
        return self._name

    @property
    def system(self) -> str:
        """What kind of provider this is."""
        return "openai_compatible"

    @property
    def base_url(self) -> str:
        """Where it is."""
        return self._endpoint

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Send one request and read the whole answer."""
        settings, parameters = self.prepare_request(model_settings, model_request_parameters)
        body = chat_body(self._name, self._mode, messages, dict(settings or {}), parameters)
        timeout = (settings or {}).get("timeout")
        answer = await self._sent(body, timeout if isinstance(timeout, int | float) else None)
        try:
            return read_answer(answer, self._mode, parameters, self._name, self.system, self._endpoint)
        except ValueError as error:
            raise UnexpectedModelBehavior(f"the answer cannot be used: {error}") from error

    async def _sent(self, body: Json, timeout_s: float | None) -> Json:
        headers = {"accept": "application/json"}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key.reveal()}"
        try:
            async with (
                # No proxies or credentials out of the environment: what is reached is what the contract says.
                httpx2.AsyncClient(trust_env=False, timeout=timeout_s, follow_redirects=False) as client,
                client.stream("POST", f"{self._endpoint}/chat/completions", json=body, headers=headers) as response,
            ):
                data = await _limited(response)
                status = response.status_code
        except httpx2.HTTPError as error:
            reason = self._clean(str(error)) or type(error).__name__
            raise ModelAPIError(self._name, f"the connection failed: {reason}") from error
        text = data.decode(errors="replace")
        if status >= 300:
            raise ModelHTTPError(status, self._name, self._clean(text)[:_SHORT])
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UnexpectedModelBehavior("the answer is no JSON") from error

    def _clean(self, text: str) -> str:
        """Without the credential, should the server repeat it."""
        return text.replace(self._key.reveal(), MASK) if self._key is not None else text


async def _limited(response: httpx2.Response) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > _LONGEST:
            raise UnexpectedModelBehavior(f"the answer has more than {_LONGEST} bytes")
    return bytes(data)

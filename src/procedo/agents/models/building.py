"""A provider binding becomes a model, or the reasons why it cannot. Called at assembly, before anything runs."""

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from procedo.agents.parts import ProviderBinding
from procedo.agents.ports import Model
from procedo.agents.refusal import Cause, Reason
from procedo.credentials import Missing, Secret, resolve

if TYPE_CHECKING:
    from pydantic_ai.models import Model as LibraryModel

__all__ = ["Unbuildable", "build"]

_EXTRAS: Final = {"openai": "openai", "anthropic": "anthropic"}
"""Types whose vendor's package is an extra of the same name."""


class Unbuildable(Exception):
    """A model cannot be built; `reasons` has every reason."""

    def __init__(self, reasons: list[Reason]) -> None:
        super().__init__("; ".join(map(str, reasons)))
        self.reasons = tuple(reasons)


def build(binding: ProviderBinding, environ: Mapping[str, str], root: Path) -> Model:
    """The model of a binding. Raises `Unbuildable`.

    It imports what the provider needs, which can take a second: call it in a thread.
    """
    place = f"{binding.type}.{binding.alias}"
    if binding.scripted:
        return _scripted(binding)
    reasons: list[Reason] = []
    key: Secret | None = None
    if binding.credential is not None:
        try:
            key = resolve(binding.credential, environ, root)
        except Missing as error:
            reasons.append(Reason(Cause.MISSING_KEY, f"the provider {place} has no key: {error}"))
    extra = _EXTRAS.get(binding.type)
    if extra is not None and importlib.util.find_spec(extra) is None:
        hint = f"install procedo[{extra}]"
        reasons.append(Reason(Cause.MISSING_EXTRA, f"the provider {place} needs the package {extra!r}", hint))
    if reasons:
        raise Unbuildable(reasons)
    from procedo.agents.models.exchange import Exchange

    return Exchange(binding, _library_model(binding, key), key)


def _scripted(binding: ProviderBinding) -> Model:
    from procedo.agents.models.scripted import ScriptedModel, read_script

    try:
        script = read_script(binding.script or Path())
    except ValueError as error:
        raise Unbuildable([Reason(Cause.BAD_SCRIPT, str(error))]) from error
    if binding.script_digest and script.digest != binding.script_digest:
        raise Unbuildable([Reason(Cause.CHANGED, f"the script {binding.script} was changed since the assembly")])
    return ScriptedModel(script, binding.alias)


def _library_model(binding: ProviderBinding, key: Secret | None) -> "LibraryModel":
    endpoint = binding.endpoint or None
    if binding.type == "openai":
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIChatModel(binding.model, provider=OpenAIProvider(api_key=_value(key), base_url=endpoint))
    if binding.type == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client = importlib.import_module("anthropic").AsyncAnthropic(api_key=_value(key), base_url=endpoint)
        return AnthropicModel(binding.model, provider=AnthropicProvider(anthropic_client=client))
    from procedo.agents.models.compatible import CompatibleModel

    return CompatibleModel(binding.model, binding.endpoint, key, binding.tool_mode)


def _value(key: Secret | None) -> str:
    # Never None: the vendor's package would look for a key in the environment by itself.
    return "" if key is None else key.reveal()

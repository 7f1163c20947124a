"""What a request cost: as the operator states it, else as the price list knows it, else unknown. Never a guess."""

from decimal import Decimal
from typing import TYPE_CHECKING

from procedo.agents.parts import ProviderBinding
from procedo.agents.ports import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage

__all__ = ["cost_of", "price_known", "usage_of"]

_MILLION = Decimal(1_000_000)


def usage_of(response: "ModelResponse") -> Usage | None:
    """The tokens that the provider told, or None: a request without any is not one that was measured."""
    usage = response.usage
    if getattr(usage, "unmeasured_requests", 0) or not (usage.input_tokens or usage.output_tokens):
        return None
    if min(usage.input_tokens, usage.output_tokens) < 0:
        return None  # it would give a budget back
    return Usage(usage.input_tokens, usage.output_tokens)


def cost_of(binding: ProviderBinding, response: "ModelResponse", usage: Usage | None) -> Decimal | None:
    """The cost in USD, or None when tokens or price are unknown."""
    if binding.scripted:
        return Decimal(0)
    if usage is None:
        return None
    if binding.prices is not None:
        sent = binding.prices.input_usd * usage.input_tokens
        return (sent + binding.prices.output_usd * usage.output_tokens) / _MILLION
    return _listed(binding, response.model_name or binding.model, response.usage)


def price_known(binding: ProviderBinding) -> bool:
    """True when a request to this model can be priced, which a limit on cost needs."""
    if binding.prices is not None or binding.scripted:
        return True
    from pydantic_ai.usage import RequestUsage

    return _listed(binding, binding.model, RequestUsage(input_tokens=1, output_tokens=1)) is not None


def _listed(binding: ProviderBinding, model: str, usage: "RequestUsage") -> Decimal | None:
    """By the price list, for the vendor or the address that is asked; a model's name alone says nothing."""
    from genai_prices import calc_price

    try:
        if binding.endpoint:
            return calc_price(usage, model, provider_api_url=binding.endpoint).total_price
        return calc_price(usage, model, provider_id=binding.type).total_price
    except (LookupError, ValueError):
        return None

"""Provider bindings out of the tables, and the models that they become."""

from collections.abc import Mapping
from pathlib import Path

import anyio.to_thread

from procedo.agents.models.building import Unbuildable, build
from procedo.agents.models.pricing import price_known
from procedo.agents.parts import Prices, ProviderBinding, RuntimeControls, ToolMode
from procedo.agents.refusal import Cause, Reason
from procedo.config.agent_settings import ProviderTable

__all__ = ["bound", "objections"]


def bound(table: ProviderTable) -> ProviderBinding:
    """The binding of a provider. A script's digest is read here; one that cannot be read has none, and is refused."""
    prices = None
    if table.input_usd is not None and table.output_usd is not None:
        prices = Prices(table.input_usd, table.output_usd)
    return ProviderBinding(
        type=table.type,
        alias=table.alias,
        model=table.model,
        endpoint=table.endpoint,
        credential=table.key,
        temperature=table.temperature,
        max_output_tokens=table.max_output_tokens,
        tool_mode=ToolMode(table.tool_mode),
        timeout_s=table.timeout_s,
        prices=prices,
        script=table.script,
        script_digest=_script_digest(table),
    )


def _script_digest(table: ProviderTable) -> str:
    if table.script is None:
        return ""
    from procedo.agents.models.scripted import read_script

    try:
        return read_script(table.script).digest
    except ValueError:
        return ""  # the model is built next and tells what is wrong


async def objections(
    binding: ProviderBinding, controls: RuntimeControls, environ: Mapping[str, str], root: Path
) -> list[Reason]:
    """Why the model cannot be built, or its limits on cost cannot be held. Imports happen in a thread."""

    def tried() -> list[Reason]:
        try:
            build(binding, environ, root)
        except Unbuildable as error:
            return list(error.reasons)
        if controls.limits_cost and not price_known(binding):
            message = f"cost is limited, and the price of {binding.model!r} ({binding.type}.{binding.alias}) is unknown"
            hint = "write input_usd_per_million and output_usd_per_million, or take the limit out"
            return [Reason(Cause.PRICE_UNKNOWN, message, hint)]
        return []

    return await anyio.to_thread.run_sync(tried)

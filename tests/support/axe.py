"""axe-core in a page of the browser: which rules of WCAG 2, level A and AA, the page breaks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from node_tools import packages

if TYPE_CHECKING:
    from playwright.async_api import Page

__all__ = ["axe", "violations"]

_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]


def axe() -> str:
    """The source of axe-core; skips where the npm package is not there."""
    return (packages("axe-core") / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


async def violations(page: "Page", source: str, *, only: Sequence[str] = (), without: Sequence[str] = ()) -> list[str]:
    """Each rule that is broken, with the elements that break it; of all rules, of some, or without some.

    The driver evaluates the script, so the strict policy of our pages against scripts stays as it is.
    """
    if not await page.evaluate("Boolean(window.axe)"):
        await page.evaluate(source)
    chosen = {"type": "rule", "values": list(only)} if only else {"type": "tag", "values": _RULES}
    options = {
        "runOnly": chosen,
        "rules": {rule: {"enabled": False} for rule in without},
        "resultTypes": ["violations"],
    }
    found: dict[str, Any] = await page.evaluate("options => axe.run(document, options)", options)
    assert found["passes"] or only, "axe looked at something"
    return [
        f"{one['id']}: {node['html'][:160]} ({node['failureSummary'].splitlines()[-1].strip()})"
        for one in found["violations"]
        for node in one["nodes"]
    ]

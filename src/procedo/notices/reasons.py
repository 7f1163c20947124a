"""Why a notice did not get through, in words that give no secret away."""

from procedo.core.display import line
from procedo.credential_shapes import masked_text

__all__ = ["reason"]


def reason(text: str, url: str, place: str) -> str:
    """The text on one short line, with `place` for the address: its path may be all that protects it."""
    for long in (url, url.partition("?")[0]):
        text = text.replace(long, place)
    return line(masked_text(text))

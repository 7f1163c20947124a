"""How foreign text is shown to a model: as data, inside a frame that the text cannot forge. Pure.

The frame carries the run's random marker. Control and ANSI characters are stripped; a text that
contains the marker itself (it was shown to somebody) has it removed, so that no content can end its own frame.
"""

import json
import re
from typing import Final

from procedo.core.model import Json

__all__ = ["frame", "plain"]

_ANSI: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)


def plain(text: str) -> str:
    """The text without control, ANSI, invisible and direction-changing characters; newline and tab stay."""
    return _CONTROL.sub("", _ANSI.sub("", text.replace("\r\n", "\n")))


def frame(marker: str, value: Json) -> str:
    """A value as framed data; numbers and booleans stand bare, since they can say nothing."""
    if isinstance(value, bool | int | float) or value is None:
        return json.dumps(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    inner = plain(text)
    # Taking a marker out may join the text around it into another one.
    while marker in inner:
        inner = inner.replace(marker, "")
    return f"<data-{marker}>{inner}</data-{marker}>"

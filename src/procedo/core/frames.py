"""How foreign text is shown to a model: as data, inside a frame that the text cannot forge. Pure.

The frame carries the run's random marker. Treacherous characters are stripped (see `characters`); a text that
contains the marker itself (it was shown to somebody) has it removed, so that no content can end its own frame.
"""

import json

from procedo.core.characters import plain
from procedo.core.model import Json

__all__ = ["frame"]


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

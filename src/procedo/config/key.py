"""What one key of `procedo.toml` is."""

from msgspec import Struct

from procedo.config.forms import Form
from procedo.core.model import Json

__all__ = ["Key"]


class Key(Struct, frozen=True):
    """One key: where it stands, what it may hold, what holds without it (in its read form), what it means.

    In a table's name, `<…>` stands for one table per name that the user chooses, and `[]` behind the
    last part for a list of tables (`[[…]]` in the file).
    """

    table: str
    name: str
    form: Form
    default: Json
    meaning: str
    required: bool = False

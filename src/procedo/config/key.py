"""What one key of `procedo.toml` is."""

from dataclasses import dataclass

from procedo.config.forms import Form
from procedo.core.model import Json

__all__ = ["Key"]


@dataclass(frozen=True, slots=True)
class Key:
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

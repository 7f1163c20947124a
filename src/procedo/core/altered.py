"""Frozen values with other values in some fields.

Values are structs of `msgspec`: they are made and copied many times in each transition, and their classes at each
start, both at a small part of what dataclasses cost. A class that computes fields, or leaves some out of what makes
two values equal, is a dataclass, and `dataclasses.replace` copies it.
"""

from typing import TYPE_CHECKING

__all__ = ["altered"]

if TYPE_CHECKING:
    # The same to a type checker, which looks at names and types of fields with this one alone.
    from dataclasses import replace as altered
else:
    from msgspec.structs import replace as altered

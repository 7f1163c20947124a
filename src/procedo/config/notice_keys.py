"""The keys of `[notices.<name>]`: routes over which people are told about gates, and who is told over which."""

from typing import Final

from procedo.config import agent_forms, forms
from procedo.config.forms import Form
from procedo.config.key import Key
from procedo.core.model import Json
from procedo.core.notice import Occasion

__all__ = ["APPROVAL", "NOTICE", "NOTICE_KEYS", "TYPES"]

NOTICE: Final = "notices.<name>"
APPROVAL: Final = "sop.approval"
TYPES: Final = ("webhook", "command", "apprise")
_EVENTS: Final = tuple(str(occasion) for occasion in Occasion)


def _place() -> Form:
    """An address in plain text, or where it lies when it is itself a secret."""
    reference = agent_forms.secret()

    def read(value: Json) -> Json:
        if isinstance(value, dict):
            return reference.read(value)
        if not isinstance(value, str) or not value.strip() or any(ord(letter) < 33 for letter in value.strip()):
            raise ValueError(f"expected an address in quotes, without blanks, or {reference.words}")
        return value.strip()

    schema = {"anyOf": [{"type": "string", "minLength": 1}, dict(reference.schema)]}
    return Form(f"address, or {reference.words}", read, schema, masked=True)


def _argv() -> Form:
    """A program and its arguments."""
    program, arguments = forms.command(), agent_forms.arguments()

    def read(value: Json) -> tuple[str, ...]:
        words: tuple[str, ...] = arguments.read(value)
        if not words:
            raise ValueError('expected a program with its arguments, such as ["notify-send", "procedo"]')
        return (program.read(words[0]), *words[1:])

    return Form("list: program and arguments", read, {**arguments.schema, "minItems": 1}, masked=True)


NOTICE_KEYS: Final = (
    Key(APPROVAL, "request_route", forms.name(), None, "The notice for gates whose policy and group name none."),
    Key(APPROVAL, "escalation_route", forms.name(), None, "The same, for gates that nobody answered in time."),
    Key(NOTICE, "type", forms.word(TYPES), None, "How people are told.", required=True),
    Key(NOTICE, "url", _place(), None, "Where a webhook is, or an Apprise URL."),
    Key(NOTICE, "secret", agent_forms.secret(), None, "Signs a webhook (HMAC-SHA256, as Standard Webhooks)."),
    Key(NOTICE, "argv", _argv(), (), "The program of a command; the notice is JSON on its standard input."),
    Key(NOTICE, "env", forms.listed(forms.variable()), (), "Variables that the program is given; no others are."),
    Key(NOTICE, "timeout", forms.duration(0.05, 600), 10.0, "Time for one delivery."),
    Key(NOTICE, "events", forms.listed(forms.word(_EVENTS)), _EVENTS, "The moments of a gate that are told."),
    Key(NOTICE, "content", forms.flag(), False, "Whether what is decided on is told, secrets masked."),
)  # fmt: skip

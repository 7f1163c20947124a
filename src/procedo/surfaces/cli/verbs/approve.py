"""Shows what is asked on your terminal and wants a `y` typed there; without a terminal, only a token decides.

A coding agent that runs this command is refused, because it has no terminal. The limit of that: a program
that allocates a pseudo-terminal acts as you, and so does anything else that runs under your account.
"""

from argparse import ArgumentParser

from procedo.core.state import Verdict
from procedo.errors import BadArgument
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.typed import json_argument
from procedo.surfaces.cli.verbs.decision import Answer, common_arguments, decide

EXAMPLES = (
    "procedo approve K7QF",
    'procedo approve K7QF --comment "seen with the team"',
    'procedo approve K7QF --amend "We close on Tuesday."  # a checkpoint with `edit`: its one field',
    "procedo approve K7QF --verdict skip  # an interrupted effect: repeat, skip or fail",
    'procedo approve K7QF --break-glass --comment "site down, nobody else awake"  # against the policy, recorded',
)
_VERDICTS = [v.value for v in Verdict if v is not Verdict.DENY]


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    common_arguments(parser)
    parser.add_argument("--comment", metavar="TEXT", default="", help="kept with the decision")
    parser.add_argument("--verdict", choices=_VERDICTS, help="another answer than approve")
    parser.add_argument(
        "--break-glass",
        action="store_true",
        help="decide alone, against group, quorum and roles of the policy; takes that permission and --comment",
    )
    parser.add_argument(
        "--for-session", action="store_true", help="of a tool call: the same for this very call later in the session"
    )
    value = parser.add_mutually_exclusive_group()
    value.add_argument("--amend", metavar="TEXT", help="approve with this text in the field that may be edited")
    value.add_argument("--value", metavar="JSON", help="the same, with any JSON value (or @FILE)")


def _verdict(call: Call) -> Verdict:
    amended = call["amend"] is not None or call["value"] is not None
    verdict = Verdict(call["verdict"] or (Verdict.AMEND if amended else Verdict.APPROVE))
    if amended and verdict is not Verdict.AMEND:
        raise BadArgument(
            "bad_argument", f"A changed value does not go with --verdict {verdict}.", "Leave one of them out."
        )
    if verdict is Verdict.AMEND and not amended:
        raise BadArgument(
            "bad_argument", "--verdict amend needs a value.", "Give it with --amend TEXT or --value JSON."
        )
    if verdict is Verdict.REVISE and not call["comment"].strip():
        raise BadArgument("bad_argument", "--verdict revise needs guidance.", "Say with --comment what to change.")
    if call["break_glass"] and not call["comment"].strip():
        raise BadArgument("bad_argument", "--break-glass needs a reason, which is kept.", "Say why with --comment.")
    return verdict


def run(call: Call) -> int:
    """Decide the gate."""
    value = call["amend"] if call["value"] is None else json_argument(call["value"], "--value")
    return decide(call, Answer(_verdict(call), value, call["comment"], call["break_glass"], call["for_session"]))

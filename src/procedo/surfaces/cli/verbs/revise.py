"""Asks for another draft: the step that made it runs again with your guidance, and the gate waits for the new one.

At most three times at one gate. When no new draft comes about, the old one can be answered again.
"""

from argparse import ArgumentParser

from procedo.core.state import Verdict
from procedo.errors import BadArgument
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.verbs.decision import Answer, common_arguments, decide

EXAMPLES = ('procedo revise K7QF "Say Tuesday, not Monday."',)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    common_arguments(parser)
    parser.add_argument("guidance", metavar="GUIDANCE", help="what the new draft should be like; kept and handed on")


def run(call: Call) -> int:
    """Ask for another draft."""
    if not call["guidance"].strip():
        raise BadArgument("bad_argument", "The guidance is empty.", "Say what the new draft should be like.")
    return decide(call, Answer(Verdict.REVISE, comment=call["guidance"]))

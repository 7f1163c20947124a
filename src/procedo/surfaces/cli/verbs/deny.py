"""Shows what is asked on your terminal and wants a `y` typed there; without a terminal nothing is decided.

A denied run is cancelled, unless its step declares another way. The reason is kept and shown everywhere.
"""

from argparse import ArgumentParser

from procedo.core.state import Verdict
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.verbs.decision import Answer, common_arguments, decide

EXAMPLES = ('procedo deny K7QF --reason "thermocouple broken"',)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    common_arguments(parser)
    parser.add_argument("--reason", "--comment", metavar="TEXT", default="", dest="reason", help="why; kept and shown")


def run(call: Call) -> int:
    """Decide the gate."""
    return decide(call, Answer(Verdict.DENY, comment=call["reason"]))

"""Takes your answer back at a gate that waits for more people. A gate that is decided stays decided."""

from argparse import ArgumentParser

from procedo.core.state import Verdict
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.verbs.decision import Answer, common_arguments, decide

EXAMPLES = ("procedo retract K7QF",)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    common_arguments(parser)


def run(call: Call) -> int:
    """Take the answer back."""
    return decide(call, Answer(Verdict.RETRACT))

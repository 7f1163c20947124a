"""How much of a reason may be told outside the record: the words that are the server's own.

A reason can quote what was reported, what a program printed or what a model wrote, and none of that belongs
into a log. So only sentences that are known here are told, up to where a quotation would begin.
"""

import re
from typing import Final

from procedo.credential_shapes import masked_text

__all__ = ["ELSEWHERE", "told"]

ELSEWHERE: Final = "its words are in the record alone"
_LONGEST: Final = 160

_STEP: Final = r"step \d+(?: failed(?: \d+ times \(retry limit \d+\))?)?"
_NAME: Final = r"'[\w.-]{1,64}'"
_OWN: Final = (
    rf"(?:(?P<step>{_STEP}): )?(?P<words>"
    rf"step \d+ visited \d+ times \(limit \d+\)"
    rf"|step \d+ exceeded [\d.e+]+s"
    rf"|the (?:input|prompt) of step \d+(?: breaks its schema)?"
    rf"|the output breaks its schema"
    rf"|no port of its switch matched"
    rf"|verification failed|the verifier gave no verdict"
    rf"|capability {_NAME} cannot be used"
    rf"|shell\.exec: [\w./-]{{1,64}} (?:ended with exit code \d+|was stopped by signal \d+"
    rf"|did not end within [\d.e+]+ s|cannot be started)"
    rf"|(?:http\.request|json\.validate|template|wait|noop)(?=:)"
    rf"|sub-procedure {_NAME} was not started|sub-run run-\w+ is \w+"
    rf"|agent {_NAME} cannot be assembled"
    rf"|agent {_NAME} is \w+(?:: (?:no usable answer after \d+ attempts|the model '[\w./:@+-]{{1,128}}' gave no answer"
    rf"|[a-z_]+ [\d.]+ (?:is|are) (?:used up|exceeded)))?"
    rf"|execution [\d.]+ of its parent run-\w+ is closed"
    rf"|denied at step \d+"
    rf")"
)


def told(reason: str) -> str:
    """What may be told of a reason; empty for no reason."""
    if not reason:
        return ""
    # Compiled with the first failure, for it takes a while.
    found = re.match(_OWN, reason)
    if found is not None:
        return masked_text(found.group(0))[:_LONGEST]
    step = re.match(_STEP, reason)
    return f"{step.group(0)}; {ELSEWHERE}" if step is not None else ELSEWHERE

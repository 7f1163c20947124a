"""One call of each tool with the telling part of its answer; a test makes these calls, in this order.

The procedure is the refund of the README. Ids and codes are invented.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from procedo.core.model import Json

__all__ = ["CODE", "EXAMPLES", "RUN", "Example"]

RUN: Final = "run-7k3"
CODE: Final = "K7QF2M"


class Example(Struct, frozen=True):
    """A call, and keys of its answer with their values; lists are shown with their first element."""

    arguments: dict[str, Json]
    answer: dict[str, Json]


EXAMPLES: Final[Mapping[str, Example]] = MappingProxyType(
    {
        "sop_list": Example({}, {"sops": [{"name": "refund", "startable": True, "steps": 3, "inputs": ["order"]}]}),
        "sop_describe": Example(
            {"name": "refund"},
            {
                "inputs": {"required": ["order"]},
                "step_count": 3,
                "steps": [
                    {"number": 1, "title": "Check the order", "leads_to": ["3 (nothing: $.steps.1.amount == 0)"]}
                ],
                "call": {"tool": "sop_start", "arguments": {"name": "refund", "inputs": {"order": "<order>"}}},
            },
        ),
        "sop_start": Example(
            {"name": "refund", "inputs": {"order": "A-17"}, "idempotency_key": "ticket-4711"},
            {
                "run_id": RUN,
                "status": "running",
                "who_acts": "host",
                "may_proceed": True,
                "actions": [
                    {
                        "action": "execute_step",
                        "execution_id": "1.1",
                        "step": {"number": 1, "title": "Check the order", "attempt": 1},
                        "context": {"inputs": {"order": "A-17"}},
                        "call": {
                            "tool": "sop_advance",
                            "arguments": {"run_id": RUN, "execution_id": "1.1", "status": "completed"},
                        },
                    }
                ],
            },
        ),
        "sop_advance": Example(
            {"run_id": RUN, "execution_id": "1.1", "status": "completed", "output": {"amount": 40}},
            {
                "status": "waiting_approval",
                "who_acts": "human",
                "may_proceed": False,
                "actions": [
                    {
                        "action": "wait_approval",
                        "context": {
                            "code": CODE,
                            "asks": "Pay back 40 for order A-17?",
                            "content": {"amount": 40},
                            "answers": ["approve"],
                            "may_decide": "a person (not the run's executor)",
                        },
                        "where": "the operator's terminal or inbox",
                        "call": {"tool": "sop_resume", "arguments": {"run_id": RUN}},
                    }
                ],
            },
        ),
        "sop_approve": Example(
            {"gate_id": CODE, "decision": "approve", "comment": "The parcel came back whole."},
            {
                "status": "waiting_approval",
                "notes": [
                    "Nothing was decided: a call of the model decides nothing. The decision is taken by a person "
                    f"(not the run's executor), in the operator's terminal or inbox, gate {CODE}."
                ],
            },
        ),
        "sop_resume": Example({"run_id": RUN}, {"status": "waiting_approval", "who_acts": "human"}),
        "sop_status": Example(
            {"sop": "refund"},
            {
                "runs": [{"run_id": RUN, "sop": "refund", "status": "waiting_approval", "open_gates": 1}],
                "counts": {"waiting_approval": 1, "completed": 0},
            },
        ),
        "sop_cancel": Example(
            {"run_id": RUN, "reason": "The customer withdrew."},
            {
                "status": "cancelled",
                "who_acts": "nobody",
                "actions": [{"action": "cancelled", "reason": "The customer withdrew.", "denied": False}],
                "failure": "The customer withdrew.",
            },
        ),
    }
)
"""By tool, in the order in which they are called."""

"""The rules of a run, pure: no clock, no I/O, no await, nothing of ours but `errors`.

Read in this order: `model` (what a procedure is), `state` (what a run is), `messages` (what is asked
and what happened), `machine` (which commands are legal, and what they cause), then the rest.
"""

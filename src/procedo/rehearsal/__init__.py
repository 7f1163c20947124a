"""Rehearsing a procedure without a model and without effects: scripted reports and answers, and what comes of them."""

from procedo.rehearsal.coverage import Branch, declared
from procedo.rehearsal.play import Played, play
from procedo.rehearsal.script import Case, read_script

__all__ = ["Branch", "Case", "Played", "declared", "play", "read_script"]

"""Text to procedure: reads, compiles, checks and writes definitions."""

from procedo.sopfile.definition import compile_files
from procedo.sopfile.library import Entry, Library
from procedo.sopfile.problems import CODES, Problem
from procedo.sopfile.surroundings import Surroundings

__all__ = ["CODES", "Entry", "Library", "Problem", "Surroundings", "compile_files"]

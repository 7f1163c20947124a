"""Where the repository is, and what its documents say; for the tests that compare documents with code."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = tuple(sorted((ROOT / "src" / "procedo").rglob("*.py")))
TESTS: Final = tuple(sorted((ROOT / "tests").rglob("*.py")))


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def fenced(text: str, language: str) -> list[str]:
    """The contents of the fenced blocks of one language, in order."""
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[str]:
    """The commands of the shell blocks, continued lines joined."""
    joined = "".join(fenced(text, "sh")).replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]

"""Where the repository is, and what its documents say; for the tests that compare documents with code."""

import os
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = tuple(sorted((ROOT / "src" / "procedo").rglob("*.py")))
TESTS: Final = tuple(sorted((ROOT / "tests").rglob("*.py")))


_LOOKS: Final = frozenset({"CLICOLOR_FORCE", "FORCE_COLOR", "PY_COLORS"})


def plain_environment(**more: str) -> dict[str, str]:
    """Ours, for programs whose words are looked at: without colours, and with lines that are not broken."""
    kept = {name: value for name, value in os.environ.items() if name not in _LOOKS}
    return {**kept, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200", **more}


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def fenced(text: str, language: str) -> list[str]:
    """The contents of the fenced blocks of one language, in order."""
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[str]:
    """The commands of the shell blocks, continued lines joined."""
    joined = "".join(fenced(text, "sh")).replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]

from collections.abc import Iterator
from pathlib import Path

import pytest
from service import Shop
from webhost import WebHost, web_host

KILN = """1. **Load kiln** — Put the ware on the shelves.
   - requires_confirmation: true
   - prompt: May the kiln be loaded?
2. **Heat** — Follow the curve."""
LETTER = """1. **Draft** — Write the letter.
2. **Judge** — Read it.
   - kind: checkpoint
   - prompt: Send this?
   - policy: editors
3. **Send** — Send it."""


@pytest.fixture
def host() -> Iterator[WebHost]:
    with web_host() as made:
        made.answers("/hook", 204)
        made.answers("/boss", 204)
        yield made


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path)
    made.sop("kiln-firing", KILN)
    made.sop("letter", LETTER)
    return made

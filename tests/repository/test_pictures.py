"""The pictures in the documents: each exists, is small, and is made by the script beside it."""

import importlib.util
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

pytestmark = pytest.mark.requirement("console-pictures")
PICTURES = ROOT / "docs" / "pictures"
MOST_BYTES = 100_000
SHOWN = re.compile(r'(?:src|srcset)="([^"]+\.png)"|!\[[^\]]*\]\(([^)]+\.png)\)')
SAID = re.compile(r'<img [^>]*alt="[^"]{20,}"')


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def shown(document: Path) -> list[Path]:
    found = SHOWN.findall(document.read_text(encoding="utf-8"))
    return [(document.parent / (one or other)).resolve() for one, other in found]


def size(picture: Path) -> tuple[int, int]:
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n"), f"{picture.name} is a PNG"
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def kept() -> list[Path]:
    return sorted(PICTURES.glob("*.png"))


def test_every_picture_that_a_document_shows_exists_and_is_told_in_words() -> None:
    everything = [picture for document in documents() for picture in shown(document)]
    assert [str(picture) for picture in everything if not picture.is_file()] == []
    assert set(everything) >= set(kept()), "a picture that no document shows is of no use"
    assert PICTURES / "run-light.png" in shown(ROOT / "README.md")
    for document in documents():
        text = document.read_text(encoding="utf-8")
        assert text.count("<img ") == len(SAID.findall(text)), f"{document.name}: each picture has words"


def test_no_picture_is_heavy() -> None:
    assert [picture.name for picture in kept() if picture.stat().st_size > MOST_BYTES] == []


def script() -> Any:
    pytest.importorskip("playwright.async_api", reason="playwright is not installed: pip install 'procedo[browser]'")
    spec = importlib.util.spec_from_file_location("make_pictures", PICTURES / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pictures_are_those_that_the_script_makes() -> None:
    made = script()
    assert [picture.name for picture in kept()] == sorted(
        f"{name}-{look}.png" for name in made.HEIGHTS for look in made.LOOKS
    )


def test_the_script_makes_every_picture_anew(tmp_path: Path) -> None:
    script()
    if not (shutil.which("chromium") or shutil.which("chromium-browser")):
        pytest.skip("there is no Chromium: apt-get install chromium")
    told = subprocess.run(
        [sys.executable, PICTURES / "make.py", tmp_path], check=False, capture_output=True, text=True, timeout=300
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
    made = {picture.name: size(picture) for picture in tmp_path.iterdir()}
    assert made == {picture.name: size(picture) for picture in kept()}
    assert all(0 < picture.stat().st_size <= MOST_BYTES for picture in tmp_path.iterdir())

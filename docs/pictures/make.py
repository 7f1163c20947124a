"""Makes the pictures of the console that the documents show, in light and in dark.

Usage: `python docs/pictures/make.py [FOLDER]`, in a development environment that has a Chromium. A server in a
workspace of its own runs the procedures in `sops/`; time and ids are given, so that the pictures say the same each
time.
"""

import asyncio
import re
import shutil
import struct
import sys
import tempfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser, Page, async_playwright

from procedo.app import open_app
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.state import Verdict
from procedo.runs import Runs, Snapshot, Surface
from procedo.surfaces.http.serving import Desk, beside

__all__ = ["HEIGHTS", "LOOKS", "make"]

HERE: Final = Path(__file__).resolve().parent
SOPS: Final = HERE.parent.parent / "sops"
LOOKS: Final = ("light", "dark")
HEIGHTS: Final = {
    "inbox": 600,
    "gate": 1160,
    "runs": 760,
    "run": 1240,
    "catalogue": 760,
    "procedure": 1240,
    "start": 940,
}
"""The pictures, and how high each is."""
_WIDTH: Final = 1100
_FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_ORIGIN: Final = re.compile(r"inbox at (\S+)/inbox")
_CODE: Final = re.compile(r"login code (\S+)")
_BROKEN: Final = {
    "SOP.toml": '[sop]\nname = "badge-return"\ndescription = "Take back a badge"\npriorty = "low"\n',
    "SOP.md": "## Steps\n\n1. **Collect** — Collect the badge.\n   - next: 4\n",
}
_HOST: Final = Surface(Principal(Source.HOST, "desk-assistant", PrincipalKind.AGENT))
_IDA: Final = Surface(Principal(Source.WEB, "ida", PrincipalKind.HUMAN), host=False)


class _Clock:
    """A time that moves when the story says so."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def passes(self, **length: float) -> None:
        self.time += timedelta(**length)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Ids:
    """Ids that are the same each time."""

    def __init__(self) -> None:
        self._count = 0

    def run_id(self) -> str:
        self._count += 1
        return f"run-2026{self._count:04d}"

    def marker(self) -> str:
        return f"mark{self._count}"


class _Story:
    """What happened before the pictures are taken."""

    def __init__(self, runs: Runs, clock: _Clock) -> None:
        self._runs = runs
        self._clock = clock
        self.gate = ""
        self.run = ""

    async def _walk(self, name: str, inputs: Mapping[str, Any], *outputs: Any) -> Snapshot:
        """Start a run and report the outputs of its first steps, each a few minutes after the other."""
        snapshot = await self._runs.start(name, dict(inputs), _HOST)
        for output in outputs:
            self._clock.passes(minutes=4, seconds=20)
            execution = snapshot.run.open_executions[0].id
            snapshot = await self._runs.advance(snapshot.run.id, execution, "completed", output, _HOST)
        return snapshot

    async def tell(self) -> None:
        """Runs in several states; the last ones wait for a person."""
        clock, facts = (
            self._clock,
            {"topic": "delivery", "facts": ["The parcel was sent on Tuesday and came on Friday."]},
        )
        letter = {"subject": "Your parcel", "body": "Dear Ms Sato,\n\nyour parcel was three days late. We are sorry."}
        case = {"case": "C-1038", "customer": "Aiko Sato", "message": "My parcel is late again."}
        done = await self._walk("customer-complaint", case, facts, letter)
        clock.passes(minutes=9)
        (gate,) = done.run.open_gates
        done = await self._runs.decide(gate.id, Verdict.APPROVE, _IDA, comment="Short and true.")
        await self._runs.advance(done.run.id, "4.1", "completed", {"sent_at": "08:19"}, _HOST)
        clock.passes(minutes=25)
        package = {"package": "libfrob", "test_command": "make test"}
        stopped = await self._walk("dependency-update", package)
        clock.passes(minutes=2)
        await self._runs.cancel(stopped.run.id, "The release comes first.", _IDA)
        clock.passes(minutes=30)
        request = {
            "person": "m.okafor",
            "system": "ledger",
            "level": "write",
            "reason": "closes the books from March on",
        }
        await self._walk("access-request", request)
        clock.passes(minutes=7)
        self.run = (await self._deployment()).run.id
        clock.passes(minutes=3)
        answer = (
            "Dear Mr Brandt,\n\nyou were charged twice for order 7731; the second charge was a fault of ours. It goes "
            "back to your card today and is there by Thursday.\n\nWe are sorry for the trouble."
        )
        billing = {"topic": "billing", "facts": ["Order 7731 was charged twice.", "The second charge is refunded."]}
        case = {"case": "C-1042", "customer": "Jonas Brandt", "message": "You charged me twice for order 7731!"}
        reply = await self._walk("customer-complaint", case, billing, {"subject": "Order 7731", "body": answer})
        self.gate = reply.run.open_gates[0].id
        clock.passes(minutes=6)

    async def _deployment(self) -> Snapshot:
        order = {"service": "checkout", "version": "4.12.0", "change": "CHG-2291"}
        return await self._walk(
            "production-deploy",
            order,
            {"ready": True, "running_version": "4.11.3", "note": ""},
            {"instances": 4},
            {"passed": 212, "failed": 0, "link": "results/8812"},
        )


def _workspace(folder: Path) -> Path:
    shutil.copytree(SOPS, folder / "sops")
    (folder / "sops" / "badge-return").mkdir()
    for name, text in _BROKEN.items():
        (folder / "sops" / "badge-return" / name).write_text(text, encoding="utf-8")
    (folder / "procedo.toml").write_text("", encoding="utf-8")
    return folder


async def _fill(page: Page) -> None:
    """The start form, with one thing wrong."""
    await page.get_by_label("person").fill("M. Okafor")
    await page.get_by_label("system").fill("ledger")
    await page.get_by_label("write").check()
    await page.get_by_label("reason").fill("closes the books from March on")
    await page.get_by_role("button", name="Start").click()
    await page.get_by_role("alert").wait_for()
    await page.evaluate("document.activeElement.blur()")


async def _small(page: Page, picture: bytes) -> bytes:
    """The picture with a palette of 256 colours."""
    address = f"data:image/png;base64,{b64encode(picture).decode()}"
    found = await page.evaluate(f"{(HERE / 'palette.js').read_text(encoding='utf-8').strip().rstrip(';')}", address)
    width, height, pixels = found["width"], found["height"], b64decode(found["pixels"])
    rows = b"".join(b"\0" + pixels[at : at + width] for at in range(0, len(pixels), width))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    palette = b"".join(colour.to_bytes(3, "big") for colour in found["palette"])
    parts = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(kind + text)) for kind, text in parts
    )


async def _take(page: Page, helper: Page, origin: str, story: _Story, folder: Path, look: str) -> None:
    addresses = {
        "inbox": "/inbox",
        "gate": f"/inbox/gates/{story.gate}",
        "runs": "/runs",
        "run": f"/runs/{story.run}",
        "catalogue": "/catalogue",
        "procedure": "/catalogue/production-deploy",
        "start": "/catalogue/access-request/start",
    }
    for name, height in HEIGHTS.items():
        await page.set_viewport_size({"width": _WIDTH, "height": height})
        await page.goto(origin + addresses[name])
        if name == "start":
            await _fill(page)
        (folder / f"{name}-{look}.png").write_bytes(await _small(helper, await page.screenshot()))


async def _visit(browser: Browser, origin: str, said: list[str], story: _Story, folder: Path) -> None:
    """Log in with a code that is still good after the story, and take the pictures."""
    page, helper = await browser.new_page(reduced_motion="reduce"), await browser.new_page()
    await page.goto(f"{origin}/inbox")
    await page.get_by_role("button", name="Show a new code").click()
    await page.get_by_role("status").get_by_text("in the terminal").wait_for()
    await page.get_by_label("Code or token").fill([found[1] for found in map(_CODE.search, said) if found][-1])
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Waiting for a decision").wait_for()
    await page.emulate_media(color_scheme="light")
    await _take(page, helper, origin, story, folder, "light")
    await page.emulate_media(color_scheme="dark")
    await _take(page, helper, origin, story, folder, "dark")


async def make(folder: Path) -> None:
    """Make every picture in this folder."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("There is no Chromium: apt-get install chromium")
    clock, said = _Clock(), list[str]()
    with tempfile.TemporaryDirectory() as place:
        opening = open_app(_workspace(Path(place)), worker=False, clock=clock, ids=_Ids())
        async with beside(opening, Desk("ida", said.append)) as app, async_playwright() as driver:
            origin = next(found[1] for found in map(_ORIGIN.search, said) if found)
            story = _Story(app.runs, clock)
            await story.tell()
            browser = await driver.chromium.launch(executable_path=chromium, args=list(_FLAGS))
            await _visit(browser, origin, said, story, folder)
            await browser.close()


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE))

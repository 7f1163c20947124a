"""`/ready` tells whether the disk takes records, by a row that it writes now and then."""

import json
import resource
import sqlite3
import urllib.error
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from commands import Workspace
from http_server import served
from mcp_host import FixedClock, workspace
from served_process import Browser, serving

pytestmark = pytest.mark.requirement("http-end")


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux: the disk of a process at work is taken away")
def test_a_server_whose_disk_takes_nothing_is_not_ready_until_it_does(tmp_path: Path) -> None:
    with serving(Workspace(workspace(tmp_path)), "--http", "--port", "0") as running:
        browser, pid = Browser(running.origin), running.process.pid
        _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, most))
        with pytest.raises(urllib.error.HTTPError) as refused:
            browser.get("/ready")
        with refused.value as answer:
            assert (answer.code, json.load(answer)) == (503, {"status": "unavailable", "reason": "sqlite_ioerr_write"})
        assert json.loads(browser.get("/health")) == {"status": "ok"}
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        assert json.loads(browser.get("/ready")) == {"status": "ok"}


@pytest.mark.anyio
async def test_however_often_it_is_asked_it_writes_once_in_five_seconds(tmp_path: Path) -> None:
    clock, beats = FixedClock(), list[int]()
    file = tmp_path / ".procedo" / "procedo.db"
    async with served(tmp_path, clock=clock) as server, server.web() as web:
        for seconds in (0.0, 0.0, 4.9, 0.1, 4.9, 0.1, -3600.0, 0.0):
            clock.time += timedelta(seconds=seconds)
            assert (await web.get("/ready")).status_code == 200
            with closing(sqlite3.connect(file)) as other:
                beats += other.execute("SELECT beats FROM pulse").fetchone()
        assert await server.app.store.read(lambda reader: reader.run_ids()) == ()
    assert beats == [1, 1, 1, 2, 2, 3, 4, 4]

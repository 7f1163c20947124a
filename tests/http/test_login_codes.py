"""Asking for login codes over the network: nobody takes a good code away from the person at the terminal."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from http_server import Served, served
from mcp_host import FixedClock

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("inbox-login")]
GOOD = "is already in the terminal of the server, and good until 12:10 UTC"
NEW = "A new code is in the terminal"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def server(tmp_path: Path, clock: FixedClock, anyio_backend: str) -> AsyncIterator[Served]:
    async with served(tmp_path, clock=clock) as running:
        yield running


async def sent(server: Served, place: str, **form: str) -> tuple[int, str]:
    """What a stranger is answered who sends a form: the status, and the page or where it leads."""
    async with server.web(origin=server.origin) as web:
        answer = await web.post(f"/inbox/{place}", data={"next": "", **form})
    return answer.status_code, answer.headers.get("location", answer.text)


async def test_a_code_that_is_good_is_not_replaced_however_often_a_stranger_asks(
    server: Served, clock: FixedClock
) -> None:
    start = clock.time
    for seconds in (0, 11, 22, 60, 300, 599):
        clock.time = start + timedelta(seconds=seconds)
        status, page = await sent(server, "code")
        assert (status, GOOD in page) == (200, True)
    assert len(server.codes) == 1
    assert await sent(server, "login", credential=server.codes[0]) == (303, "/inbox")


async def test_when_its_time_is_over_the_next_one_is_shown(server: Served, clock: FixedClock) -> None:
    clock.time += timedelta(minutes=10)
    assert NEW in (await sent(server, "code"))[1]
    assert (await sent(server, "login", credential=server.codes[0]))[0] == 401
    assert await sent(server, "login", credential=server.codes[1]) == (303, "/inbox")


async def test_when_it_was_used_the_next_one_is_shown_after_a_moment(server: Served, clock: FixedClock) -> None:
    await sent(server, "login", credential=server.codes[0])
    assert "is used up. Ask again in ten seconds." in (await sent(server, "code"))[1]
    assert len(server.codes) == 1
    clock.time += timedelta(seconds=10)
    assert NEW in (await sent(server, "code"))[1]
    assert await sent(server, "login", credential=server.codes[1]) == (303, "/inbox")


async def test_when_guessing_has_ended_it_the_next_one_is_shown(server: Served, clock: FixedClock) -> None:
    for _ in range(5):
        assert (await sent(server, "login", credential="AAAA-AAAA"))[0] == 401
    clock.time += timedelta(minutes=1)
    assert NEW in (await sent(server, "code"))[1]
    assert await sent(server, "login", credential=server.codes[1]) == (303, "/inbox")

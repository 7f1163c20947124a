"""What a carrier's worker does, step by step under a test's own time."""

from datetime import timedelta

from moved_clock import MovedClock

from procedo.app import App
from procedo.errors import Refused
from procedo.stores.embedded import delay_s

__all__ = ["carried", "later"]

_LEASE = timedelta(seconds=10)


async def carried(app: App, clock: MovedClock) -> list[str]:
    """Perform every job that is due, each once; answers with the errors of those that are tried again later."""
    errors: list[str] = []
    while True:
        now = clock.now()
        claim = await app.store.write(lambda writer, now=now: writer.claim_job("test", now, now + _LEASE))  # type: ignore[misc]  # the default binds the loop variable
        if claim is None:
            return errors
        try:
            await app.driver.perform(claim)
        except Refused as error:
            errors.append(error.message)
            again = now + timedelta(seconds=delay_s(claim.attempts))
            await app.store.write(lambda writer, c=claim, again=again: writer.postpone_job(c, again))  # type: ignore[misc]  # the defaults bind
        else:
            await app.store.write(lambda writer, c=claim: writer.finish_job(c))  # type: ignore[misc]  # the default binds


async def later(app: App, clock: MovedClock, seconds: float) -> list[str]:
    """Let that much time pass, and perform what has become due."""
    clock.pass_by(seconds)
    return await carried(app, clock)

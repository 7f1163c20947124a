import os
import stat
from pathlib import Path

import pytest
from mcp.server.request_state import InvalidRequestState
from mcp_host import workspace

from procedo.config import load
from procedo.credentials import SecretRef, SecretSource
from procedo.errors import InvalidConfig, StoreError
from procedo.surfaces.mcp.secret import StateKeys, kept_keys, named_keys, renew, state_keys

pytestmark = pytest.mark.requirement("state-keys")
OLD, NEW, OTHER = "o" * 64, "n" * 64, "x" * 64
REFERENCE = SecretRef(SecretSource.FILE, "keys")


def test_the_key_is_made_once_and_kept_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / ".procedo"
    (key,) = kept_keys(folder)
    assert len(key) == 32
    assert kept_keys(folder) == (key,)
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert kept_keys(tmp_path / "other") != (key,)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    kept_keys(tmp_path)
    (file,) = tmp_path.iterdir()
    file.chmod(0o644)
    with pytest.raises(StoreError, match="can be read by others"):
        kept_keys(tmp_path)


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33, b"x" * 96])
def test_a_key_of_another_length_is_refused(tmp_path: Path, content: bytes) -> None:
    kept_keys(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    with pytest.raises(StoreError, match="does not hold one or two keys of 32 bytes"):
        kept_keys(tmp_path)


def test_a_link_is_no_key(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    kept_keys(elsewhere)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "request-state.key").symlink_to(next(elsewhere.iterdir()))
    with pytest.raises(StoreError, match="cannot be used"):
        kept_keys(folder)


def test_an_old_key_makes_room_for_a_new_one_and_still_opens(tmp_path: Path) -> None:
    (first,) = kept_keys(tmp_path)
    (file,) = tmp_path.iterdir()
    at_work = StateKeys(lambda: kept_keys(tmp_path))
    before = at_work.seal(b"asked before")
    month = 30 * 86_400
    assert not renew(tmp_path, file.stat().st_mtime + month - 1)
    assert renew(tmp_path, file.stat().st_mtime + month)
    new, old = kept_keys(tmp_path)
    assert (old, new != first) == (first, True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert at_work.unseal(before) == b"asked before"
    assert StateKeys(lambda: (new,)).unseal(at_work.seal(b"asked after")) == b"asked after", "the new key seals"
    os.utime(file, (0, 0))
    assert renew(tmp_path, month)
    assert kept_keys(tmp_path)[1] == new, "two keys are kept, no more"
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_servers_at_work_take_a_rotation_up_and_what_was_asked_before_stays_good(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(OLD)
    one, other = (StateKeys(lambda: named_keys(REFERENCE, {}, tmp_path)) for _ in range(2))
    before = one.seal(b"before")
    file.write_text(f"{OLD} {NEW}\n")
    assert other.unseal(before) == b"before"
    file.write_text(f"{NEW} {OLD}\n")
    between = other.seal(b"between")
    assert (one.unseal(before), one.unseal(between)) == (b"before", b"between")
    file.write_text(NEW)
    assert one.unseal(between) == b"between"
    with pytest.raises(InvalidRequestState):
        one.unseal(before)


def test_what_is_tampered_with_or_foreign_is_refused(tmp_path: Path) -> None:
    keys = StateKeys(lambda: (OLD.encode(),))
    sealed = keys.seal(b"state")
    assert keys.unseal(sealed) == b"state"
    for token in (
        sealed[:-1] + ("A" if sealed[-1] != "A" else "B"),
        "v1.",
        "",
        StateKeys(lambda: (OTHER.encode(),)).seal(b"state"),
    ):
        with pytest.raises(InvalidRequestState):
            keys.unseal(token)


def test_keys_that_cannot_be_read_any_more_are_used_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(OLD)
    keys = StateKeys(lambda: named_keys(REFERENCE, {}, tmp_path))
    file.unlink()
    assert keys.unseal(keys.seal(b"state")) == b"state"
    file.write_text("short")
    assert keys.unseal(keys.seal(b"state")) == b"state"


@pytest.mark.parametrize(
    ("content", "wrong"), [(None, "cannot be read"), ("", "no value"), (f"{OLD} short", "less than 32")]
)
def test_a_server_does_not_start_without_the_keys_that_are_named(
    tmp_path: Path, content: str | None, wrong: str
) -> None:
    if content is not None:
        (tmp_path / "keys").write_text(content)
    workspace(tmp_path, {}, '[http]\nstate_keys = { file = "keys" }\n')
    with pytest.raises(StoreError, match=wrong) as refusal:
        state_keys(load(tmp_path), {})
    assert "short" not in str(refusal.value)


def test_keys_are_named_by_a_variable_too(tmp_path: Path) -> None:
    workspace(tmp_path, {}, '[http]\nstate_keys = { env = "STATE_KEYS" }\n')
    here, there = state_keys(load(tmp_path), {"STATE_KEYS": f"{NEW} {OLD}"}), StateKeys(lambda: (NEW.encode(),))
    assert there.unseal(here.seal(b"state")) == b"state"
    assert not (tmp_path / ".procedo" / "request-state.key").exists()


def test_a_key_itself_is_never_written_in_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        load(workspace(tmp_path, {}, f'[http]\nstate_keys = "{OLD}"\n'))
    assert OLD not in str(refusal.value) + str(refusal.value.problems)

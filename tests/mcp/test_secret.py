import stat
from pathlib import Path

import pytest

from procedo.errors import StoreError
from procedo.surfaces.mcp.secret import request_state_key


def test_the_key_is_made_once_and_kept_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / ".procedo"
    key = request_state_key(folder)
    assert len(key) == 32
    assert request_state_key(folder) == key
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert request_state_key(tmp_path / "other") != key


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    request_state_key(tmp_path)
    (file,) = tmp_path.iterdir()
    file.chmod(0o644)
    with pytest.raises(StoreError, match="can be read by others"):
        request_state_key(tmp_path)


def test_a_key_of_another_length_is_refused(tmp_path: Path) -> None:
    request_state_key(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"short")
    with pytest.raises(StoreError, match="does not hold 32 bytes"):
        request_state_key(tmp_path)


def test_a_link_is_no_key(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    request_state_key(elsewhere)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "request-state.key").symlink_to(next(elsewhere.iterdir()))
    with pytest.raises(StoreError, match="cannot be used"):
        request_state_key(folder)

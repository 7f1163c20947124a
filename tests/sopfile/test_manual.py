from procedo.sopfile import CODES
from procedo.sopfile.manual import manual
from procedo.sopfile.reference import BULLETS, HEADER, STEP, TRIGGERS


def test_the_manual_names_every_field_bullet_trigger_and_code() -> None:
    text = manual()
    for name in (*HEADER, *STEP, *BULLETS, *TRIGGERS, *CODES):
        assert f"`{name}`" in text


def test_every_row_of_the_manual_has_as_many_cells_as_its_head() -> None:
    for block in manual().split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.replace("\\|", "").count("|") for line in rows}) <= 1

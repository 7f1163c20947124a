import pytest

from procedo.surfaces.redaction import MASK, masked


@pytest.mark.requirement("C42")
@pytest.mark.parametrize(
    "key",
    ["token", "password", "secret", "api_key", "apiKey", "Authorization", "client-secret", "db_password", "X-Api-Key"],
)
def test_the_value_of_a_key_that_names_a_secret_is_masked(key: str) -> None:
    assert masked({key: "hunter2", "id": 4}) == {key: MASK, "id": 4}


@pytest.mark.requirement("C42")
@pytest.mark.parametrize(
    "text",
    [
        "sk-ours-123456",
        "ghp_0123456789abcdefghij",
        "github_pat_0123456789abcdefghij",
        "xoxb-1234567890-abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_credential_is_masked_by_its_shape_wherever_it_stands(text: str) -> None:
    assert masked(["before", {"note": f"it is {text} there"}]) == ["before", {"note": f"it is {MASK} there"}]


@pytest.mark.requirement("C42")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abcdefgh12345678", f"Authorization: {MASK} {MASK}"),
        ("curl -H 'Bearer abcdefgh12345678'", f"curl -H 'Bearer {MASK}'"),
        ("postgres://app:hunter2@db/x", f"postgres://app:{MASK}@db/x"),
        ('{"token":"abc123"}', '{"token":' + MASK + "}"),
        ("DB_PASSWORD=hunter2 make", f"DB_PASSWORD={MASK} make"),
    ],
)
def test_a_secret_inside_a_text_is_masked_and_the_text_stays(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.requirement("C42")
@pytest.mark.parametrize(
    "value",
    [
        {"max_tokens": 12, "id": 4, "has_secret": True, "token": None},
        "the token of our esteem",
        "ask-me-anything-today",
        [1, 2.5, None, True, "T-12"],
    ],
)
def test_what_is_no_secret_is_left_alone(value: object) -> None:
    assert masked(value) == value


def test_masking_leaves_the_value_itself_untouched() -> None:
    value = {"deep": [{"token": "t-1"}]}
    assert masked(value) == {"deep": [{"token": MASK}]}
    assert value == {"deep": [{"token": "t-1"}]}

import pytest

from procedo.hosts import HostPattern, is_loopback


@pytest.mark.parametrize(
    ("pattern", "scheme", "host", "port", "allowed"),
    [
        ("api.example.com", "https", "api.example.com", None, True),
        ("api.example.com", "https", "API.Example.COM", None, True),
        ("api.example.com", "https", "api.example.com", 443, True),
        ("api.example.com", "https", "api.example.com", 8443, False),
        ("api.example.com", "http", "api.example.com", None, False),
        ("api.example.com", "https", "evil-api.example.com", None, False),
        ("api.example.com", "https", "api.example.com.evil.org", None, False),
        ("api.example.com", "https", "api.example.com.", None, False),
        ("api.example.com:8443", "https", "api.example.com", 8443, True),
        ("api.example.com:8443", "https", "api.example.com", None, False),
        ("*.example.org", "https", "a.example.org", None, True),
        ("*.example.org", "https", "a.b.example.org", None, True),
        ("*.example.org", "https", "example.org", None, False),
        ("*.example.org", "https", "badexample.org", None, False),
        ("http://intranet.example", "http", "intranet.example", None, True),
        ("http://intranet.example", "https", "intranet.example", None, False),
        ("https://api.example.com", "https", "api.example.com", None, True),
        ("localhost:8080", "http", "localhost", 8080, True),
        ("localhost:8080", "https", "localhost", 8080, True),
        ("localhost:8080", "http", "127.0.0.1", 8080, False),
        ("localhost", "http", "localhost", None, True),
        ("localhost", "http", "localhost", 8080, False),
        ("127.0.0.1:9", "http", "127.0.0.1", 9, True),
        ("127.0.0.1:9", "http", "2130706433", 9, False),
        ("[::1]:9", "http", "0:0:0:0:0:0:0:1", 9, True),
        ("10.0.0.7", "https", "10.0.0.7", None, True),
        ("10.0.0.7", "http", "10.0.0.7", None, False),
        ("api.example.com", "https", "10.0.0.7", None, False),
        ("api.example.com", "ftp", "api.example.com", None, False),
    ],
)
def test_a_host_is_allowed_by_its_exact_pattern_only(
    pattern: str, scheme: str, host: str, port: int | None, allowed: bool
) -> None:
    assert HostPattern.parse(pattern).allows(scheme, host, port) is allowed


@pytest.mark.parametrize(
    "text",
    [
        "", "*", "*.com", "a b", "https://", "ftp://a.example", "a.example/path", "user@a.example", "a.example:0",
        "a.example:70000", "bücher.example", "a..example", "[not-an-address]", "[1.2.3.4]", "a.*.example", "::1",
    ],
)  # fmt: skip
def test_a_pattern_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        HostPattern.parse(text)


@pytest.mark.parametrize("text", ["a.example", "*.a.example:8443", "http://a.example", "[::1]:80", "http://[::1]"])
def test_a_pattern_is_shown_as_it_was_written(text: str) -> None:
    assert str(HostPattern.parse(text)) == text


def test_this_machine_is_known_by_its_names_and_nothing_else_is() -> None:
    assert all(is_loopback(host) for host in ("localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "::1", "[::1]"))
    assert not any(is_loopback(host) for host in ("localhost.example", "10.0.0.1", "0.0.0.0", "127.0.0.1.example"))  # noqa: S104  # not bound

"""Notices to a web host: one POST of JSON, signed as Standard Webhooks (https://www.standardwebhooks.com) describes.

The headers `webhook-id` and `webhook-timestamp` (seconds since 1970) go with each delivery. With a secret there is
`webhook-signature: v1,<base64 of HMAC-SHA256>` over `<id>.<timestamp>.<body>`. The key is the secret's text, or, of a
secret that begins with `whsec_`, what the base64 behind it stands for. The id stays the same when a delivery is
repeated, so a receiver can leave out what it has seen; the timestamp is that of the attempt.
"""

import base64
import binascii
import hashlib
import hmac
import json
from typing import Final
from urllib.parse import urlsplit

from procedo.capabilities.http_request import http_request
from procedo.config.capability_settings import HttpSettings
from procedo.config.notices import NoticeRoute
from procedo.credentials import Missing, SecretRef, resolve
from procedo.errors import Refused
from procedo.hosts import HostPattern, is_loopback
from procedo.notices.means import Means
from procedo.notices.reasons import reason
from procedo.ports import CapabilityCall, Notice, OutcomeUnknown, Undelivered

__all__ = ["objection", "send", "signature"]

_PREFIX: Final = "whsec_"
_ANSWER_BYTES: Final = 65_536


def signature(secret: str, identifier: str, timestamp: int, body: str) -> str:
    """The value of `webhook-signature`. Raises `ValueError` for a secret whose base64 cannot be read."""
    key = secret.encode()
    if secret.startswith(_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except binascii.Error as error:
            raise ValueError(f"what stands behind {_PREFIX} is no base64") from error
    signed = f"{identifier}.{timestamp}.{body}".encode()
    return f"v1,{base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}"


def _url(route: NoticeRoute, means: Means) -> str:
    """The address. Raises `Missing` and `ValueError`."""
    url = route.url
    if isinstance(url, SecretRef):
        url = resolve(url, means.environ, means.root).reveal()
        parts = urlsplit(url)
        secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        if not secure or not parts.hostname:
            raise ValueError(f"what stands behind {route.url} is no address with https")
    if url is None:
        raise ValueError("it has no url")
    return url


def _key(route: NoticeRoute, means: Means) -> str | None:
    """The secret's text. Raises `Missing` and `ValueError`."""
    if route.secret is None:
        return None
    secret = resolve(route.secret, means.environ, means.root).reveal()
    signature(secret, "", 0, "")
    return secret


def objection(route: NoticeRoute, means: Means) -> str | None:
    """Why nothing can be sent as things stand, or None."""
    try:
        _url(route, means)
        _key(route, means)
    except (Missing, ValueError) as error:
        return str(error)
    return None


async def send(route: NoticeRoute, notice: Notice, means: Means) -> None:
    """Send a notice. Raises `Undelivered`."""
    try:
        url, secret = _url(route, means), _key(route, means)
    except (Missing, ValueError) as error:
        raise Undelivered(str(error)) from error
    body = json.dumps(notice.data, ensure_ascii=False)
    timestamp = int(means.now().timestamp())
    headers = {
        "content-type": "application/json",
        "webhook-id": notice.id,
        "webhook-timestamp": str(timestamp),
    }
    if secret is not None:
        headers["webhook-signature"] = signature(secret, notice.id, timestamp, body)
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    pattern = HostPattern.parse(f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}")
    post = http_request(HttpSettings((pattern,), route.timeout_s, _ANSWER_BYTES))
    arguments = {"method": "POST", "url": url, "headers": headers, "body": body, "idempotent": True}
    try:
        await post.run(CapabilityCall(arguments, "", "", notice.id))
    except (Refused, OutcomeUnknown) as error:
        told = str(error).removeprefix("http.request: ")
        raise Undelivered(reason(told, url, f"{parts.scheme}://{parts.netloc}")) from error

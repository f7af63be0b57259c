"""Fetching files that people attached: only from Slack's own hosts, the token never follows a redirect, size bounded."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from tools.contract import Problem

if TYPE_CHECKING:
    import httpx

MAX_FILE = 32 << 20
MAX_FILES = 20
_HOSTS = ("files.slack.com", "slack-files.com")


def allowed(url: str, base_url: str) -> bool:
    """Slack's file hosts over https, or the very host that the Web API is called on."""
    parts, base = urlsplit(url), urlsplit(base_url)
    if (parts.scheme, parts.netloc) == (base.scheme, base.netloc):
        return True
    host = parts.hostname or ""
    return parts.scheme == "https" and (host in _HOSTS or host.endswith(".slack.com")) and not parts.username


@cache
def client() -> httpx.Client:
    """One client for all files: making one loads the trust store each time. Never follows a redirect by itself."""
    import httpx

    return httpx.Client(timeout=30, follow_redirects=False)


def fetch(item: dict[str, Any], token: str, base_url: str) -> bytes | Problem:
    """The bytes of one attached file, or why not. Raises ``ConnectionError`` when it is worth trying again."""
    import httpx

    name = str(item.get("name") or item.get("id") or "file")[:120]
    url = str(item.get("url_private_download") or item.get("url_private") or "")
    if item.get("mode") in ("tombstone", "hidden_by_limit") or not url:
        return Problem(ref=name, what="Slack no longer gives this file", do="attach it again", severity="error")
    if int(item.get("size") or 0) > MAX_FILE:
        return Problem(
            ref=name, what=f"over {MAX_FILE >> 20} MiB", do="compress it, or cut it to the incident", severity="error"
        )
    headers = {"Authorization": f"Bearer {token}"}
    for _ in range(3):
        if not allowed(url, base_url):
            return Problem(
                ref=name, what="not on Slack's file hosts, not fetched", do="attach the file itself", severity="error"
            )
        try:
            with client().stream("GET", url, headers=headers) as answer:
                if answer.is_redirect:
                    url = urljoin(url, answer.headers.get("location", ""))
                    headers = {}
                    continue
                if answer.status_code >= 500 or answer.status_code == 429:
                    raise ConnectionError(f"{name}: HTTP {answer.status_code}")
                page = "text/html" in answer.headers.get("content-type", "")
                if answer.status_code != 200 or (page and "html" not in str(item.get("mimetype", ""))):
                    what = f"Slack refused the download (HTTP {answer.status_code})"
                    return Problem(ref=name, what=what, do="the app needs the scope files:read", severity="error")
                body = bytearray()
                for chunk in answer.iter_bytes():
                    body += chunk
                    if len(body) > MAX_FILE:
                        return Problem(ref=name, what=f"over {MAX_FILE >> 20} MiB", do="compress it", severity="error")
                return bytes(body)
        except httpx.HTTPError as error:
            raise ConnectionError(f"{name}: {type(error).__name__}") from None
    return Problem(ref=name, what="too many redirects", do="attach the file itself", severity="error")

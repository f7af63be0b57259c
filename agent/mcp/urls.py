"""The allow-list of addresses: a metrics fetcher without one is a way into the network behind it."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from agent.mcp.trouble import Trouble

_PORTS = {"http": 80, "https": 443}


class Allowed(NamedTuple):
    """Scheme, host and port must be equal; the path must begin with ``path`` at a segment's border."""

    scheme: str
    host: str
    port: int
    path: str

    def text(self) -> str:
        """As an address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def _split(url: str) -> Allowed:
    """Raises ``ValueError`` with the reason."""
    if not url.isascii() or not url.isprintable() or any(c in url for c in " \\<>\"'"):
        raise ValueError("characters that do not belong in an address")
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("only http and https addresses are read")
    if parts.username or parts.password:
        raise ValueError("credentials in the address are not accepted")
    path = unquote(unquote(parts.path))
    if ".." in path.split("/") or "\\" in path:
        raise ValueError("a path with '..' is not accepted")
    return Allowed(parts.scheme, parts.hostname.lower(), parts.port or _PORTS[parts.scheme], parts.path.rstrip("/"))


def _literal(host: str) -> None:
    """Refuse link-local written as an IPv4 address inside an IPv6 one. Raises ``ValueError``."""
    try:
        address = ipaddress.ip_address(host.split("%", maxsplit=1)[0])
    except ValueError:
        return
    inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
    if inner.is_link_local or inner.is_multicast or inner.is_unspecified:
        raise ValueError("link-local, multicast and unspecified addresses are never read")


class Addresses:
    """Listed addresses. With none, every address is refused."""

    def __init__(self, listed: list[str]) -> None:
        self.listed: list[Allowed] = []
        for url in listed:
            try:
                item = _split(url)
                _literal(item.host)
            except ValueError as error:
                raise ValueError(f"--allow-url {url}: {error}") from None
            self.listed.append(item)

    def check(self, url: str) -> str:
        """The address if it is listed and may be read. Raises :class:`Trouble`; nothing is fetched here.

        Names are resolved by :func:`tools.metrics.live.check_url`, which refuses link-local and multicast targets, and
        again before each fetch; redirects are never followed.
        """
        from tools.metrics.live import Refused, check_url

        shown = url[:200]
        try:
            wanted = _split(url)
            _literal(wanted.host)
        except ValueError as error:
            raise Trouble(
                "url_refused", f"{shown}: {error}", "give a plain http(s) address that health lists"
            ) from None
        if not any(_covers(item, wanted) for item in self.listed):
            raise Trouble(
                "url_refused",
                f"{shown}: not on this server's list of addresses",
                "use an address that health lists, give a saved scrape as a file, or start the server with --allow-url",
            )
        try:
            return check_url(url)
        except Refused as error:
            raise Trouble("url_refused", f"{shown}: {error}", "give another address that health lists") from None


def _covers(item: Allowed, wanted: Allowed) -> bool:
    return (
        item[:3] == wanted[:3]
        and (not item.path or wanted.path == item.path or wanted.path.startswith(item.path + "/"))
    )  # fmt: skip

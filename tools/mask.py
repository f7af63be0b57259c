"""Masks what must not leave the site: keys, tokens, addresses, host names, e-mail, user names in paths.

The same original always gets the same placeholder (``<ip-1>``), so that replicas stay apart and an answer can be
unmasked for the person who asked. Loopback and wildcard addresses stay: they say something and identify nobody.
All patterns have bounded repeats: time is linear in the text.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

from tools.contract import Problem
from tools.part import Part

_PLACEHOLDER = re.compile(r"<(?:key|ip|host|email|user|id)-\d{1,6}>")
_KEEP_IPS = frozenset({"127.0.0.1", "0.0.0.0", "255.255.255.255", "::1", "::"})
_KEEP_HOSTS = frozenset(
    {"localhost", "github.com", "huggingface.co", "pypi.org", "docs.vllm.ai", "docs.sglang.ai", "pytorch.org"}
)
_USERS = frozenset({"root", "ubuntu", "user", "shared", "public", "runner", "vllm", "sglang"})
# Short endings that are also attribute names in code (torchvision.io): these need a third label to count as a host.
_TLD_SURE = "com|net|org|cn|edu|gov|cloud|internal|lan|corp|intranet|tech|xyz|uk|jp|eu|ru|fr|kr|in"
_TLD_AMBIGUOUS = "io|ai|co|app|dev|local|svc|de|us|me"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"

_PEM = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s\\,:]{1,20000}-----END [A-Z ]{0,30}PRIVATE KEY-----"
)
_URL_LOGIN = re.compile(r"(?<=://)([^\s/@:\"'<>]{1,100}:[^\s/@\"'<>]{1,200})(?=@)")
_BEARER = re.compile(r"(?i)(?<=\bbearer\s)([A-Za-z0-9._~+/=-]{6,2000})")
_BASIC = re.compile(r"(?i)(?<=\bbasic\s)([A-Za-z0-9+/]{12,400}={0,2})")
_KEYS = re.compile(
    r"\b(sk-[A-Za-z0-9_-]{8,200}|hf_[A-Za-z0-9]{8,100}|gh[pousr]_[A-Za-z0-9]{16,255}|github_pat_[A-Za-z0-9_]{20,255}"
    r"|glpat-[A-Za-z0-9_-]{10,100}|xox[abposr]-[A-Za-z0-9-]{8,200}|xapp-[A-Za-z0-9-]{8,200}|AKIA[0-9A-Z]{16}"
    r"|ASIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,60}|nvapi-[A-Za-z0-9_-]{10,200}|gsk_[A-Za-z0-9]{10,200}"
    r"|pypi-[A-Za-z0-9_-]{20,300}|wandb_[A-Za-z0-9]{10,100}|eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{4,4000}"
    r"(?:\.[A-Za-z0-9_-]{0,2000})?)"
)
_NAMED = re.compile(
    r"(?i)\b[A-Z0-9_-]{0,40}(?:api[_-]?key|secret|passw(?:or)?d|access[_-]?token|auth[_-]?token|hf[_-]?token"
    r"|private[_-]?key)[\"']{0,2}(?:\s{0,3}[=:]\s{0,3}|\s{1,3})[\"']?([^\s\"'<>,;(){}\[\]]{4,400})"
)
_EMAIL = re.compile(r"(?<![\w.+-])([A-Za-z0-9_.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,18})(?![\w-])")
_HOME = re.compile(r"(?:(?<=/home/)|(?<=/Users/)|(?<=\\Users\\)|(?<=/users/))([A-Za-z0-9._-]{1,64})")
_IPV4 = re.compile(r"(?<![\w.=-])((?:\d{1,3}\.){3}\d{1,3})(?![\w-]|\.\d)")
_IPV4_EQ = re.compile(r"(?<=[^=!<>~]=)((?:\d{1,3}\.){3}\d{1,3})(?![\w-]|\.\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])((?:[0-9A-Fa-f]{1,4}:){2,7}(?::?[0-9A-Fa-f]{1,4}){1,7}|fe80::[0-9A-Fa-f:]{1,39})(?![\w:])"
)
_URL_HOST = re.compile(r"(?<=://)((?:" + _LABEL + r"\.){0,8}" + _LABEL + r")(?=[:/?#\s\"'),]|$)")
_FQDN = re.compile(
    r"(?<![\w.@/<-])((?:" + _LABEL + r"\.){1,8}(?:" + _TLD_SURE + r")|(?:" + _LABEL + r"\.){2,8}(?:" + _TLD_AMBIGUOUS
    + r"))(?![\w.-]*[\w(])"
)  # fmt: skip
_NODE = re.compile(
    r"(?i)\b(?:instance|exported_instance|hostname|host_name|kubernetes_node|node_name|nodename)"
    r"[\"']?\s{0,2}[=:]\s{0,2}[\"']?([A-Za-z0-9][A-Za-z0-9.-]{1,120})(?=[:\"'\s,}]|$)"
)
_GPU_ID = re.compile(r"\b((?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b")


def _is_ipv4(text: str) -> bool:
    return text not in _KEEP_IPS and all(int(x) <= 255 for x in text.split(".")) and not text.startswith("0.")


def _is_ipv6(text: str) -> bool:
    # Clock times (16:17:28) and driver build ids look alike; an address has a letter, a '::', or eight groups.
    return text not in _KEEP_IPS and ("::" in text or text.count(":") == 7 or (text.count(":") > 3))


def _is_host(text: str) -> bool:
    low = text.lower()
    if low in _KEEP_HOSTS or low.replace(".", "").isdigit():
        return False
    return not any(low.endswith("." + keep) for keep in _KEEP_HOSTS)


def _is_user(text: str) -> bool:
    return text.lower() not in _USERS


def _is_value(text: str) -> bool:
    return text.lower() not in {"none", "null", "true", "false", "empty", "set", "missing", "required", "default"}


def _any(_: str) -> bool:
    return True


_PASSES: tuple[tuple[re.Pattern[str], str, Callable[[str], bool]], ...] = (
    (_PEM, "key", _any),
    (_URL_LOGIN, "key", _any),
    (_BEARER, "key", _any),
    (_BASIC, "key", _any),
    (_KEYS, "key", _any),
    (_NAMED, "key", _is_value),
    (_EMAIL, "email", _any),
    (_HOME, "user", _is_user),
    (_IPV4, "ip", _is_ipv4),
    (_IPV4_EQ, "ip", _is_ipv4),
    (_IPV6, "ip", _is_ipv6),
    (_NODE, "host", _is_host),
    (_URL_HOST, "host", _is_host),
    (_FQDN, "host", _is_host),
    (_GPU_ID, "id", _any),
)


class Masker:
    """Masks texts with one shared table. ``table``: placeholder → original; give it back to go on with the same names."""

    def __init__(self, table: dict[str, str] | None = None) -> None:
        self.table: dict[str, str] = dict(table or {})
        self._names: dict[tuple[str, str], str] = {}
        for name, original in self.table.items():
            self._names[(name[1:].partition("-")[0], original)] = name

    def mask(self, text: str) -> str:
        """The text with placeholders. Masking twice changes nothing more."""
        taken = set(_PLACEHOLDER.findall(text))
        for pattern, kind, wanted in _PASSES:
            text = pattern.sub(lambda m, k=kind, w=wanted: self._swap(m, k, w, taken), text)  # type: ignore[misc]
        return text

    def _swap(self, match: re.Match[str], kind: str, wanted: Callable[[str], bool], taken: set[str]) -> str:
        group = 1 if match.re.groups else 0
        original = match.group(group)
        if _PLACEHOLDER.search(original) or not wanted(original):
            return match.group(0)
        name = self._name(kind, original, taken)
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        whole = match.group(0)
        return whole[:start] + name + whole[end:]

    def _name(self, kind: str, original: str, taken: set[str]) -> str:
        found = self._names.get((kind, original))
        if found:
            return found
        number = 1 + sum(1 for other, _ in self._names if other == kind)
        while f"<{kind}-{number}>" in taken or f"<{kind}-{number}>" in self.table:
            number += 1
        name = f"<{kind}-{number}>"
        self.table[name] = original
        self._names[(kind, original)] = name
        return name

    def unmask(self, text: str) -> str:
        """The text with the originals put back; placeholders that are not in the table stay."""
        return _PLACEHOLDER.sub(lambda m: self.table.get(m.group(0), m.group(0)), text)


def mask_text(text: str, table: dict[str, str] | None = None) -> tuple[str, dict[str, str]]:
    """``(masked text, table)`` in one call."""
    masker = Masker(table)
    return masker.mask(text), masker.table


def mask_file(part: Part, target: Path, masker: Masker) -> Problem | None:
    """Write a masked copy of a text part (gzip stays gzip, with no time stamp in it).

    A binary part is not copied: nothing in it could be masked with certainty. Returns the problem, or ``None``.
    Raises ``OSError`` when the target cannot be written.
    """
    if part.is_binary():
        what = "binary data is left out of the recording (it cannot be masked)"
        return Problem(ref=part.name, what=what, do="export it as text first")
    raw = part.data[:2] if part.data is not None else _magic(part.path)
    target.parent.mkdir(parents=True, exist_ok=True)
    body = "".join(masker.mask(line) + "\n" for _, line in part.lines()).encode()
    target.write_bytes(gzip.compress(body, mtime=0) if raw == b"\x1f\x8b" else body)
    return None


def _magic(path: Path | None) -> bytes:
    if path is None:
        return b""
    with path.open("rb") as stream:
        return stream.read(2)

"""Settings of a model, what one investigation may spend, and what endpoints were seen to do. Knows no SDK."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

DEFAULT_CONTEXT = 8192
OPENAI = "https://api.openai.com/v1"
CACHE_S = 7 * 86400
LOCAL = ("127.0.0.1", "localhost", "::1", "0.0.0.0")


class ModelError(RuntimeError):
    """A model call that gave nothing usable: refused, timed out, over budget, or not the form asked for.

    ``status``: HTTP status when the server gave one, else 0. ``answered``: whether the server answered at all.
    """

    def __init__(self, text: str, status: int = 0, answered: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.answered = answered or status > 0


class Settings(Struct, kw_only=True):
    """Where the model is and what one investigation may spend. Prices in US dollars per million tokens.

    ``max_usd`` of 0 sets no money limit. ``timeout_s`` bounds one whole call, however slowly its bytes arrive.
    """

    name: str
    base_url: str = ""
    key: str = ""
    timeout_s: float = 30.0
    max_calls: int = 8
    max_tokens: int = 24_000
    max_seconds: float = 60.0
    max_usd: float = 0.50
    usd_in: float = 0.0
    usd_out: float = 0.0


class Capability(Struct, kw_only=True):
    """What an endpoint was seen to do; cached per base URL and model. ``context`` in tokens, ``seen`` Unix seconds."""

    context: int = DEFAULT_CONTEXT
    schema: bool = False
    tools: bool = False
    streaming: bool = True
    seen: float = 0.0


class Usage(Struct):
    """What was spent: calls, tokens in and out, seconds, US dollars."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    usd: float = 0.0
    failed: int = 0


def config_path() -> Path:
    """The user's configuration file."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "inferdx" / "config.toml"


def settings() -> Settings | None:
    """Settings from the environment, then the configuration file; ``None`` when no model is named."""
    table: dict[str, Any] = {}
    path = config_path()
    if path.is_file():
        import tomllib

        try:
            found = tomllib.loads(path.read_text(encoding="utf-8")).get("model", {})
        except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{path}: {error}") from None
        if not isinstance(found, dict):
            raise ModelError(f"{path}: [model] is not a table")
        table = found
    name = os.environ.get("INFERDX_MODEL") or table.get("name", "")
    if not name:
        return None
    table["name"] = name
    table["base_url"] = os.environ.get("INFERDX_BASE_URL") or table.get("base_url", "") or OPENAI
    table["key"] = os.environ.get("INFERDX_API_KEY") or _keyring() or "none"
    try:
        config = msgspec.convert(table, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ModelError(f"{path}: {error}") from None
    if urlsplit(config.base_url).scheme not in ("http", "https"):
        raise ModelError(f"INFERDX_BASE_URL {config.base_url!r} is not an http(s) address")
    return config


def _keyring() -> str:
    from importlib import import_module

    try:
        return str(import_module("keyring").get_password("inferdx", "model") or "")
    except Exception:
        return ""


def _cache_file() -> Path:
    from knowledge.cache import cache_dir

    return cache_dir() / "models.json"


def _table() -> dict[str, Capability]:
    try:
        return msgspec.json.decode(_cache_file().read_bytes(), type=dict[str, Capability])
    except (OSError, msgspec.DecodeError):
        return {}


def cached(config: Settings) -> Capability | None:
    found = _table().get(f"{config.base_url}|{config.name}")
    return found if found and time.time() - found.seen < CACHE_S else None


def store(config: Settings, found: Capability) -> None:
    path = _cache_file()
    table = {**_table(), f"{config.base_url}|{config.name}": found}
    fresh = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(msgspec.json.encode(table))
        fresh.replace(path)
    except OSError:
        return


def _endpoint(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        return "", 0
    host = (parts.hostname or "").lower().rstrip(".")
    return ("127.0.0.1" if host in LOCAL else host), port


def same_endpoint(config: Settings, urls: list[str]) -> str:
    """A warning when the server under diagnosis is the one that would answer; empty otherwise."""
    mine = _endpoint(config.base_url)
    for url in urls:
        if mine[0] and _endpoint(url) == mine:
            return f"{mine[0]}:{mine[1]} is both the patient and the model used: its answers may be slow or wrong"
    return ""

"""Model access: any OpenAI-compatible endpoint. The only file that knows the SDK.

Settings come from ``INFERDX_MODEL``, ``INFERDX_BASE_URL``, ``INFERDX_API_KEY`` (or the keyring), or from ``[model]`` in
``~/.config/inferdx/config.toml``. Everything sent is masked; everything received is text to be checked by others.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from tools.mask import Masker

if TYPE_CHECKING:
    from agent.state import Env

DEFAULT_CONTEXT = 8192


class ModelError(RuntimeError):
    """A model call that gave nothing usable: refused, timed out, over budget, or not the form asked for."""


class Settings(Struct, kw_only=True):
    """Where the model is and what one investigation may spend. Prices in US dollars per million tokens."""

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
    """What an endpoint was seen to do; cached per base URL and model."""

    context: int = DEFAULT_CONTEXT
    schema: bool = False
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
            table = tomllib.loads(path.read_text(encoding="utf-8")).get("model", {})
        except (tomllib.TOMLDecodeError, OSError) as error:
            raise ModelError(f"{path}: {error}") from None
    name = os.environ.get("INFERDX_MODEL") or table.get("name", "")
    if not name:
        return None
    table["name"] = name
    table["base_url"] = os.environ.get("INFERDX_BASE_URL") or table.get("base_url", "")
    table["key"] = os.environ.get("INFERDX_API_KEY") or _keyring() or "none"
    try:
        return msgspec.convert(table, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ModelError(f"{path}: {error}") from None


def _keyring() -> str:
    from importlib import import_module

    try:
        return str(import_module("keyring").get_password("inferdx", "model") or "")
    except Exception:
        return ""


def rough_tokens(text: str) -> int:
    """An upper estimate of tokens without a tokenizer: 3 characters each, one per CJK character."""
    wide = sum(1 for c in text if ord(c) > 0x2E80)
    return wide + (len(text) - wide + 2) // 3


class Model:
    """One endpoint within one investigation's budget. Thread-bound; make a new one per investigation."""

    def __init__(
        self,
        config: Settings,
        *,
        client: Any = None,
        clock: Callable[[], float] = time.monotonic,
        masker: Masker | None = None,
    ) -> None:
        self.config = config
        self.used = Usage()
        self.masker = masker or Masker()
        self._clock = clock
        self._client = client
        self._start = clock()
        self._can: Capability | None = None

    def left(self) -> bool:
        """Whether any budget is left."""
        c, u = self.config, self.used
        return (
            u.calls < c.max_calls
            and u.tokens_in + u.tokens_out < c.max_tokens
            and u.seconds < c.max_seconds
            and (c.max_usd <= 0 or u.usd <= c.max_usd)
        )

    def client(self) -> Any:
        """The SDK's client: 30 s, one retry, no proxy for loopback."""
        if self._client is None:
            import httpx2
            import openai

            local = urlsplit(self.config.base_url).hostname in ("127.0.0.1", "localhost", "::1")
            transport = httpx2.Client(trust_env=not local, timeout=self.config.timeout_s)
            self._client = openai.OpenAI(
                base_url=self.config.base_url or None, api_key=self.config.key, timeout=self.config.timeout_s,
                max_retries=1, http_client=transport,
            )  # fmt: skip
        return self._client

    def can(self) -> Capability:
        """The endpoint's capabilities, from the cache or a probe of two small calls."""
        if self._can is None:
            self._can = _cached(self.config) or self._probe()
        return self._can

    def _probe(self) -> Capability:
        found = Capability(seen=time.time())
        try:
            for item in self.client().models.list().data:
                extra = item.model_dump()
                size = extra.get("max_model_len") or (extra.get("meta") or {}).get("n_ctx_train")
                if item.id == self.config.name and isinstance(size, int):
                    found.context = min(size, 131_072)
        except Exception:
            found.context = DEFAULT_CONTEXT
        schema = {
            "type": "object",
            "properties": {"ok": {"type": "string", "enum": ["yes"]}},
            "required": ["ok"],
            "additionalProperties": False,
        }
        try:
            text = self._call([{"role": "user", "content": 'Answer {"ok": "yes"} as JSON.'}], 16, schema)
            found.schema = json.loads(text) == {"ok": "yes"}
        except (ModelError, ValueError):
            found.schema = False
        _store(self.config, found)
        return found

    def _call(self, messages: list[dict[str, str]], max_tokens: int, schema: dict[str, Any] | None = None) -> str:
        if not self.left():
            raise ModelError("model budget spent")
        options: dict[str, Any] = {}
        if schema is not None:
            options["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": True},
            }
        begin = self._clock()
        self.used.calls += 1
        try:
            answer = self.client().chat.completions.create(
                model=self.config.name, messages=messages, max_tokens=max_tokens, temperature=0.0, **options
            )
            choice = answer.choices[0] if answer.choices else None
            text = (choice.message.content or "") if choice else ""
            spent = answer.usage
            self._count(
                spent.prompt_tokens if spent else rough_tokens(json.dumps(messages)),
                spent.completion_tokens if spent else rough_tokens(text),
            )
        except Exception as error:
            self.used.failed += 1
            self._count(rough_tokens(json.dumps(messages)), 0)
            raise ModelError(f"{type(error).__name__}: {str(error)[:160]}") from None
        finally:
            self.used.seconds += self._clock() - begin
        if not text.strip():
            self.used.failed += 1
            raise ModelError("empty answer")
        return text

    def _count(self, tokens_in: int, tokens_out: int) -> None:
        self.used.tokens_in += tokens_in
        self.used.tokens_out += tokens_out
        self.used.usd += (tokens_in * self.config.usd_in + tokens_out * self.config.usd_out) / 1e6

    def _messages(self, system: str, user: str, max_tokens: int) -> list[dict[str, str]]:
        room = min(self.can().context, DEFAULT_CONTEXT) - max_tokens - 64
        masked = self.masker.mask(user)
        while rough_tokens(system) + rough_tokens(masked) > room and len(masked) > 200:
            masked = masked[: int(len(masked) * 0.8)]
        return [{"role": "system", "content": system}, {"role": "user", "content": masked}]

    def text(self, system: str, user: str, max_tokens: int = 400) -> str:
        """Free text, unmasked again. Raises :class:`ModelError`."""
        return self.masker.unmask(self._call(self._messages(system, user, max_tokens), max_tokens))

    def data(self, system: str, user: str, schema: dict[str, Any], max_tokens: int = 500) -> dict[str, Any]:
        """One JSON object of ``schema``; lenient about fences, one repair try. Raises :class:`ModelError`."""
        constrain = schema if self.can().schema else None
        hint = (
            "" if constrain else "\nAnswer with one JSON object of this schema and nothing else: " + json.dumps(schema)
        )
        messages = self._messages(system + hint, user, max_tokens)
        text = self._call(messages, max_tokens, constrain)
        for attempt in (0, 1):
            found = loose_json(text)
            if isinstance(found, dict):
                return found
            if attempt == 0:
                again = [
                    *messages,
                    {"role": "assistant", "content": text[:800]},
                    {"role": "user", "content": "Not valid JSON. Only the JSON object."},
                ]
                text = self._call(again, max_tokens, constrain)
        raise ModelError("no JSON object in the answer")

    def stream(self, system: str, user: str, max_tokens: int = 400) -> Iterator[str]:
        """Pieces of text as they come. Ends early, without an error, when the stream breaks off."""
        if not self.left():
            raise ModelError("model budget spent")
        messages = self._messages(system, user, max_tokens)
        begin, made = self._clock(), ""
        self.used.calls += 1
        try:
            for event in self.client().chat.completions.create(
                model=self.config.name, messages=messages, max_tokens=max_tokens, temperature=0.0, stream=True
            ):
                piece = event.choices[0].delta.content if event.choices else None
                if piece:
                    made += piece
                    yield piece
                if self._clock() - begin > self.config.timeout_s * 2:
                    break
        except Exception as error:
            self.used.failed += 1
            if not made:
                raise ModelError(f"{type(error).__name__}: {str(error)[:160]}") from None
        finally:
            self.used.seconds += self._clock() - begin
            self._count(rough_tokens(json.dumps(messages)), rough_tokens(made))


def loose_json(text: str) -> Any:
    """The first JSON value in a text, fences and prose around it ignored; ``None`` when there is none."""
    body = re.sub(r"^\s*```[a-z]*\s*|\s*```\s*$", "", text.strip())
    start = min((i for i in (body.find("{"), body.find("[")) if i >= 0), default=-1)
    if start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(body[start:])[0]
    except ValueError:
        return None


def _cache_file() -> Path:
    from knowledge.loader import cache_dir

    return cache_dir() / "models.json"


def _cached(config: Settings) -> Capability | None:
    try:
        table = msgspec.json.decode(_cache_file().read_bytes(), type=dict[str, Capability])
    except (OSError, msgspec.DecodeError):
        return None
    found = table.get(f"{config.base_url}|{config.name}")
    return found if found and time.time() - found.seen < 7 * 86400 else None


def _store(config: Settings, found: Capability) -> None:
    path = _cache_file()
    try:
        table = msgspec.json.decode(path.read_bytes(), type=dict[str, Capability])
    except (OSError, msgspec.DecodeError):
        table = {}
    table[f"{config.base_url}|{config.name}"] = found
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(table))
    except OSError:
        return


def same_endpoint(config: Settings, urls: list[str]) -> str:
    """A warning when the server under diagnosis is the one that would answer; empty otherwise."""
    mine = urlsplit(config.base_url)
    for url in urls:
        other = urlsplit(url)
        if (mine.hostname, mine.port) == (other.hostname, other.port) and mine.hostname:
            return f"{other.hostname}:{other.port} is both the patient and the model used: its answers may be slow or wrong"
    return ""


def attach(env: Env, model: Model | None = None) -> Model | None:
    """Hang a model on an env as its assistant. Nothing happens when no model is configured."""
    if model is None:
        config = settings()
        if config is None:
            return None
        model = Model(config)
    from agent.assistant import ModelAssistant

    env.assistant = ModelAssistant(model, env.known, env.lang)
    return model


def complete(prompt: str, schema: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """One schema-constrained answer for the bare-model arms: ``(data, tokens)``. Raises :class:`ModelError`."""
    config = settings()
    if config is None:
        raise ModelError("no model configured (INFERDX_MODEL, INFERDX_BASE_URL)")
    model = Model(config)
    data = model.data("You diagnose LLM serving incidents. Answer in JSON.", prompt, schema)
    return data, model.used.tokens_in + model.used.tokens_out


__all__ = ["Capability", "Model", "ModelError", "Settings", "Usage", "attach", "complete", "settings"]

"""Model access: any OpenAI-compatible endpoint. The only file that knows the SDK.

Settings come from ``INFERDX_MODEL``, ``INFERDX_BASE_URL``, ``INFERDX_API_KEY`` (or the keyring), or from ``[model]`` in
``~/.config/inferdx/config.toml``. Everything sent is masked; everything received is text to be checked by others.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent.llm_settings import (
    DEFAULT_CONTEXT,
    LOCAL,
    OPENAI,
    Capability,
    ModelError,
    Settings,
    Usage,
    cached,
    same_endpoint,
    settings,
    store,
)
from tools.mask import Masker

if TYPE_CHECKING:
    from agent.state import Env

_FENCED = re.compile(r"(<<<DATA [^\n]*\n)(.*?)(\nDATA>>>)", re.S)


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
        self._can: Capability | None = None
        self._failures = 0

    def left(self) -> bool:
        """Whether any budget is left. Two failed calls in a row end the use of an endpoint: it would only cost time."""
        c, u = self.config, self.used
        return (
            self._failures < 2
            and u.calls < c.max_calls
            and u.tokens_in + u.tokens_out < c.max_tokens
            and u.seconds < c.max_seconds
            and (c.max_usd <= 0 or u.usd < c.max_usd)
        )

    def client(self) -> Any:
        """The SDK's client: no retry of its own (they are counted here), no proxy for loopback."""
        if self._client is None:
            import httpx2
            import openai

            local = urlsplit(self.config.base_url).hostname in LOCAL
            transport = httpx2.Client(trust_env=not local, timeout=self.config.timeout_s)
            self._client = openai.OpenAI(
                base_url=self.config.base_url or OPENAI, api_key=self.config.key or "none",
                timeout=self.config.timeout_s, max_retries=0, http_client=transport,
            )  # fmt: skip
        return self._client

    # ── capabilities ─────────────────────────────────────────────────────────────────────────────────────────
    def can(self) -> Capability:
        """The endpoint's capabilities, from the cache or a probe: the models list and three small calls."""
        if self._can is None:
            self._can = cached(self.config) or self._probe()
        return self._can

    def _probe(self) -> Capability:
        found = Capability(seen=time.time(), context=self._context(), streaming=False)
        self._can = found
        yes = {"type": "string", "enum": ["yes"]}
        schema = {"type": "object", "properties": {"ok": yes}, "required": ["ok"], "additionalProperties": False}
        ask = [{"role": "user", "content": 'Answer {"ok": "yes"} as JSON.'}]
        tool = {"type": "function", "function": {"name": "ok", "description": "Say yes", "parameters": schema}}
        answered = False
        try:
            found.schema = loose_json(self._call(ask, 16, schema)) == {"ok": "yes"}
            answered = True
        except ModelError as error:
            answered = error.answered
        if answered and self.left():
            try:
                found.streaming = bool("".join(self._pieces(ask, 8)))
            except ModelError:
                found.streaming = False
        if answered and self.left():
            try:
                found.tools = self._call(ask, 32, tools=[tool]) == "ok"
            except ModelError:
                found.tools = False
        self._failures = 0 if answered else self._failures
        if answered:
            store(self.config, found)
        return found

    def _context(self) -> int:
        """The window in tokens: vLLM's ``max_model_len``, llama.cpp's ``/props``, else the default."""
        sizes: list[int] = []
        limit = min(5.0, self.config.timeout_s)
        try:
            for item in self.client().with_options(timeout=limit).models.list().data:
                size = item.model_dump().get("max_model_len")
                if item.id == self.config.name and isinstance(size, int):
                    sizes.append(size)
            if not sizes and urlsplit(self.config.base_url).hostname in LOCAL:
                import httpx2

                root = self.config.base_url.rstrip("/").removesuffix("/v1")
                props = httpx2.get(f"{root}/props", timeout=limit, trust_env=False).json()
                sizes.append(int(props["default_generation_settings"]["n_ctx"]))
        except Exception:
            return sizes[0] if sizes else DEFAULT_CONTEXT
        return max(1024, min([*sizes, 131_072])) if sizes else DEFAULT_CONTEXT

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────
    def _call(
        self,
        messages: list[dict[str, str]],
        max_tokens: int,
        schema: dict[str, Any] | None = None,
        tools: list[dict[str, Any]] | None = None,
    ) -> str:
        """One answer as text (the tool's name with ``tools``). A refused or failed call is tried once more."""
        options: dict[str, Any] = {"max_tokens": max_tokens}
        if schema is not None:
            form = {"name": "answer", "schema": schema, "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": form}
        if tools is not None:
            options |= {"tools": tools, "tool_choice": "required"}

        def once() -> Iterator[Any]:
            yield self._create(messages, **options)

        for attempt in (0, 1):
            try:
                answer = next(self._within(messages, max_tokens, once), None)
                break
            except ModelError as error:
                if attempt or error.status not in (408, 409, 429, 500, 502, 503, 504) or not self.left():
                    raise
                time.sleep(min(0.5, self.config.timeout_s / 10))
        try:
            message = answer.choices[0].message  # type: ignore[union-attr]
            text = message.tool_calls[0].function.name if tools else message.content
            spent = answer.usage  # type: ignore[union-attr]
        except (AttributeError, IndexError, TypeError):
            text, spent = "", None
        text = text if isinstance(text, str) else ""
        self._count(messages, text, spent)
        if not text.strip():
            self.used.failed += 1
            self._failures += 1
            raise ModelError("empty answer", answered=True)
        self._failures = 0
        return text

    def _create(self, messages: list[dict[str, str]], **options: Any) -> Any:
        return self.client().chat.completions.create(
            model=self.config.name, messages=messages, temperature=0.0, **options
        )

    def _pieces(self, messages: list[dict[str, str]], max_tokens: int) -> Iterator[str]:
        """Pieces of a streamed answer; a stream that breaks off after its first piece just ends."""

        def events() -> Iterator[Any]:
            for event in self._create(messages, max_tokens=max_tokens, stream=True):
                yield event.choices[0].delta.content if event.choices else None

        made = ""
        try:
            for piece in self._within(messages, max_tokens, events):
                if isinstance(piece, str) and piece:
                    made += piece
                    yield piece
                if rough_tokens(made) > 4 * max_tokens:
                    break
        except ModelError:
            if not made:
                raise
        finally:
            self._count(messages, made, None)

    def _within(self, messages: list[Any], max_tokens: int, work: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """Run ``work`` beside us and hand on what it yields, until the deadline of the call or of the investigation.

        A socket's time-out starts anew with every byte, so a slow drip would never end: this deadline does not.
        """
        c, u = self.config, self.used
        need = rough_tokens(json.dumps(messages, ensure_ascii=False)) + max_tokens
        if not self.left() or u.tokens_in + u.tokens_out + need > c.max_tokens:
            raise ModelError("model budget spent")
        if c.max_usd > 0 and u.usd + need * max(c.usd_in, c.usd_out) / 1e6 > c.max_usd:
            raise ModelError("model budget spent (money)")
        u.calls += 1
        box: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        stop = threading.Event()
        thread = threading.Thread(target=_pump, args=(work, box, stop), daemon=True)
        begin, limit = self._clock(), min(c.timeout_s, c.max_seconds - u.seconds)
        end = time.monotonic() + limit
        thread.start()
        try:
            while True:
                kind, item = box.get(timeout=max(0.0, end - time.monotonic()))
                if kind == "end":
                    return
                if kind == "error":
                    raise item
                yield item
        except Empty:
            self._client = None if self._client is not None and hasattr(self._client, "close") else self._client
            self._fail(messages)
            raise ModelError(f"no whole answer within {limit:.0f} s") from None
        except ModelError:
            self._fail(messages)
            raise
        finally:
            stop.set()
            u.seconds += self._clock() - begin

    def _fail(self, messages: list[Any]) -> None:
        self.used.failed += 1
        self._failures += 1
        self._count(messages, "", None)

    def _count(self, messages: list[Any], made: str, spent: Any) -> None:
        """Add the tokens. A server's own count is taken only where it is near what was sent: it may be wrong."""
        sizes = []
        for name, text in (("prompt_tokens", json.dumps(messages, ensure_ascii=False)), ("completion_tokens", made)):
            told, rough = getattr(spent, name, None), rough_tokens(text)
            sizes.append(told if isinstance(told, int) and rough / 6 <= told <= rough * 4 + 64 else rough)
        self.used.tokens_in += sizes[0]
        self.used.tokens_out += sizes[1]
        self.used.usd += (sizes[0] * self.config.usd_in + sizes[1] * self.config.usd_out) / 1e6

    # ── what callers use ─────────────────────────────────────────────────────────────────────────────────────
    def _messages(self, system: str, user: str, max_tokens: int) -> list[dict[str, str]]:
        room = min(self.can().context, DEFAULT_CONTEXT) - max_tokens - 64 - rough_tokens(system)
        return [
            {"role": "system", "content": system},
            {"role": "user", "content": fit(self.masker.mask(user), room)},
        ]

    def text(self, system: str, user: str, max_tokens: int = 400) -> str:
        """Free text, unmasked again. Raises :class:`ModelError`."""
        return self.masker.unmask(self._call(self._messages(system, user, max_tokens), max_tokens))

    def data(self, system: str, user: str, schema: dict[str, Any], max_tokens: int = 500) -> dict[str, Any]:
        """One JSON object of ``schema``, unmasked; lenient about fences, one repair try. Raises :class:`ModelError`."""
        constrain = schema if self.can().schema else None
        try:
            return self._data(system, user, schema, max_tokens, constrain)
        except ModelError as error:
            if constrain is None or error.status not in (400, 422):
                raise
        self.can().schema = False
        self._failures = 0
        return self._data(system, user, schema, max_tokens, None)

    def _data(
        self, system: str, user: str, schema: dict[str, Any], max_tokens: int, constrain: dict[str, Any] | None
    ) -> dict[str, Any]:
        hint = (
            "" if constrain else "\nAnswer with one JSON object of this schema and nothing else: " + json.dumps(schema)
        )
        messages = self._messages(system + hint, user, max_tokens)
        text = self._call(messages, max_tokens, constrain)
        found = loose_json(text)
        if not isinstance(found, dict):
            messages = [
                *messages,
                {"role": "assistant", "content": self.masker.mask(text[:400])},
                {"role": "user", "content": "Not valid JSON. Only the JSON object."},
            ]
            found = loose_json(self._call(messages, max_tokens, constrain))
        if not isinstance(found, dict):
            self.used.failed += 1
            raise ModelError("no JSON object in the answer", answered=True)
        return {str(key): _unmasked(self.masker, value) for key, value in found.items()}

    def stream(self, system: str, user: str, max_tokens: int = 400) -> Iterator[str]:
        """Pieces of text as they come, still masked. Ends early, without an error, when the stream breaks off."""
        yield from self._pieces(self._messages(system, user, max_tokens), max_tokens)


def _pump(work: Callable[[], Iterator[Any]], box: SimpleQueue[tuple[str, Any]], stop: threading.Event) -> None:
    try:
        for item in work():
            if stop.is_set():
                return
            box.put(("item", item))
        box.put(("end", None))
    except Exception as error:
        status = getattr(error, "status_code", 0)
        told = f"{type(error).__name__}: {str(error)[:160]}"
        answered = not type(error).__name__.startswith(("APIConnection", "APITimeout", "Connect"))
        box.put(("error", ModelError(told, status if isinstance(status, int) else 0, answered)))


def _unmasked(masker: Masker, value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return masker.unmask(value)
    if isinstance(value, list) and depth < 4:
        return [_unmasked(masker, item, depth + 1) for item in value[:64]]
    if isinstance(value, dict) and depth < 4:
        return {str(k)[:80]: _unmasked(masker, item, depth + 1) for k, item in list(value.items())[:64]}
    return value if isinstance(value, (int, float, bool, type(None))) else None


def fit(text: str, room: int) -> str:
    """The text within ``room`` tokens: quoted data is cut, longest first; instructions and fences stay whole.

    Raises :class:`ModelError` when the instructions alone do not fit.
    """
    while rough_tokens(text) > room:
        longest = max(_FENCED.finditer(text), key=lambda m: len(m[2]), default=None)
        if longest is None or len(longest[2]) < 40:
            raise ModelError(f"the prompt does not fit {room} tokens")
        body = longest[2][: int(len(longest[2]) * 0.8)]
        text = text[: longest.start(2)] + body + text[longest.end(2) :]
    return text


def loose_json(text: str) -> Any:
    """The first JSON value in a text, fences and prose around it ignored; ``None`` when there is none."""
    body = text.strip()[:100_000]
    start = min((i for i in (body.find("{"), body.find("[")) if i >= 0), default=-1)
    if start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(body[start:])[0]
    except (ValueError, RecursionError):
        return None


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
    from agent.untrusted import fence

    config = settings()
    if config is None:
        raise ModelError("no model configured (INFERDX_MODEL, INFERDX_BASE_URL)")
    model = Model(config)
    asked = fence(prompt, "task", 60_000)
    data = model.data("You diagnose LLM serving incidents. Answer in JSON.", asked, schema)
    return data, model.used.tokens_in + model.used.tokens_out


__all__ = ["Capability", "Model", "ModelError", "Settings", "Usage", "attach", "complete", "same_endpoint", "settings"]

"""The webhook's HTTP surface: bearer token, bounded bodies and queue, health and metrics of its own."""

from __future__ import annotations

import hmac
import json
import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agent.serve.alerts import Bad, Desk, parse
from agent.version import VERSION

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

MAX_BODY = 4 << 20


class Meters(Struct):
    """Counters since the process started."""

    opened: int = 0
    folded: int = 0
    resolved: int = 0
    refused: int = 0
    bad: int = 0
    denied: int = 0


def exposition(meters: Meters, waiting: dict[str, int], limit: int, started: float) -> str:
    """Prometheus text."""
    rows = ["# TYPE inferdx_alerts counter"]
    for what in ("opened", "folded", "resolved", "refused"):
        rows.append(f'inferdx_alerts_total{{result="{what}"}} {getattr(meters, what)}')
    rows += ["# TYPE inferdx_requests_rejected counter"]
    rows += [f'inferdx_requests_rejected_total{{why="{w}"}} {getattr(meters, w)}' for w in ("bad", "denied")]
    rows += ["# TYPE inferdx_queue_events gauge"]
    rows += [f'inferdx_queue_events{{state="{s}"}} {waiting.get(s, 0)}' for s in ("open", "done", "dead")]
    rows += ["# TYPE inferdx_queue_limit gauge", f"inferdx_queue_limit {limit}"]
    rows += ["# TYPE inferdx_start_time_seconds gauge", f"inferdx_start_time_seconds {started:.3f}"]
    rows += ["# TYPE inferdx_build_info gauge", f'inferdx_build_info{{version="{VERSION}"}} 1']
    return "\n".join(rows) + "\n"


def build(desk: Desk, token: str) -> Starlette:
    """The ASGI application. ``/healthz`` is open; everything else needs ``Authorization: Bearer TOKEN``."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse, PlainTextResponse
    from starlette.routing import Route

    meters = Meters()
    started = time.time()

    def denied(request: Request) -> Response | None:
        given = request.headers.get("authorization", "")
        if hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            return None
        meters.denied += 1
        return JSONResponse({"error": "bearer token missing or wrong"}, 401, {"WWW-Authenticate": "Bearer"})

    async def body_of(request: Request) -> bytes | None:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                return None
        return bytes(body)

    async def alerts(request: Request) -> Response:
        if (no := denied(request)) is not None:
            return no
        body = await body_of(request)
        if body is None:
            meters.bad += 1
            return JSONResponse({"error": f"over {MAX_BODY >> 20} MiB"}, 413)
        try:
            found = parse(body)
        except Bad as error:
            meters.bad += 1
            return JSONResponse({"error": str(error)}, 400)
        counts = await run_in_threadpool(desk.take, found)
        for name in ("opened", "folded", "resolved", "refused"):
            setattr(meters, name, getattr(meters, name) + getattr(counts, name))
        data = {
            "opened": counts.opened,
            "folded": counts.folded,
            "resolved": counts.resolved,
            "refused": counts.refused,
        }
        # 5xx makes Alertmanager send the group again; what was taken is folded then
        return JSONResponse(data, 503 if counts.refused else 200, {"Retry-After": "30"} if counts.refused else None)

    async def health(request: Request) -> Response:
        del request
        try:
            await run_in_threadpool(desk.store.waiting)
        except Exception as error:
            return JSONResponse({"ok": False, "error": f"storage: {type(error).__name__}"}, 503)
        return JSONResponse({"ok": True, "version": VERSION})

    async def metrics(request: Request) -> Response:
        if (no := denied(request)) is not None:
            return no
        waiting = await run_in_threadpool(desk.store.waiting)
        return PlainTextResponse(
            exposition(meters, waiting, desk.limit, started), media_type="text/plain; version=0.0.4"
        )

    async def listing(request: Request) -> Response:
        if (no := denied(request)) is not None:
            return no
        rows = await run_in_threadpool(
            desk.store.db.run,
            "SELECT fingerprint, status, times, opened, answer FROM alerts ORDER BY opened DESC LIMIT 100",
        )
        return JSONResponse([_short(row) for row in rows])

    async def one(request: Request) -> Response:
        if (no := denied(request)) is not None:
            return no
        rows = await run_in_threadpool(
            desk.store.db.run, "SELECT answer FROM alerts WHERE fingerprint = ?", request.path_params["fingerprint"]
        )
        if not rows:
            return JSONResponse({"error": "no such alert"}, 404)
        return JSONResponse(json.loads(rows[0][0])) if rows[0][0] else JSONResponse({"pending": True}, 202)

    return Starlette(
        routes=[
            Route("/alerts", alerts, methods=["POST"]),
            Route("/healthz", health),
            Route("/metrics", metrics),
            Route("/investigations", listing),
            Route("/investigations/{fingerprint}", one),
        ]
    )


def _short(row: tuple[Any, ...]) -> dict[str, Any]:
    answer = json.loads(row[4]) if row[4] else {}
    return {
        "fingerprint": row[0],
        "status": row[1],
        "times": row[2],
        "opened": row[3],
        "outcome": answer.get("outcome", ""),
        "headline": answer.get("headline", ""),
    }

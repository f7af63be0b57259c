"""Several workers over a real PostgreSQL: queue, messages and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agent.slack.store import Store
from tests.agent.services import postgres
from tests.agent.slack.conftest import Bench
from tests.agent.slack.slackd import BOT, TEAM, Slack, event_body
from tests.agent.slack.test_crash import Killed, armed, check_crowd, crowd_of, free_leases, keys_of


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres(tmp_path_factory.mktemp("pg")) as found:
        yield found


@pytest.fixture
def shared(slack: Slack, tmp_path: Any, known: Any, address: str) -> Iterator[Bench]:
    made = Bench(slack, tmp_path, known, target=address)
    store = Store(address)
    for table in ("events", "threads", "inbox", "files", "outbox", "gates", "tokens", "feedback", "alerts"):
        store.db.run(f"TRUNCATE {table}")
    store.close()
    yield made
    made.close()


def test_ten_threads_at_once_with_two_workers(shared: Bench, slack: Slack) -> None:
    check_crowd(shared, slack, crowd_of(shared, slack, 10))


def test_another_host_takes_a_thread_up(shared: Bench, slack: Slack) -> None:
    """A worker dies in the middle; another one with an empty disk goes on from the shared checkpoints."""
    from agent.slack import intake

    store = shared.handlers().store
    said = slack.person_says("C1", f"<@{BOT}> vLLM TTFT is 30 s")
    intake.message(store, TEAM, said | {"type": "app_mention"}, BOT)
    worker, _ = armed(shared, 12)
    with pytest.raises(Killed):
        shared.drain(worker)
    free_leases(store)
    shared.folder = shared.folder / "other-host"
    shared.drain()
    assert sorted(keys_of(slack, "C1", said["ts"])) == ["answer", "run"]
    more = slack.person_says("C1", f"<@{BOT}> --max-num-seqs 4, 98 requests waiting, KV usage 0.3%", said["ts"])
    intake.message(store, TEAM, more | {"type": "app_mention"}, BOT)
    shared.drain()
    answer = [m for m in slack.ours("C1", said["ts"]) if "metadata" in m][-1]
    assert "new readings" in str(answer["blocks"]), "the first message's evidence is still there"
    assert event_body(more)


def test_the_server_goes_away_and_comes_back(shared: Bench, slack: Slack, address: str) -> None:
    import psycopg

    store = shared.handlers().store
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(psycopg.OperationalError):
        store.waiting()
    assert store.waiting() == {}
    assert store.enqueue("e1", "message", "T:C1:1", "C1", {}) is True

"""Real servers for tests: PostgreSQL and Alertmanager on loopback, in temporary folders; a skip says what is missing."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _postgres_bin() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    path = shutil.which("postgres")
    return found[-1].parent if found else Path(path).parent if path else None


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL of its own; its ``postgresql://`` address. It refuses to run as root, so it runs as ``postgres``."""
    where = _postgres_bin()
    if where is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    pytest.importorskip("psycopg", reason="psycopg is not installed (pip install 'inferdx[postgres]')")
    data, port = folder / "pg", free_port()
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        try:
            account = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root and there is no user postgres")
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        data.mkdir()
        os.chown(data, account.pw_uid, account.pw_gid)
        for parent in [folder, *folder.parents]:
            if parent != Path("/") and not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o011)
    made = subprocess.run(
        [str(where / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync", "--no-locale", "-E", "UTF8"],
        check=False, capture_output=True, cwd="/", **who,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"initdb failed here: {made.stderr.decode()[-200:]}")
    server = subprocess.Popen(
        [str(where / "postgres"), "-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", str(data), "-F"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **who,
    )  # fmt: skip
    try:
        import psycopg

        address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        for _ in range(300):
            try:
                psycopg.connect(address, connect_timeout=2).close()
                break
            except psycopg.OperationalError:
                time.sleep(0.1)
        else:
            pytest.skip("PostgreSQL did not start within 30 s")
        yield address
    finally:
        server.send_signal(signal.SIGQUIT)  # immediate shutdown
        server.wait(20)


@contextmanager
def alertmanager(folder: Path, webhook: str, token: str) -> Iterator[str]:
    """A real Alertmanager that sends to ``webhook``; its base address."""
    binary = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if binary is None:
        pytest.skip("Alertmanager is not installed (apt-get install prometheus-alertmanager)")
    config = folder / "alertmanager.yml"
    config.write_text(
        "route:\n  receiver: doctor\n  group_by: [alertname]\n  group_wait: 100ms\n  group_interval: 300ms\n  repeat_interval: 1s\n"
        f"receivers:\n  - name: doctor\n    webhook_configs:\n      - url: {webhook}\n        send_resolved: true\n"
        f"        http_config:\n          authorization:\n            type: Bearer\n            credentials: {token}\n"
    )
    port = free_port()
    server = subprocess.Popen(
        [binary, f"--config.file={config}", f"--storage.path={folder / 'am'}", f"--web.listen-address=127.0.0.1:{port}",
         "--cluster.listen-address="],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(200):
            try:
                with urllib.request.urlopen(f"{base}/-/ready", timeout=1):
                    break
            except OSError:
                time.sleep(0.05)
        else:
            pytest.skip("Alertmanager did not start within 10 s")
        yield base
    finally:
        server.terminate()
        server.wait(10)

"""Masking: what must go, what must stay, and the way back."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.mask import Masker, mask_file, mask_text
from tools.part import Part

GONE = [
    ("--api-key sk-abcDEF1234567890xyz", "sk-abcDEF1234567890xyz"),
    ("Authorization: Bearer abc.def-123456789", "abc.def-123456789"),
    ("HF_TOKEN=hf_abcdefghijklmnop", "hf_abcdefghijklmnop"),
    ('{"api_key": "s3cr3t-value-9"}', "s3cr3t-value-9"),
    ("password=hunter22", "hunter22"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "eyJhbGciOiJIUzI1NiJ9"),
    ("postgres://bob:pa55word@db.example.com/x", "pa55word"),
    ("xoxb-123456789012-abcdefgh", "xoxb-123456789012"),
    ("AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
    ("client 10.24.7.113:51234 closed", "10.24.7.113"),
    ("VLLM_HOST_IP=10.1.2.3", "10.1.2.3"),
    ("peer fe80::1ff:fe23:4567:890a down", "fe80::1ff:fe23:4567:890a"),
    ("bound to 2001:db8:85a3::8a2e:370:7334", "2001:db8:85a3::8a2e:370:7334"),
    ("see http://gpu-node-17:8000/metrics", "gpu-node-17"),
    ('up{instance="llm-a7.rack3:8000"} 1', "llm-a7.rack3"),
    ("host infer-3.prod.corp answered", "infer-3.prod.corp"),
    ("mail ops.team+llm@example.co.uk", "ops.team+llm@example.co.uk"),
    ("/home/alice/models/llama", "alice"),
    (r"C:\Users\Bob\models", "Bob"),
    ("GPU-1a2b3c4d-1111-2222-3333-444455556666", "1a2b3c4d-1111"),
    ("-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----", "MIIabc"),
]
STAYS = [
    "(APIServer pid=25544) INFO 11-29 16:17:07 [api_utils.py:286] non-default args: {'max_num_seqs': 4}",
    "vLLM 0.32.0 torch==2.13.0.1 cuda 12.9 driver 580.95.05",
    "Uvicorn running on http://0.0.0.0:8000 and http://127.0.0.1:8100/metrics",
    "vllm.v1.engine.exceptions.EngineDeadError at torch.nn.functional and torchvision.io",
    "vllm:time_to_first_token_seconds_bucket{le=\"0.25\",model_name=\"tiny\"} 4.0",
    "nvidia-cublas-cu12==12.8.4.1 file server.log model /models/tiny",
    "generation_tokens 42 max_tokens: 512 token budget 8192",
    "t=16:17:28 elapsed 00:01:02",
    "https://huggingface.co/Qwen/Qwen3-8B and https://github.com/x/y",
    "/srv/vllm and /home/ubuntu/vllm",
]  # fmt: skip


@pytest.mark.parametrize(("text", "secret"), GONE)
def test_secret_goes_and_comes_back(text: str, secret: str) -> None:
    masker = Masker()
    masked = masker.mask(text)
    assert secret not in masked
    assert masker.mask(masked) == masked
    assert masker.unmask(masked) == text


@pytest.mark.parametrize("text", STAYS)
def test_evidence_stays(text: str) -> None:
    assert Masker().mask(text) == text


def test_same_original_same_placeholder_and_replicas_stay_apart() -> None:
    masker = Masker()
    text = masker.mask("10.0.0.7 10.0.0.8 10.0.0.7")
    assert text == "<ip-1> <ip-2> <ip-1>"
    assert masker.mask("back to 10.0.0.8") == "back to <ip-2>"
    again = Masker(masker.table)
    assert again.mask("10.0.0.8 and 10.0.0.9") == "<ip-2> and <ip-3>"


def test_a_placeholder_already_in_the_text_is_not_reused() -> None:
    text = "someone wrote <ip-1>, then 10.0.0.9"
    masked, table = mask_text(text)
    assert masked == "someone wrote <ip-1>, then <ip-2>"
    assert Masker(table).unmask(masked) == text


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet='abc019.:/@-_= <>"\n', max_size=120))
def test_masking_is_stable_and_reversible(text: str) -> None:
    masker = Masker()
    masked = masker.mask(text)
    assert masker.unmask(masked) == text
    assert masker.mask(masked) == masked


@pytest.mark.parametrize(
    "piece", ["a.", "1.", "a@", "a-", "ab:", "://a.", "api_key ", "= ", "-----BEGIN PRIVATE KEY-----"]
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    start = time.process_time()
    Masker().mask(piece * (60_000 // len(piece)))
    assert time.process_time() - start < 2


def test_file_copy_keeps_gzip_and_leaves_binaries_out(tmp_path: Path) -> None:
    masker = Masker()
    plain, packed = tmp_path / "a.log", tmp_path / "b.prom.gz"
    plain.write_text("from 10.9.8.7\n")
    packed.write_bytes(gzip.compress(b'up{instance="10.9.8.7:1"} 1\n'))
    assert mask_file(Part(name="a.log", path=plain), tmp_path / "o" / "a.log", masker) is None
    assert mask_file(Part(name="b.prom.gz", path=packed), tmp_path / "o" / "b.prom.gz", masker) is None
    assert (tmp_path / "o" / "a.log").read_text() == "from <ip-1>\n"
    assert gzip.decompress((tmp_path / "o" / "b.prom.gz").read_bytes()) == b'up{instance="<ip-1>:1"} 1\n'
    blob = tmp_path / "c.sqlite"
    blob.write_bytes(b"SQLite format 3\x00" + bytes(100))
    problem = mask_file(Part(name="c.sqlite", path=blob), tmp_path / "o" / "c.sqlite", masker)
    assert problem is not None
    assert "binary" in problem.what
    assert not (tmp_path / "o" / "c.sqlite").exists()

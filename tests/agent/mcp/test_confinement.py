"""Nothing outside the roots is read, nothing outside the list is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.mcp.roots import Roots
from agent.mcp.trouble import Trouble
from agent.mcp.urls import Addresses


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    inside = tmp_path / "in"
    (inside / "deep").mkdir(parents=True)
    (inside / "a.txt").write_text("a")
    (inside / "deep" / "b.txt").write_text("b")
    (tmp_path / "in-not").mkdir()
    (tmp_path / "in-not" / "c.txt").write_text("c")
    (tmp_path / "secret.txt").write_text("s")
    (inside / "link.txt").symlink_to(tmp_path / "secret.txt")
    (inside / "out").symlink_to(tmp_path / "in-not")
    (inside / "good.txt").symlink_to(inside / "a.txt")
    return Roots([inside])


def refused(roots: Roots, path: str) -> str:
    with pytest.raises(Trouble) as caught:
        roots.resolve(path)
    return caught.value.code


def test_inside_is_allowed_by_absolute_and_relative_path(roots: Roots, tmp_path: Path) -> None:
    assert roots.resolve(str(tmp_path / "in" / "a.txt")).name == "a.txt"
    assert roots.resolve("deep/b.txt").name == "b.txt"
    assert roots.resolve("deep/../a.txt").name == "a.txt"
    assert roots.resolve("good.txt").name == "a.txt"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../secret.txt", "deep/../../secret.txt", "link.txt", "out/c.txt", "/"]
)
def test_outside_is_refused(roots: Roots, path: str) -> None:
    assert refused(roots, path) == "path_refused"


def test_a_neighbour_with_the_same_beginning_is_outside(roots: Roots, tmp_path: Path) -> None:
    assert refused(roots, str(tmp_path / "in-not" / "c.txt")) == "path_refused"


def test_outside_answers_the_same_whether_or_not_it_exists(roots: Roots, tmp_path: Path) -> None:
    there, not_there = str(tmp_path / "secret.txt"), str(tmp_path / "nothing.txt")
    said = []
    for path in (there, not_there):
        with pytest.raises(Trouble) as caught:
            roots.resolve(path)
        said.append(caught.value.what.replace(path, ""))
    assert said[0] == said[1]


def test_a_missing_file_inside_says_so(roots: Roots, tmp_path: Path) -> None:
    assert refused(roots, str(tmp_path / "in" / "zzz")) == "no_such_file"
    assert refused(roots, "zzz") == "no_such_file"


@pytest.mark.parametrize("path", ["", "a\x00b", "x" * 5000])
def test_unusable_paths(roots: Roots, path: str) -> None:
    assert refused(roots, path) == "bad_path"


def test_a_folder_gives_its_files_without_links_that_lead_out(roots: Roots, tmp_path: Path) -> None:
    names = [part.name for part in roots.parts([str(tmp_path / "in")])]
    assert names == ["a.txt", "deep/b.txt", "good.txt"]


def test_links_in_a_loop_end(roots: Roots, tmp_path: Path) -> None:
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in" / "loop")
    assert len(roots.parts([str(tmp_path / "in")])) == 3


def test_a_root_must_be_a_folder_and_not_the_file_system(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such folder"):
        Roots([tmp_path / "none"])
    with pytest.raises(ValueError, match="whole file system"):
        Roots([Path("/")])
    assert refused(Roots([]), "/etc/passwd") == "path_refused"


LISTED = Addresses(["http://127.0.0.1:8000/metrics", "http://127.0.0.1:9090"])


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/metrics",
        "http://127.0.0.1:8000/metrics/",
        "http://127.0.0.1:9090/api",
        "HTTP://127.0.0.1:9090",
    ],
)
def test_listed_addresses_pass(url: str) -> None:
    assert LISTED.check(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/",
        "http://127.0.0.1:8000/metricsx",
        "http://127.0.0.1:8000/metrics/../admin",
        "http://127.0.0.1:8000/metrics/%2e%2e/admin",
        "http://127.0.0.1:8000/metrics/%252e%252e/admin",
        "http://127.0.0.1:8001/metrics",
        "https://127.0.0.1:8000/metrics",
        "http://user:pw@127.0.0.1:8000/metrics",
        "http://127.0.0.1:8000@evil.example/metrics",
        "http://127.0.0.1:8000\\@evil.example/metrics",
        "http://127.0.0.1:8000/metrics\r\nX: y",
        "http://localhost:8000/metrics",
        "file:///etc/passwd",
        "ftp://127.0.0.1:8000/metrics",
        "http://127.0.0.1:99999/metrics",
        "",
    ],
)
def test_all_else_is_refused(url: str) -> None:
    with pytest.raises(Trouble) as caught:
        LISTED.check(url)
    assert caught.value.code == "url_refused"


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1]/metrics",
        "http://[::ffff:169.254.169.254]/metrics",
        "http://[2002:a9fe:a9fe::]/metrics",
        "http://0.0.0.0:8000/metrics",
        "http://224.0.0.1/metrics",
    ],
)
def test_link_local_is_refused_even_when_an_operator_lists_it(url: str) -> None:
    with pytest.raises(ValueError, match="never read"):
        Addresses([url])
    with pytest.raises(Trouble, match="never read"):
        LISTED.check(url)


@pytest.mark.parametrize("url", ["http://2852039166/metrics", "http://0xa9fea9fe/metrics"])
def test_link_local_as_a_number_is_refused_when_it_resolves(url: str) -> None:
    with pytest.raises(Trouble) as caught:
        Addresses([url]).check(url)
    assert caught.value.code == "url_refused"


def test_with_no_list_everything_is_refused() -> None:
    with pytest.raises(Trouble):
        Addresses([]).check("http://127.0.0.1:8000/metrics")

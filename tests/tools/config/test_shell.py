"""Commands as people paste them."""

from __future__ import annotations

from tools.config.shell import array_name, expand, split


def words(text: str) -> list[list[str]]:
    return [[token.text for token in command.tokens] for command in split(text)[0]]


def test_quotes_continuations_and_comments() -> None:
    text = 'vllm serve \'a b\' \\\n  # --old 1 \\\n  --json \'{"x": 1}\' \\  \n  --last "q \\"in\\" q"  # tail\n'
    commands, comments = split(text)
    assert words(text) == [["vllm", "serve", "a b", "--json", '{"x": 1}', "--last", 'q "in" q']]
    assert [token.line for token in commands[0].tokens][:5] == [1, 1, 1, 3, 3]
    assert [comment.text for comment in comments] == ["--old 1 \\", "tail"]
    assert any("spaces after" in note for note in commands[0].notes)


def test_operators_redirects_and_placeholders() -> None:
    text = "cd /x && vllm serve <model> > out.log 2>&1 & echo done; python a.py | tee b"
    assert words(text) == [
        ["cd", "/x"],
        ["vllm", "serve", "<model>"],
        ["echo", "done"],
        ["python", "a.py"],
        ["tee", "b"],
    ]


def test_typographic_quotes_are_accepted_and_noted() -> None:
    commands, _ = split("serve \u201ca b\u201d \u2014max-num-seqs 4")
    assert [token.text for token in commands[0].tokens] == ["serve", "a b", "\u2014max-num-seqs", "4"]
    assert any("typographic" in note for note in commands[0].notes)


def test_unclosed_quotes_and_apostrophes_are_literal() -> None:
    assert words("echo it's \"open\nnext line") == [["echo", "it's", '"open'], ["next", "line"]]


def test_label_is_the_comment_above() -> None:
    commands, _ = split("# with LoRA\nvllm serve a\n\n# without\nvllm serve b")
    assert [(command.label, command.gap, command.line) for command in commands] == [
        ("with LoRA", True, 2),
        ("without", True, 5),
    ]


def test_expansion_says_how() -> None:
    assert expand("${A:-${B:-2}}", {}) == ("2", "default")
    assert expand("$$HOST:$PORT", {"HOST": "h", "PORT": "1"}) == ("h:1", "variable")
    assert expand("${MODEL}", {}) == ("${MODEL}", "unresolved")
    assert expand("plain", {}) == ("plain", "")
    assert array_name("$${SPEC_ARGS[@]}") == "SPEC_ARGS"

"""``docker run``: options, image and the words that go to the image's entrypoint."""

from __future__ import annotations

import re

from msgspec import Struct, field

from tools.config.launch import Setting
from tools.config.shell import Token, assignment
from tools.config.values import cores, cpu_list, gibibytes

_RUNTIMES = {"docker", "podman", "nerdctl"}
_NOVALUE = {
    "-d", "-i", "-t", "-it", "-ti", "-dit", "-itd", "-P", "--detach", "--interactive", "--tty", "--rm", "--init",
    "--privileged", "--read-only", "--publish-all", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "-q",
    "--quiet", "-idt", "-dti", "-tid", "-tdi",
}  # fmt: skip


class DockerRun(Struct):
    """What ``docker run`` says about image, environment and limits. ``rest``: words after the image."""

    image: str = ""
    rest: list[Token] = field(default_factory=list)
    env: list[Setting] = field(default_factory=list)
    limits: dict[str, Setting] = field(default_factory=dict)
    device: str = ""


def read_docker(tokens: list[Token]) -> DockerRun | None:
    """``None`` when the command is no ``docker run`` (or ``exec``, which has no image)."""
    words = [token.text for token in tokens]
    start = next((i for i, word in enumerate(words[:6]) if word.rsplit("/", 1)[-1] in _RUNTIMES), -1)
    if start < 0 or "run" not in words[start + 1 : start + 4]:
        return None
    at = words.index("run", start + 1) + 1
    out = DockerRun()
    while at < len(tokens):
        word = words[at]
        if word in ("\\", ""):
            at += 1
            continue
        if not word.startswith("-"):
            out.image = word
            out.rest = tokens[at + 1 :]
            return out
        at = _option(out, tokens, at)
    return out


def _option(out: DockerRun, tokens: list[Token], at: int) -> int:
    word = tokens[at].text
    line = tokens[at].line
    name, equals, value = word.partition("=")
    if name in _NOVALUE:
        return at + 1
    if re.match(r"^-[em]\S", word) and not word.startswith("--"):
        name, value, equals = word[:2], word[2:].lstrip("="), "="
    if not equals:
        at += 1
        value = tokens[at].text if at < len(tokens) else ""
    _apply(out, name, value, line)
    return at + 1


def _apply(out: DockerRun, name: str, value: str, line: int) -> None:
    if name in ("-e", "--env"):
        pair = assignment(Token(value, line))
        if pair:
            out.env.append(Setting(pair[0], pair[1], line))
    elif name == "--cpus":
        _limit(out, "cpu_limit", cores(value), line)
    elif name == "--cpuset-cpus":
        _limit(out, "cpuset", cpu_list(value), line)
    elif name in ("-m", "--memory"):
        _limit(out, "memory_limit", gibibytes(value), line)
    elif name == "--shm-size":
        _limit(out, "shm_size", gibibytes(value), line)
    elif name == "--ipc":
        _limit(out, "ipc_host", value == "host", line)
    elif name == "--gpus":
        count = re.fullmatch(r"['\"]?(\d+)['\"]?", value)
        devices = re.search(r"device=([\w,.-]+)", value)
        if count:
            _limit(out, "gpu_limit", int(count[1]), line)
        elif devices:
            _limit(out, "gpu_limit", len([part for part in devices[1].split(",") if part]), line)
    elif name == "--device" and "kfd" in value:
        out.device = "rocm"


def _limit(out: DockerRun, name: str, value: object, line: int) -> None:
    if value is not None:
        out.limits[name] = Setting(name, value, line)

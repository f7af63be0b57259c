"""From words to a :class:`~tools.config.launch.Launch`: which program, wrapped how, with which flags."""

from __future__ import annotations

import re

from tools.config.data import engine_data
from tools.config.docker import DockerRun, read_docker
from tools.config.launch import (
    Given,
    Launch,
    Setting,
    engine_of_image,
    guess_engine,
    is_flag,
    read_flags,
    undash,
    unknown_value,
    version_of_image,
)
from tools.config.programs import Anchor, find_anchor, is_prose
from tools.config.shell import Command, Comment, Token, array_name, assignment, expand, split
from tools.config.values import cpu_list

MAX_LAUNCHES = 24
_SHELLS = {"sh", "bash", "zsh", "dash", "ash"}
_EXPORTS = {"export", "ENV", "setenv", "declare", "set", "env", "ARG"}
_PIP = re.compile(r"^(vllm|sglang)(?:\[[\w,]+\])?==(\d[\w.]*)")
_POWERSHELL = re.compile(r"^\$env:(\w+)=(.*)$", re.IGNORECASE)


class Reader:
    """Walks the commands of one text; keeps variables, arrays and exported environment."""

    def __init__(self, *, fragment_engine: str = "", arguments: list[Token] | None = None) -> None:
        self.launches: list[Launch] = []
        self.comments: list[Comment] = []
        self.names: dict[str, str] = {}
        self.arrays: dict[str, list[Token]] = {}
        self.exported: list[Setting] = []
        self.versions: dict[str, str] = {}
        self.fragment_engine = fragment_engine
        self.arguments = arguments or []
        self.left_out = 0

    def text(self, text: str, line: int = 1, depth: int = 0) -> None:
        """Read all commands of a text."""
        commands, comments = split(text, line)
        self.comments += comments
        ran = 0
        for command in _joined(commands):
            known = len(self.exported)
            self.command(command, depth)
            ran = ran if len(self.exported) > known else len(self.exported)
        if depth == 0 and "\n" in text:
            self._noted(self.exported[ran:])

    def _noted(self, late: list[Setting]) -> None:
        """Variables that stand alone behind the last command, as people note them; a script would run something after."""
        for launch in self.launches:
            have = {item.name for item in launch.env}
            launch.env += [item for item in late if item.name not in have and item.line > launch.line]

    def command(self, command: Command, depth: int) -> None:
        tokens = self.expanded(command.tokens)
        while tokens and tokens[0].text in (
            "$",
            ">",
            "%",
            "then",
            "else",
            "do",
            "exec",
            "nohup",
            "time",
            "sudo",
            "{",
            "!",
            "RUN",
            "CMD",
            "ENTRYPOINT",
        ):
            tokens = tokens[1:]
        if not tokens or self._is_assignment(command, tokens):
            return
        prefix, tokens = self._prefix(tokens)
        if not tokens:
            return
        if self._shell_string(tokens, prefix, depth):
            return
        words = [token.text for token in tokens]
        self._pip(words)
        docker = read_docker(tokens)
        anchor = find_anchor(words)
        if docker is not None:
            self.container(command, docker, prefix)
        elif anchor is not None and not is_prose(tokens[anchor.at :], words[: anchor.at]):
            self.engine(command, tokens, anchor, prefix)
        elif is_flag(undash(words[0])):
            self._fragment(command, tokens, prefix)

    def expanded(self, tokens: list[Token]) -> list[Token]:
        out: list[Token] = []
        for token in tokens:
            name = array_name(token.text)
            if name:
                out += self.arrays.get(name, [])
                continue
            if token.text in ("$@", "$$@", "${@}", "$*"):
                out += self.arguments
                continue
            if "$" not in token.text:
                out.append(token)
                continue
            text, _ = expand(token.text, self.names)
            if text or token.quoted:
                out.append(token._replace(text=text))
        return out

    def _is_assignment(self, command: Command, tokens: list[Token]) -> bool:
        """``NAME=value``, ``export NAME=value``, ``NAME=( … )``: remembered, no launch."""
        head = tokens[0].text
        if head.endswith("=(") and len(tokens) > 1:
            body = tokens[1:-1] if tokens[-1].text == ")" else tokens[1:]
            name = head[:-2].rstrip("+")
            if body:
                self.arrays[name] = body
            return True
        powershell = _POWERSHELL.match(head)
        if powershell:
            self._remember(powershell[1], powershell[2].strip("'\""), tokens[0].line)
            return True
        rest = tokens[1:] if head in _EXPORTS else tokens
        pairs = [assignment(token) for token in rest]
        if rest and all(pair is not None for pair in pairs):
            for token, pair in zip(rest, pairs, strict=True):
                if pair:
                    self._remember(pair[0], pair[1], token.line)
            return True
        if head == "ENV" and len(tokens) == 3:
            self._remember(tokens[1].text, tokens[2].text, tokens[1].line)
            return True
        if head == "unset":
            gone = {token.text for token in tokens[1:]}
            self.exported = [item for item in self.exported if item.name not in gone]
            return True
        return False

    def _remember(self, name: str, value: str, line: int) -> None:
        self.names[name] = value
        if name.isupper() and "_" in name:
            self.exported.append(Setting(name, value, line))

    def _prefix(self, tokens: list[Token]) -> tuple[list[Setting], list[Token]]:
        """Variables in front of the program."""
        out: list[Setting] = []
        at = 0
        if tokens[0].text == "env":
            at = 1
        while at < len(tokens):
            pair = assignment(tokens[at])
            if pair is None:
                break
            out.append(Setting(pair[0], pair[1], tokens[at].line))
            at += 1
        return out, tokens[at:]

    def _shell_string(self, tokens: list[Token], prefix: list[Setting], depth: int) -> bool:
        """``bash -c '…'``: the text is read as commands of its own."""
        for index, token in enumerate(tokens[:-2] if len(tokens) > 2 else []):
            if token.text.rsplit("/", 1)[-1] in _SHELLS and re.fullmatch(r"-[a-z]*c", tokens[index + 1].text):
                if depth >= 3:
                    return True
                self.exported += prefix
                self.arguments = tokens[index + 4 :] or self.arguments
                body = tokens[index + 2]
                docker = read_docker(tokens)
                before = len(self.launches)
                self.text(body.text, body.line, depth + 1)
                if docker is not None:
                    for launch in self.launches[before:]:
                        self.inside(launch, docker)
                return True
        return False

    def _pip(self, words: list[str]) -> None:
        if "install" in words:
            for word in words:
                found = _PIP.match(word)
                if found:
                    self.versions[found[1]] = found[2]

    def inside(self, launch: Launch, docker: DockerRun) -> None:
        """Give a launch found in a script the image, variables and limits of its container."""
        launch.env = docker.env + launch.env
        launch.limits = {**docker.limits, **launch.limits}
        self._image(launch, docker.image)
        launch.device = docker.device or launch.device

    def _image(self, launch: Launch, image: str) -> None:
        launch.image = image
        version = version_of_image(image)
        if version and engine_of_image(image) == launch.engine:
            launch.version, launch.version_how = version, f"image tag {image}"
        if re.search(r"rocm|/amd", image):
            launch.device = launch.device or "rocm"
        elif re.search(r"[-_:]cpu\b|vllm-cpu", image):
            launch.device = launch.device or "cpu"

    def container(self, command: Command, docker: DockerRun, prefix: list[Setting]) -> None:
        """A program inside an image, or the image's own entrypoint when only flags are given."""
        words = [token.text for token in docker.rest]
        inner = find_anchor(words) if words else None
        engine = engine_of_image(docker.image)
        if inner is None and engine:
            context = "api_server" if engine in ("vllm", "sglang") else ""
            inner = Anchor(0, engine, "router" if engine == "router" else "server", context)
        if inner is None:
            return
        self.inside(self.engine(command, docker.rest, inner, prefix), docker)

    def engine(self, command: Command, tokens: list[Token], anchor: Anchor, prefix: list[Setting]) -> Launch:
        data = engine_data(anchor.engine)
        given, loose, elided = read_flags(data, tokens[anchor.at :])
        launch = Launch(
            engine=anchor.engine,
            role=anchor.role,
            context=anchor.context,
            label=command.label,
            line=command.line,
            span=" ".join(token.text for token in command.tokens)[:200],
            elided=elided,
            given=given,
            env=[*self.exported, *prefix],
            notes=list(command.notes),
            strict=not anchor.bench and anchor.role == "server" and "dynamo" not in command.tokens[0].text,
        )
        if any(token.text.startswith("dynamo.") for token in tokens[: anchor.at]):
            launch.strict = False
        _positional(launch, loose)
        _wrappers(launch, tokens[: max(anchor.at - 1, 0)])
        if anchor.engine in self.versions:
            launch.version, launch.version_how = self.versions[anchor.engine], "pip install line"
        self._keep(launch)
        return launch

    def _keep(self, launch: Launch) -> None:
        """A script with dozens of launches is a sweep; the first ones tell what it does."""
        if len(self.launches) < MAX_LAUNCHES:
            self.launches.append(launch)
        else:
            self.left_out += 1

    def _fragment(self, command: Command, tokens: list[Token], prefix: list[Setting]) -> None:
        names = [token.text.split("=")[0] for token in tokens if is_flag(undash(token.text)) and not token.quoted]
        engine = guess_engine(names) or self.fragment_engine
        data = engine_data(engine)
        given, _, _ = read_flags(data, tokens)
        if not any(item.name in data.flags or item.name in data.history for item in given):
            return
        self._keep(
            Launch(
                engine=engine,
                form="fragment",
                context="",
                label=command.label,
                line=command.line,
                span=" ".join(token.text for token in command.tokens)[:200],
                elided=True,
                given=given,
                env=[*self.exported, *prefix],
                notes=list(command.notes),
                strict=bool(engine),
            )
        )


def _joined(commands: list[Command]) -> list[Command]:
    """Lines of flags without a continuing backslash belong to the command above them."""
    out: list[Command] = []
    for command in commands:
        first = undash(command.tokens[0].text)
        if out and is_flag(first) and not command.gap and _takes_flags(out[-1]):
            if find_anchor([token.text for token in out[-1].tokens]):
                out[-1].notes.append(
                    f"line {command.line}: flags on a new line without a continuing backslash; read as part of the command"
                )
            out[-1].tokens.extend(command.tokens)
            out[-1].notes.extend(command.notes)
            continue
        out.append(command)
    return out


def _takes_flags(command: Command) -> bool:
    words = [token.text for token in command.tokens]
    return is_flag(undash(words[0])) or find_anchor(words) is not None or "run" in words[:3]


def _positional(launch: Launch, loose: list[Token]) -> None:
    """``vllm serve MODEL``: the model as first word."""
    if launch.engine not in ("vllm", "tensorrt_llm") or not loose or launch.first("model"):
        return
    word = loose[0]
    if launch.role in ("server", "offline") and re.match(r"^[\w./~$<{-]", word.text):
        launch.given.insert(0, Given("model", word.text, "model", word.line, False, unknown_value(word.text)))


def _wrappers(launch: Launch, tokens: list[Token]) -> None:
    """``numactl``, ``taskset`` and profilers in front of the program."""
    words = [token.text for token in tokens]
    for index, word in enumerate(words):
        base = word.rsplit("/", 1)[-1]
        line = tokens[index].line
        after = words[index + 1 : index + 4]
        if base == "taskset":
            for item in after:
                count = cpu_list(item)
                if count and not item.startswith("-"):
                    launch.limits["cpuset"] = Setting("cpuset", count, line)
                    break
        elif base == "numactl":
            launch.limits["numactl"] = Setting("numactl", " ".join(w for w in after if w.startswith("-")), line)
        elif base in ("nsys", "ncu", "py-spy", "rocprof", "rocprofv3", "perf", "strace"):
            launch.limits["profiler"] = Setting("profiler", base, line)
        elif base in ("srun", "mpirun", "torchrun"):
            launch.notes.append(f"line {line}: started through {base}")


def read_shell(text: str, line: int = 1, fragment_engine: str = "") -> Reader:
    """Commands of a launch file or script."""
    reader = Reader(fragment_engine=fragment_engine)
    reader.text(text, line)
    if not any(launch.role in ("server", "offline") for launch in reader.launches):
        _commented(reader)
    return reader


def _commented(reader: Reader) -> None:
    """A launch that stands only in a comment is better than none; it says so."""
    for comment in list(reader.comments):
        commands, _ = split(comment.text, comment.line)
        for command in commands:
            words = [token.text for token in command.tokens]
            anchor = find_anchor(words)
            if anchor and anchor.role == "server" and any(is_flag(undash(word)) for word in words[anchor.at :]):
                launch = reader.engine(command, command.tokens, anchor, [])
                launch.elided = True
                launch.label = "comment"
                launch.notes.append(f"line {comment.line}: the command stands in a comment")

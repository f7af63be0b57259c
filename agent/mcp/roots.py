"""Path confinement: only files below the allowed roots, after every symbolic link has been followed."""

from __future__ import annotations

from pathlib import Path

from agent.mcp.trouble import Trouble
from tools.part import Part

MAX_FILES = 400
MAX_TEXT = 512
_SKIP = {".git", "__pycache__", "node_modules", ".DS_Store"}


class Roots:
    """The allowed folders, resolved once at the start. With none, every path is refused."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders: list[Path] = []
        for folder in folders:
            whole = folder.expanduser().resolve()
            if not whole.is_dir():
                raise ValueError(f"{folder}: no such folder to allow")
            if whole == Path(whole.anchor):
                raise ValueError(
                    f"{folder}: the whole file system is not allowed as a root; name the folders with evidence"
                )
            if whole not in self.folders:
                self.folders.append(whole)

    def allows(self, path: Path) -> bool:
        """Whether a resolved path lies in one of the roots."""
        return any(path == root or root in path.parents for root in self.folders)

    def resolve(self, text: str) -> Path:
        """The real path of an argument. Relative paths are tried below each root. Raises :class:`Trouble`.

        A path outside is refused in the same words whether or not it exists, so that nothing can be probed.
        """
        if not text or "\x00" in text or len(text) > 4096:
            raise Trouble("bad_path", "empty or unusable path", "give a path below an allowed root (health lists them)")
        given, inside = Path(text), False
        for candidate in [given] if given.is_absolute() else [root / given for root in self.folders]:
            try:
                whole = candidate.resolve(strict=False)
            except (OSError, RuntimeError):
                continue
            if self.allows(whole):
                inside = True
                if whole.exists():
                    return whole
        shown = text[:MAX_TEXT]
        if inside:
            raise Trouble("no_such_file", f"{shown}: no such file", "check the path; health lists the roots")
        raise Trouble(
            "path_refused",
            f"{shown}: outside the allowed roots",
            "use a path below a root that health lists, paste the text instead, or start the server with --allow-root",
        )

    def parts(self, texts: list[str]) -> list[Part]:
        """Files of the given files and folders as parts. Links that lead out of the roots are left out.

        Raises :class:`Trouble` for a path that is refused or is neither file nor folder.
        """
        out: list[Part] = []
        names: dict[str, int] = {}
        for text in texts:
            path = self.resolve(text)
            if path.is_file():
                found = [(path.name, path)]
            elif path.is_dir():
                found = self._below(path)
            else:
                raise Trouble("bad_path", f"{text[:MAX_TEXT]}: not a regular file", "give a file or a folder")
            for name, real in found[:MAX_FILES]:
                count = names[name] = names.get(name, 0) + 1
                out.append(Part(name=name if count == 1 else f"{name}#{count}", path=real))
        return out

    def file(self, text: str) -> Part:
        """One regular file. Raises :class:`Trouble`."""
        path = self.resolve(text)
        if not path.is_file():
            raise Trouble("bad_path", f"{text[:MAX_TEXT]}: not a regular file", "give one file")
        return Part(name=path.name, path=path)

    def _below(self, folder: Path) -> list[tuple[str, Path]]:
        out: list[tuple[str, Path]] = []
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            if _SKIP & set(inner.parts):
                continue
            try:
                real = path.resolve(strict=True)
            except (OSError, RuntimeError):
                continue
            # The resolved path is what gets opened: a link swapped afterwards changes nothing.
            if real.is_file() and self.allows(real):
                out.append((inner.as_posix(), real))
                if len(out) >= MAX_FILES:
                    break
        return out

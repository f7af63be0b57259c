"""How a call fails: as a result that says what was wrong and what to try."""

from __future__ import annotations


class Trouble(Exception):
    """``code`` for programs, ``what`` was wrong, ``do`` to try instead. Never holds file content."""

    def __init__(self, code: str, what: str, do: str) -> None:
        super().__init__(f"{code}: {what}")
        self.code, self.what, self.do = code, what, do

    def data(self) -> dict[str, dict[str, str]]:
        """As the caller sees it."""
        return {"error": {"code": self.code, "what": self.what, "try": self.do}}

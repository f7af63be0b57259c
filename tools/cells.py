"""One CSV line to cells; a line that is none gives no cells instead of an error."""

from __future__ import annotations

import csv


def cells(line: str, delimiter: str = ",", skip_space: bool = False) -> list[str]:
    """Cells of one line, untrimmed. Stray carriage returns and fields beyond the module's limit make it no row."""
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=skip_space), [])
    except csv.Error:
        return []

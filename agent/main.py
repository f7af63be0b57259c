"""Entry point: refuses to run when another installed package shadows one of ours, then hands over to the CLI."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_OURS = ("agent", "tools", "knowledge", "evals")


def shadowed() -> str:
    """One line naming a package of ours that another installation or folder shadows; empty when all is well."""
    home = Path(__file__).resolve().parent.parent
    for name in _OURS:
        spec = importlib.util.find_spec(name)
        places = list(spec.submodule_search_locations or []) if spec else []
        if not places or Path(places[0]).resolve().parent != home:
            where = places[0] if places else "nowhere"
            return (
                f"inferdx: package '{name}' is found in {where}, not beside this program; "
                "install inferdx in its own environment (uv tool install inferdx, or pipx install inferdx)"
            )
    return ""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; the exit status is documented in ``inferdx --help``."""
    problem = shadowed()
    if problem:
        print(problem, file=sys.stderr)
        return 3
    from agent.cli import run

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())

"""Run by the interpreter of a real vLLM: prints its metric names, flags and defaults as JSON. Imports nothing of ours."""

import importlib
import json
import re
from pathlib import Path


def parser():
    """The server's argument parser; its module moved over the releases."""
    for name in ("vllm.utils.argparse_utils", "vllm.utils"):
        try:
            flexible = importlib.import_module(name).FlexibleArgumentParser
            break
        except (ImportError, AttributeError):
            continue
    for name in ("vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args"):
        try:
            return importlib.import_module(name).make_arg_parser(flexible())
        except ImportError:
            continue
    raise SystemExit("no argument parser found in this vLLM")


def main():
    """Print the facts of the installed package."""
    import vllm

    names = set()
    for path in Path(vllm.__file__).parent.rglob("*.py"):
        names.update(re.findall(r"""["'](vllm:[a-z][a-z0-9_]+)["']""", path.read_text(errors="replace")))
    flags = {}
    for action in parser()._actions:
        value = action.default
        for option in action.option_strings:
            if option.startswith("--"):
                flags[option[2:].replace("_", "-")] = value if isinstance(value, (int, float, str, bool)) else None
    print(json.dumps({"version": vllm.__version__, "metrics": sorted(names), "flags": flags}))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""inferdx roofline, or with --set KEY=VALUE inferdx whatif, as JSON.

usage: roofline.py --model NAME | --config config.json --gpu "8x H100" [--tp N] [--batch N] [--isl N] [--osl N]
                   [--kv fp8] [--weights fp8] [--measured-tpot-ms MS] [--measured-ttft-ms MS] [--set KEY=VALUE]
exit status: 0 computed, otherwise the input cannot be used (one line on standard error)
"""

import sys

from _cli import run


def main(arguments):
    if "-h" in arguments or "--help" in arguments or not arguments:
        print(__doc__.strip())
        return 0 if arguments else 3
    name = "whatif" if any(a == "--set" or a.startswith("--set=") for a in arguments) else "roofline"
    return run(name, [*arguments, "--json"])[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

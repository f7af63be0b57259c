#!/usr/bin/env python3
"""inferdx explain as JSON.

usage: explain.py [KIND] NAME | --search WORDS [--engine-version V] [--lang zh]
kinds: cause rule fact page metric flag signature tradeoffs
exit status: 0 found, 3 nothing has that name
"""

import sys

from _cli import run


def main(arguments):
    if "-h" in arguments or "--help" in arguments or not arguments:
        print(__doc__.strip())
        return 0 if arguments else 3
    return run("explain", [*arguments, "--json"])[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

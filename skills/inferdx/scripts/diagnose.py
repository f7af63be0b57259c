#!/usr/bin/env python3
"""inferdx diagnose as JSON, cut to what an answer needs; --full gives all evidence and rules.

usage: diagnose.py FILE|FOLDER|URL|- ... [--for 30s] [--baseline FOLDER] [--slo ttft_p99=2s] [--lang zh] [--full]
exit status: 0 healthy or at a limit, 1 incident, 2 undecidable, 3 nothing could be read
"""

import json
import sys

from _cli import run


def cut(data):
    """Cited evidence only; rules as counts; the first four actions and three probes."""
    cited = {i for cause in data["causes"] for i in cause["evidence"]}
    cited |= {i for link in data["chain"] for i in link.get("evidence", [])}
    states = {}
    for rule in data["rules"]:
        states[rule["state"]] = states.get(rule["state"], 0) + 1
    data["evidence_total"] = len(data["evidence"])
    data["evidence"] = [item for item in data["evidence"] if item["id"] in cited]
    data["rules"] = states
    data["actions"], data["probes"] = data["actions"][:4], data["probes"][:3]
    return data


def main(arguments):
    if "-h" in arguments or "--help" in arguments or not arguments:
        print(__doc__.strip())
        return 0 if arguments else 3
    full = "--full" in arguments
    status, out = run("diagnose", [a for a in arguments if a != "--full"] + ["--json"], capture=True)
    try:
        data = json.loads(out)
    except ValueError:
        sys.stdout.buffer.write(out)
        return status
    print(json.dumps(data if full else cut(data), ensure_ascii=False, indent=1))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

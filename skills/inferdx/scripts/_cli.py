"""Finds the inferdx command and runs it without a shell. Exit status 3 when it is not installed."""

import shutil
import subprocess
import sys


def command():
    """The console command, else the package of this interpreter."""
    found = shutil.which("inferdx")
    if found:
        return [found]
    probe = [sys.executable, "-c", "import agent.main"]
    if subprocess.run(probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0:
        return [sys.executable, "-m", "agent.main"]
    print("inferdx is not installed: pip install inferdx", file=sys.stderr)
    raise SystemExit(3)


def run(name, arguments, *, capture=False):
    """``(exit status, standard output or None)`` of ``inferdx NAME ARGUMENTS``."""
    done = subprocess.run([*command(), name, *arguments], stdout=subprocess.PIPE if capture else None, check=False)
    return done.returncode, done.stdout

"""What is known about LLM serving: facts vocabulary, rules, signatures, families, configuration, hardware.

Data in YAML beside this package, read by :func:`knowledge.loader.load`. Imports nothing of ours.
"""

from knowledge.loader import load
from knowledge.schema import Knowledge

__all__ = ["Knowledge", "load"]

"""The site's inference servers, by name and by alert label. Only what stands in this file is ever fetched.

```yaml
targets:
  - name: chat-prod
    match: {model_name: llama-70b, namespace: serving-*}   # label → value, * matches anything
    metrics: [http://10.0.0.7:8000/metrics]
    prometheus: http://prometheus:9090
    prometheus_match: 'model_name="llama-70b"'
    range: 30m
    channel: C0123456789
```
"""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import msgspec
from msgspec import Struct, field


class TargetsError(ValueError):
    """The targets file cannot be used: which file, what, where."""


class Target(Struct, kw_only=True, forbid_unknown_fields=True):
    """One server or group. ``channel``: Slack channel id for its alerts; ``files``: logs on this host to read."""

    name: str
    match: dict[str, str] = {}
    metrics: list[str] = []
    prometheus: str = ""
    prometheus_match: str = ""
    range: str = "30m"
    channel: str = ""
    files: list[str] = []


class Targets(Struct, kw_only=True, forbid_unknown_fields=True):
    """All targets; the first that matches wins. ``channel``: where alerts without a target of their own go."""

    targets: list[Target] = field(default_factory=list)
    channel: str = ""
    team: str = ""

    def of(self, labels: dict[str, str]) -> Target | None:
        """The target of an alert: every ``match`` label must be there and fit. A target without ``match`` fits none."""
        for target in self.targets:
            if target.match and all(
                name in labels and fnmatch.fnmatchcase(labels[name], want) for name, want in target.match.items()
            ):
                return target
        return None

    def named(self, text: str) -> Target | None:
        """The target whose name stands in a message as a word of its own."""
        for target in sorted(self.targets, key=lambda t: -len(t.name)):
            if re.search(rf"(?<![\w-]){re.escape(target.name)}(?![\w-])", text):
                return target
        return None


def load(path: Path | None) -> Targets:
    """Read the file; no path gives no targets. Raises :class:`TargetsError`."""
    if path is None:
        return Targets()
    import yaml

    from agent.sources import seconds

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        targets = msgspec.convert(data or {}, Targets)
        for target in targets.targets:
            seconds(target.range)
            for url in [*target.metrics, *([target.prometheus] if target.prometheus else [])]:
                if not re.match(r"https?://[^/\s]+", url):
                    raise TargetsError(f"{path}: target {target.name}: {url!r} is not an http address")
        return targets
    except OSError as error:
        raise TargetsError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise TargetsError(f"{path}: not YAML" + (f" (line {mark.line + 1})" if mark else "")) from None
    except (msgspec.ValidationError, TargetsError) as error:
        text = str(error)
        raise TargetsError(text if text.startswith(str(path)) else f"{path}: {text}") from None
    except ValueError as error:
        raise TargetsError(f"{path}: {error}") from None

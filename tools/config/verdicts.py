"""Verdicts on single flags for the version at hand: removed, unknown, too new, renamed, ignored, forcing V0, failing."""

from __future__ import annotations

from tools.config.data import Flag, Ignored, is_newer
from tools.config.flags import exists_in, mask_of, spans_text
from tools.config.resolve import Resolver, holds


def verdicts(r: Resolver) -> None:
    """Removed, unknown, too new, renamed, ignored, forcing V0, failing."""
    for name in r.given:
        if name == "role":
            continue
        flag = r.engine.flags.get(name)
        if r.launch.strict and r.engine.history:
            _existence(r, name, flag)
        if flag is not None:
            _effects(r, name, flag)


def _existence(r: Resolver, name: str, flag: Flag | None) -> None:
    out, version = r.out, r.out.version
    mask = mask_of(r.engine, name)
    if name in ("help", "version", "role"):
        return
    if not mask:
        out.unknown.append(name)
        hint = f"; {flag.instead}" if flag and flag.instead else ""
        out.details[name] = f"no compared release of {r.engine.name} has this flag{hint}"
        return
    if not version or is_newer(r.engine, version):
        return
    exists = exists_in(r.engine, name, version, mask)
    spans = spans_text(r.engine, mask)
    if exists is None:
        out.undetermined.append(f"whether {version} knows --{name} (seen in {spans})")
    elif exists is False:
        first = (mask & -mask).bit_length() - 1
        early = holds(f"<{flag.since if flag and flag.since else r.engine.releases[first]}", version)
        (out.too_new if early else out.removed).append(name)
        gone = f"; gone since {flag.gone}" if flag and flag.gone and not early else ""
        out.details[name] = f"seen in {spans}{gone}; {version} refuses it at start (unrecognized arguments)"
        if flag and (flag.instead or flag.successor):
            out.details[name] += f"; instead: {flag.instead or flag.successor}"
    if flag and flag.successor and exists is False:
        out.renamed.append(name)


def _effects(r: Resolver, name: str, flag: Flag) -> None:
    item = r.last(name)
    if item is None:
        return
    out = r.out
    for ignored in flag.ignored:
        state = _ignored(r, ignored)
        if state:
            out.ignored.append(name)
            out.details[name] = ignored.why
        elif state is None:
            out.undetermined.append(f"whether --{name} is ignored: {ignored.why} ({ignored.versions})")
    for outcome in flag.forces_v0:
        if r.differs(item, outcome):
            state = r.over(outcome.versions)
            if state:
                out.forcing_v0.append(name)
                out.details[name] = f"not supported by V1 in {outcome.versions}; the engine falls back to V0"
            elif state is None:
                out.undetermined.append(f"whether --{name} makes the V0 engine run ({outcome.versions})")
    for outcome in flag.errors:
        if r.differs(item, outcome):
            state = r.over(outcome.versions)
            if state:
                out.failing.append(name)
                out.details[name] = outcome.why
            elif state is None:
                out.undetermined.append(f"whether --{name} stops the start: {outcome.why} ({outcome.versions})")
    if flag.successor and r.out.version and name not in out.removed and name not in out.renamed:
        newer = exists_in(r.engine, flag.successor, r.out.version)
        if newer:
            out.renamed.append(name)
            out.details.setdefault(name, f"newer name: --{flag.successor}")


def _ignored(r: Resolver, item: Ignored) -> bool | None:
    if item.when_given:
        other = r.last(item.when_given)
        return other is not None and other.value is not None
    state = r.over(item.versions)
    if state and item.generation:
        if not r.out.generation:
            return None
        return r.out.generation == item.generation
    return state

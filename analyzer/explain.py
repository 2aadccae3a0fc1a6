"""`tlint rules` and `tlint explain`: what the rules' docstrings, the facts and Dynamo's registry of graph breaks say,
offline."""

from __future__ import annotations

import difflib
import functools
import inspect
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console

from tlint import rules
from tlint.analyzer import facts
from tlint.analyzer.model import TlintError
from tlint.rules.base import Rule

Entry = Mapping[str, Any]  # of a registry, or a row of the facts

LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
RUNNING = "## What running tells"
MOST = 8  # names that are given as examples

# What `only` in the facts says of the calls that break (`compiler/versions/generate.py`).
ONLY = {
    "one-argument": " when called with one argument",
    "tensor-argument": " where an argument is a tensor, or holds one",
    "storage-argument": " where an argument is a tensor's storage",
    "closure": " where a function given closes over local values",
    "compiled-argument": " where a function given is itself compiled",
    "backward-hook": " on a module that has such a hook",
    "input": " on a tensor that comes from outside the compiled function",
    "arguments": " for some arguments (which, only running tells)",
    "without": " without `{}`",
    "keyword": " with `{}`",
}


def list_rules() -> None:
    """One line a rule: code, name, severity, status, summary."""
    console = Console(highlight=False)
    known = rules.load().values()
    width = max(len(rule.name) for rule in known)
    for rule in known:
        line = f"{rule.code}  {rule.name:{width}}  {rule.severity.name:7}  {rule.status:7}  {summary(rule)}"
        console.print(line, markup=False, emoji=False, soft_wrap=True)


def explain(subject: str) -> None:
    """Show what a rule (by code or name), a graph break (by Dynamo's id or type) or a callee (by its name) is."""
    known = rules.load()
    names = {**rules.aliases, **{rule.name: code for code, rule in known.items()}}
    code = names.get(subject, subject.upper())
    breaks = _graph_breaks()
    types = {entry["gb_type"]: gb_id for gb_id, entries in breaks.items() for entry in entries.values()}
    gb_id = {gb_type.lower(): gb_id for gb_type, gb_id in types.items()}.get(subject.lower(), code)
    if code in known:
        _show(_rule(known[code]))
    elif gb_id in breaks:
        _show(_graph_break(gb_id, breaks[gb_id], known.values()))
    elif len(callees := _callees(subject)) == 1:
        _show(_callee(callees[0], known.values()))
    elif re.fullmatch(r"GB\d+", code):
        raise TlintError(f"{code}: no graph break has this id in torch {', '.join(facts.versions())}")
    else:
        near = callees[:MOST] or difflib.get_close_matches(subject, [*names, *known, *types], 1)
        hint = "`tlint rules` lists the rules; graph breaks are written GB0124, callees torch.Tensor.item"
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else hint
        raise TlintError(f"no rule, graph break or callee is called {subject!r}: {hint}")


def summary(rule: Rule) -> str:
    """The first line of its documentation."""
    return (inspect.getdoc(rule) or "").partition("\n")[0]


# Rules ----------------------------------------------------------------------------------------------------------------


def _rule(rule: Rule) -> str:
    """Its documentation, which may end with what only running tells, and how the compiler judges its findings."""
    documentation = inspect.getdoc(rule) or ""
    parts = [f"# {rule.code} {rule.name}", documentation]
    if rule.gb_types:
        mode = " in default mode (`fullgraph=True` captures it)" if rule.when == "default" else ""
        parts += [
            *([] if RUNNING in documentation else [RUNNING]),
            f"`tlint verify` confirms a finding where Dynamo breaks at this very expression{mode}, mostly with one of "
            "these types. Where the expression was executed and Dynamo did not break, the finding is refuted.",
            "\n".join(f"- {gb_type}" for gb_type in rule.gb_types),
        ]
    return "\n\n".join(parts)


def _predicted(by: Iterable[Rule]) -> str:
    """The rules that predict a break, each with what to do."""
    lines = [
        f"- {rule.code} {rule.name}: {summary(rule)} What to do: {rule.remedy}. `tlint explain {rule.code}`"
        for rule in by
    ]
    if not lines:
        return "No rule predicts it: `tlint verify` finds it by running the compiler (TL199)."
    return "Predicted by:\n\n" + "\n".join(lines)


# Graph breaks ---------------------------------------------------------------------------------------------------------


@functools.cache
def _graph_breaks() -> dict[str, dict[str, Entry]]:
    """What each version's registry says of a break: id → version → entry."""
    found: dict[str, dict[str, Entry]] = {}
    for version in facts.versions():
        for gb_id, entry in facts.load(version).registry.items():
            found.setdefault(gb_id, {})[version] = entry
    return found


def _graph_break(gb_id: str, entries: Mapping[str, Entry], known: Iterable[Rule]) -> str:
    newest, entry = list(entries.items())[-1]
    breaking = [name for name, row in facts.load(newest).callables.items() if row.get("gb_id") == gb_id]
    examples = ", ".join(f"`{name}`" for name in breaking[:MOST])
    more = f" and {len(breaking) - MOST} more" if len(breaking) > MOST else ""
    former = dict.fromkeys(e["gb_type"] for e in entries.values() if e["gb_type"] != entry["gb_type"])
    parts = [
        f"# {gb_id} {entry['gb_type']}",
        _predicted(rule for rule in known if entry["gb_type"] in rule.gb_types),
        f"Dynamo says: {explanation}" if (explanation := _plain(entry["explanation"])) else "",
        " ".join(map(_plain, entry["hints"])),
        f"Context: `{context}`" if (context := _plain(entry["context"])) else "",
        f"Seen with {examples}{more}." if breaking else "",
        f"Formerly: {'; '.join(former)}." if former else "",
        f"In torch {_range(entries)}.",
    ]
    return "\n\n".join(part for part in parts if part)


def _range(some: Iterable[str]) -> str:
    """ "2.8 to 2.13, 2.15", of the versions that have facts."""
    chosen, known = set(some), facts.versions()
    runs = [list(run) for taken, run in itertools.groupby(known, chosen.__contains__) if taken]
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


def _plain(text: str) -> str:
    """In one line. Where the registry holds torch's source, what is said in its strings; nothing for a variable."""
    if text.isidentifier():
        return ""
    literals = LITERAL.findall(text) if text.startswith('"') else ()
    return " ".join(("".join(literals) or text).split())


# Callees --------------------------------------------------------------------------------------------------------------


def _callees(subject: str) -> list[str]:
    """The function of the facts that has this name; else those whose name ends so."""
    tables = [facts.load(version) for version in facts.versions()]
    for name, table in itertools.product((subject, f"builtins.{subject}"), reversed(tables)):
        if table.canonical(name) in table.callables:
            return [table.canonical(name)]
    return sorted({name for table in tables for name in table.callables if name.endswith(f".{subject}")})


def _callee(name: str, known: Iterable[Rule]) -> str:
    rows = {version: facts.load(version).callables.get(name, {}) for version in facts.versions()}
    said: dict[str, list[str]] = {}
    for version, row in rows.items():
        said.setdefault(_behaviour(row), []).append(version)
    newest = next(row for row in reversed(rows.values()) if row)
    kinds = {row.get("kind") for row in rows.values() if "gb_type" in row}
    parts = [
        f"# {name}",
        "\n".join(f"- torch {_range(versions)}: {text}" for text, versions in said.items()),
        f"It returns `{newest['returns']}`." if newest.get("returns") else "",
        _predicted(rule for rule in known if rule.kind in kinds) if kinds else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _behaviour(row: Entry) -> str:
    """What a row of the facts says of breaking."""
    if gb_type := row.get("gb_type"):
        kind, _, name = row.get("only", "").partition(":")
        where = ONLY[kind].format(name) if kind else ""
        number = f" ({row['gb_id']})" if row["gb_id"] else ""
        mode = {"default": "; `fullgraph=True` captures it", "fullgraph": "; under `fullgraph=True` only"}
        return f"breaks{where}: {gb_type}{number}{mode.get(row['when'], '')}"
    if error := row.get("error"):
        return f"cannot be compiled ({error})"
    return "does not break" if row.get("tried") else "not tried" if row else "not known"


def _show(text: str) -> None:
    """Rendered on a terminal; the source of the Markdown, which reads well too, elsewhere."""
    console = Console(highlight=False)
    if console.is_terminal:
        from rich.markdown import Markdown  # with a parser of its own: on a terminal only

        console.print(Markdown(text))
    else:
        console.print(text, markup=False, emoji=False, soft_wrap=True)

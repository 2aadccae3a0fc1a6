"""`tlint rules` and `tlint explain`: what the rules' docstrings and Dynamo's registry of graph breaks say, offline."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping

from rich.console import Console

from tlint import rules
from tlint.analyzer import facts
from tlint.analyzer.model import TlintError
from tlint.rules.base import Rule

LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def list_rules() -> None:
    """One line a rule: code, name, severity, status, summary."""
    console = Console(highlight=False)
    known = rules.load().values()
    width = max(len(rule.name) for rule in known)
    for rule in known:
        line = f"{rule.code}  {rule.name:{width}}  {rule.severity.name:7}  {rule.status:7}  {summary(rule)}"
        console.print(line, markup=False, emoji=False, soft_wrap=True)


def explain(subject: str) -> None:
    """What a rule (by code or name) or a graph break (by Dynamo's id, like GB0124) is about."""
    known = rules.load()
    names = {**rules.aliases, **{rule.name: code for code, rule in known.items()}}
    code = names.get(subject, subject.upper())
    if code in known:
        _show(f"# {code} {known[code].name}\n\n{inspect.getdoc(known[code])}")
    elif re.fullmatch(r"GB\d+", code):
        _show(_graph_break(code, known))
    else:
        near = difflib.get_close_matches(subject, [*names, *known], 1)
        hint = f"did you mean {near[0]!r}?" if near else "`tlint rules` lists them; graph breaks are written GB0124"
        raise TlintError(f"no rule is called {subject!r}: {hint}")


def summary(rule: Rule) -> str:
    """The first line of its documentation."""
    return (inspect.getdoc(rule) or "").partition("\n")[0]


def _graph_break(gb_id: str, known: Mapping[str, Rule]) -> str:
    for version in reversed(facts.versions()):
        entry = facts.load(version).registry.get(gb_id)
        if entry:
            break
    else:
        raise TlintError(f"{gb_id}: no graph break has this id in torch {', '.join(facts.versions())}")
    claiming = [rule for rule in known.values() if entry["gb_type"] in rule.gb_types]
    found = [f"- {rule.code} {rule.name}: {summary(rule)} `tlint explain {rule.code}`" for rule in claiming]
    parts = [
        f"# {gb_id} {entry['gb_type']}",
        _plain(entry.get("explanation", "")),
        " ".join(map(_plain, entry.get("hints", ()))),
        f"Context: `{context}`" if (context := _plain(entry.get("context", ""))) else "",
        "Predicted by:\n\n" + "\n".join(found)
        if found
        else "No rule predicts it: `tlint verify` finds it by running the compiler (TL199).",
        f"As of torch {version}.",
    ]
    return "\n\n".join(part for part in parts if part)


def _plain(text: str) -> str:
    """In one line. Where the registry holds torch's source, what is said in its strings; nothing for a variable."""
    if text.isidentifier():
        return ""
    literals = LITERAL.findall(text) if text.startswith('"') else ()
    return " ".join(("".join(literals) or text).split())


def _show(text: str) -> None:
    """Rendered on a terminal; the source of the Markdown, which reads well too, elsewhere."""
    console = Console(highlight=False)
    if console.is_terminal:
        from rich.markdown import Markdown  # with a parser of its own: on a terminal only

        console.print(Markdown(text))
    else:
        console.print(text, markup=False, emoji=False, soft_wrap=True)

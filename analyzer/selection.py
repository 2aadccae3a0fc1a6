"""Which rules are on: selectors are names, codes or prefixes of codes, and the longest one that fits a rule decides."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from tlint.analyzer.config import Settings
from tlint.analyzer.model import TlintError
from tlint.rules.base import Rule

# What says that something could not be looked at is on unless it is ignored by code or name.
ALWAYS = ("TL902", "TL903")


def choose(rules: Mapping[str, Rule], aliases: Mapping[str, str], settings: Settings) -> frozenset[str]:
    """The codes of the rules that are on. Rules in preview are off unless the settings turn all of them on."""
    names = {**aliases, **{rule.name: code for code, rule in rules.items()}}
    offered = available(rules, settings)

    def prefixes(selectors: Sequence[str]) -> list[str]:
        return [_prefix(selector, names, rules) for selector in selectors]

    chosen = [*prefixes(settings.select), *prefixes(settings.extend_select), *ALWAYS]
    ignored = prefixes(settings.ignore)
    if held_back := set(chosen) & (rules.keys() - offered):
        rule = rules[min(held_back)]
        raise TlintError(f"{rule.code} ({rule.name}) is in preview: it is on with --preview, or `preview = true`")
    return frozenset(code for code in offered if _longest(code, chosen) > _longest(code, ignored))


def available(rules: Mapping[str, Rule], settings: Settings) -> frozenset[str]:
    """The codes of the rules that can be on."""
    return frozenset(code for code, rule in rules.items() if settings.preview or rule.status == "stable")


def _prefix(selector: str, names: Mapping[str, str], rules: Mapping[str, Rule]) -> str:
    if selector.upper() == "ALL":
        return "TL"
    prefix = names.get(selector, selector.upper())
    if not prefix or not any(code.startswith(prefix) for code in rules):
        near = difflib.get_close_matches(selector, [*names, *rules], 1)
        hint = f"; did you mean {near[0]!r}?" if near else "; `tlint rules` lists them"
        raise TlintError(f"no rule is called {selector!r} or has a code that starts so{hint}")
    return prefix


def _longest(code: str, prefixes: Sequence[str]) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=0)

"""Comments and settings that silence findings, and what is wrong with those comments.

    loss = out.item()  # tlint: ignore[tensor-to-python] logged once an epoch
    # tlint: ignore[TL101, TL111] the same, alone above a statement
    # tlint: file-ignore[logging-call] anywhere in a file: for all of it
    # tlint: ignore

A comment speaks for the whole statement, or the whole header of a compound one (with its decorators), on any of whose
lines it stands. Without brackets it silences every rule there. What follows the brackets is the reason.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pathspec import GitIgnoreSpec

from tlint.analyzer.config import Settings
from tlint.analyzer.model import Confidence, Finding, Severity, Span

UNUSED = ("TL901", "unused-suppression")
UNKNOWN = ("TL905", "unknown-suppression")

KINDS = ("ignore", "file-ignore")

# "(#12)" belongs to a reason; " #" begins another comment.
DIRECTIVE = re.compile(
    r"#\s*tlint:\s*(?P<kind>[\w-]+)(?:\s*\[(?P<rules>[^\]#]*?(?=\s*(?:[\]#]|$)))(?P<closed>\s*\])?)?(?P<reason>.*?)(?=\s#\D|$)",
)


@dataclass(frozen=True, slots=True)
class Suppression:
    """One rule that a comment silences on `lines`. Rule None: every rule. Lines None: the whole file."""

    rule: str | None
    lines: range | None
    span: Span
    reason: str | None

    def covers(self, finding: Finding, rules_known: Mapping[str, str]) -> bool:
        """Whether the finding is silenced. The complaint that this comment is of no use never is."""
        here = self.lines is None or finding.span.line in self.lines
        meant = self.rule is None or rules_known.get(self.rule) == finding.code
        return here and meant and finding.span != self.span


@dataclass(frozen=True, slots=True)
class Mistake:
    """A comment that speaks to tlint and says nothing it knows."""

    span: Span
    text: str
    message: str


def apply(
    findings: Iterable[Finding],
    texts: Mapping[str, str],
    rules_known: Mapping[str, str],
    enabled: Callable[[str], bool],
    settings: Settings,
    *,
    root: Path,
    cwd: Path,
) -> tuple[Finding, ...]:
    """The findings, silenced ones with state "suppressed", and TL901 and TL905 for the comments themselves.

    `texts` holds the files that are reported on, by path as in `Finding.path`. `rules_known` maps each code, name and
    former name to its code. `enabled` says of a code whether its rule ran in full, for a torch that it holds for:
    only then can a comment be called unused. `settings.per_file_ignores` are relative to `root`, paths to `cwd`.
    """
    findings = tuple(findings)
    parsed = {path: parse(text) for path, text in texts.items() if "tlint:" in text}
    silencers = {path: suppressions for path, (suppressions, _) in parsed.items()}
    patterns = [
        (pattern, GitIgnoreSpec.from_lines([pattern]), tuple(selectors))
        for pattern, selectors in settings.per_file_ignores.items()
    ]

    def matching(finding: Finding) -> list[Suppression]:
        found = [s for s in silencers.get(finding.path, ()) if s.covers(finding, rules_known)]
        return sorted(found, key=lambda s: s.lines is None)

    def excused(finding: Finding) -> str | None:
        place = in_project(finding.path, root, cwd)
        for pattern, spec, selectors in patterns:
            if spec.match_file(place) and any(
                finding.code.startswith(s) or rules_known.get(s) == finding.code for s in selectors
            ):
                return pattern
        return None

    def settled(finding: Finding) -> Finding:
        if finding.state != "active":
            return finding
        if comments := matching(finding):
            return replace(finding, state="suppressed", reason=next((s.reason for s in comments if s.reason), None))
        if pattern := excused(finding):
            return replace(finding, state="suppressed", reason=f"per-file-ignores: {pattern}")
        return finding

    seen: Counter[tuple[str, str, str]] = Counter()

    def complaint(rule: tuple[str, str], path: str, span: Span, text: str, message: str) -> Finding:
        """`text` is what is at fault: it makes the id, with its number among those about the same."""
        (code, name), ordinal = rule, seen[rule[0], path, text]
        seen[code, path, text] += 1
        place = in_project(path, root, cwd)
        digest = hashlib.sha256("\0".join((name, place, "", text, str(ordinal))).encode(errors="surrogatepass"))
        return Finding(
            id=digest.hexdigest()[:16],
            code=code,
            name=name,
            message=message,
            path=path,
            span=span,
            severity=Severity.warning,
            confidence=Confidence.certain,
        )

    unknown = [
        complaint(UNKNOWN, path, *what)
        for path, (suppressions, mistakes) in parsed.items()
        if enabled(UNKNOWN[0])
        for what in unreadable(suppressions, mistakes, rules_known)
    ]
    used = {(finding.path, s) for finding in (*findings, *unknown) for s in matching(finding)}
    unused = [
        complaint(UNUSED, path, *what)
        for path, (suppressions, _) in parsed.items()
        if enabled(UNUSED[0])
        for what in useless([s for s in suppressions if (path, s) not in used], rules_known, enabled)
    ]
    return tuple(settled(finding) for finding in (*findings, *unknown, *unused))


def unreadable(
    suppressions: Iterable[Suppression], mistakes: Iterable[Mistake], rules_known: Mapping[str, str]
) -> Iterator[tuple[Span, str, str]]:
    """Comments of a file that say nothing: where, the text at fault, and a message."""
    for mistake in mistakes:
        yield mistake.span, mistake.text, mistake.message
    for s in suppressions:
        if s.rule is not None and s.rule not in rules_known:
            yield s.span, s.rule, f"no rule is called `{s.rule}`{suggestion(s.rule, rules_known)}"


def useless(
    unused: Iterable[Suppression], rules_known: Mapping[str, str], enabled: Callable[[str], bool]
) -> Iterator[tuple[Span, str, str]]:
    """Comments of a file that silence nothing, in the same way."""
    for s in unused:
        where = "in this file" if s.lines is None else "here"
        if s.rule is None:
            # Any rule that was off might have been the one.
            if all(enabled(code) for code in set(rules_known.values())):
                yield s.span, "", f"nothing to ignore {where}"
        elif (code := rules_known.get(s.rule)) and code != UNUSED[0] and enabled(code):
            yield s.span, s.rule, f"`{s.rule}` finds nothing to ignore {where}"


def suggestion(word: str, known: Collection[str]) -> str:
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lowered, n=1)
    return f"; did you mean `{lowered[close[0]]}`?" if close else ""


def in_project(path: str, root: Path, cwd: Path) -> str:
    absolute = cwd / path
    return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else absolute.as_posix()


# Reading the comments -------------------------------------------------------------------------------------------------


def parse(text: str) -> tuple[list[Suppression], list[Mistake]]:
    """The suppressions in a file's comments, one for each rule named, and the comments that were meant to be some."""
    suppressions: list[Suppression] = []
    mistakes: list[Mistake] = []
    for token, lines in comments(text):
        for found in DIRECTIVE.finditer(token.string):
            kind, names = found["kind"], found["rules"]
            written = token.string[found.start() : found.start("reason")]
            whole = within(token, found.start(), found.start("reason"))
            scope = None if kind == "file-ignore" else lines
            reason = found["reason"].strip(" \t:-") or None
            if kind not in KINDS:
                mistakes.append(
                    Mistake(whole, written, f"tlint knows no comment `{kind}`: it is `{'` or `'.join(KINDS)}`")
                )
            elif names is None:
                suppressions.append(Suppression(None, scope, whole, reason))
            elif not found["closed"]:
                mistakes.append(Mistake(whole, written, f"`{kind}[` is not closed: it ignores nothing"))
            elif not names.strip(" ,"):
                mistakes.append(Mistake(whole, written, f"`{kind}[]` names no rule: it ignores nothing"))
            else:
                for name in re.finditer(r"[^\s,]+", names):
                    at = found.start("rules")
                    span = within(token, at + name.start(), at + name.end())
                    suppressions.append(Suppression(name[0], scope, span, reason))
    return suppressions, mistakes


def within(token: tokenize.TokenInfo, start: int, end: int) -> Span:
    """The span of a part of a token, by its offsets."""
    line, column = token.start
    return Span(line, column + start + 1, line, column + end + 1)


def comments(text: str) -> Iterator[tuple[tokenize.TokenInfo, range]]:
    """Each comment with the lines it speaks for: those of the statement or header it stands in, or directly above."""
    for statement in statements(text):
        for comment in statement.comments:
            line = comment.start[0]
            first = statement.lines.start if statement.lines else line
            yield comment, range(min(line, first), max(line + 1, statement.lines.stop))


@dataclass(frozen=True, slots=True)
class Statement:
    """The lines of a statement, or of a compound one's header, with the comments in it and directly above.

    Comments above nothing have no lines. `ends` are (line, column) where a comment can be added: the ends of lines,
    without white space, that are not inside a string and that no backslash continues.
    """

    lines: range
    comments: tuple[tokenize.TokenInfo, ...]
    ends: tuple[tuple[int, int], ...]


def statements(text: str) -> Iterator[Statement]:
    text += "\n"  # without a last newline, the tokenizer does not end some statements
    lines = io.StringIO(text, newline=None).readlines()
    waiting: list[tokenize.TokenInfo] = []
    ends: list[tuple[int, int]] = []
    start = 0  # The first line of the open statement; 0 between statements.
    first = ""  # The first token of the open logical line.
    strings = 0  # How many f-strings are open, from Python 3.12 on.

    def flushed(own: range) -> Statement:
        statement = Statement(own, tuple(waiting), tuple(ends))
        waiting.clear()
        ends.clear()
        return statement

    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            kind = tokenize.tok_name[token.type]
            strings += kind.endswith("STRING_START") - kind.endswith("STRING_END")
            if kind in ("NL", "NEWLINE") and not strings:
                code = lines[token.start[0] - 1][: token.start[1]].rstrip()
                if code or (start and kind == "NEWLINE"):  # a statement can end on a blank line, after a backslash
                    ends.append((token.start[0], len(code) + 1))
            match token.type:
                case tokenize.COMMENT:
                    waiting.append(token)
                case tokenize.NEWLINE if first == "@":  # A decorator is part of the header below it.
                    first = ""
                case tokenize.NEWLINE:
                    yield flushed(range(start, token.start[0] + 1) if start else range(0))
                    start, first = 0, ""
                case tokenize.NL if (
                    not start and not token.line.strip()
                ):  # A blank line parts a comment from what follows.
                    yield flushed(range(0))
                case tokenize.NL | tokenize.INDENT | tokenize.DEDENT | tokenize.ENDMARKER:
                    pass
                case _:
                    start, first = start or token.start[0], first or token.string
    except (tokenize.TokenError, SyntaxError):
        pass  # The file does not parse (TL902). The comments up to there still count.
    yield flushed(range(start, start + 1) if start else range(0))

"""Writes the comments that `suppress` reads: `tlint check --add-ignores`.

One comment a statement, at the first line from the finding on whose end can hold one. A statement that has an
`# tlint: ignore[…]` gets the names into its brackets.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from tlint.analyzer import source
from tlint.analyzer.model import Edit, Finding, Span, TlintError
from tlint.analyzer.suppress import DIRECTIVE, Statement, parse, statements

Place = tuple[str, Span, str]


def write(findings: Iterable[Finding], cwd: Path, reason: str) -> tuple[set[Place], list[str]]:
    """Add comments for findings to their files: path, span and code of what they silence, and what went wrong."""
    files: dict[str, list[Finding]] = {}
    for finding in findings:
        files.setdefault(finding.path, []).append(finding)
    silenced: set[Place] = set()
    errors: list[str] = []
    for name, found in files.items():
        try:
            text = source.read(cwd / name).text
            edits = tuple(comments(name, text, found, reason))
            after = source.edited(text, edits)
            if code(after) != code(text):
                raise TlintError(f"{name}: nothing is written: a comment would change the program")
            source.edit(cwd / name, edits)
        except TlintError as error:
            errors.append(str(error))
        except (tokenize.TokenError, SyntaxError) as error:
            errors.append(f"{name}: nothing is written: it does not parse ({error})")
        else:
            codes = {finding.name: finding.code for finding in found}
            written, _ = parse(after)
            silenced |= {(f.path, f.span, f.code) for f in found if any(s.covers(f, codes) for s in written)}
    return silenced, errors


def comments(path: str, text: str, findings: Collection[Finding], reason: str) -> Iterator[Edit]:
    """The edits that silence findings of a file."""
    for statement in (part for whole in statements(text) for part in (whole, *above(whole))):
        here = [finding for finding in findings if finding.span.line in statement.lines]
        if here:
            here.sort(key=lambda finding: finding.span)
            names = list(dict.fromkeys(finding.name for finding in here))
            if edit := extended(path, statement, names) or added(path, statement, here[0].span.line, names, reason):
                yield edit


def above(statement: Statement) -> Iterator[Statement]:
    """The comments above a statement: what is said of one of them (TL901, TL905) is silenced on its line."""
    for comment in statement.comments:
        line, column = comment.start
        if line not in statement.lines:
            yield Statement(range(line, line + 1), (comment,), ((line, column + len(comment.string.rstrip()) + 1),))


def extended(path: str, statement: Statement, names: list[str]) -> Edit | None:
    """The names, in the brackets that the statement has."""
    for comment in statement.comments:
        for found in DIRECTIVE.finditer(comment.string):
            if found["kind"] == "ignore" and found["closed"] and (listed := found["rules"].rstrip(" ,")):
                line, column = comment.start
                at = column + found.start("rules") + len(listed) + 1
                return Edit(path, Span(line, at, line, at), "".join(f", {name}" for name in names))
    return None


def added(path: str, statement: Statement, line: int, names: list[str], reason: str) -> Edit | None:
    """A comment of its own."""
    if not statement.ends:
        return None
    at, column = next((end for end in statement.ends if end[0] >= line), statement.ends[-1])
    return Edit(path, Span(at, column, at, column), f"  # tlint: ignore[{', '.join(names)}] {reason}".rstrip())


def code(text: str) -> list[tuple[int, str]]:
    """What of a text is program: its tokens without comments."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(token.type, token.string) for token in tokens if token.type not in (tokenize.COMMENT, tokenize.NL)]

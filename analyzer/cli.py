"""The command line. `check` is implied: `tlint src/` is `tlint check src/`."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO, get_args

from tlint import __version__
from tlint.analyzer import config, project, source
from tlint.analyzer.config import Settings
from tlint.analyzer.model import TlintError

STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
LONG = 0.5  # seconds before a run is long enough for a progress bar
EPILOG = """\
A TARGET is FILE.py, FILE.py:NAME, MODULE:NAME or a qualified name. `tlint FOLDER` is `tlint check FOLDER`; a folder
that is called like a command is written `./rules`. Exit code 0: nothing found; 1: findings at or above --fail-on;
2: something that was asked for by name could not be done.
"""

log = logging.getLogger("tlint")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_streams()
    try:
        with _stoppable(), _flushed():
            options = _parser().parse_args(_with_command(words))
            _speak(options)
            return options.run(options)
    except TlintError as error:
        _complain(f"tlint: error: {error}")
    except BrokenPipeError:  # the reader (head, less) has had enough
        _discard(sys.stdout)
    except Stopped as stop:
        return 128 + stop.number
    except OSError as error:  # a full disk, a name that is too long: what surrounds us, and no bug of ours
        _discard(sys.stdout)
        _complain(f"tlint: error: {error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
    except Exception:  # a bug of ours; Python would exit with 1, which means "findings"
        _complain(f"{traceback.format_exc()}tlint: internal error; please report it with the lines above")
    return 2


def _open_streams() -> None:
    """Make something of standard streams that are closed, or cannot show all that there is to say."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # else a file of ours would take the place
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as Python does with standard error
    if os.environ.get("COLUMNS") == "0":
        del os.environ["COLUMNS"]  # in no columns rich says nothing


@contextlib.contextmanager
def _flushed() -> Iterator[None]:
    """What cannot be written is an error now, not when Python exits."""
    try:
        yield
    finally:
        sys.stdout.flush()


def _complain(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:  # nobody can be told
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Write no more to a stream, whose flush at exit would fail again."""
    with contextlib.suppress(io.UnsupportedOperation):  # one that has no descriptor cannot be full
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Stopped(BaseException):
    """A signal asks us to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """A signal that would end us is an exception, so that whatever we started is ended too, which no other interrupts.

    A signal that is ignored (nohup, a job in the background of a script) stays so.
    """
    before = {number: signal.getsignal(number) for number in STOPPING}
    before = {number: handler for number, handler in before.items() if handler not in (None, signal.SIG_IGN)}

    def stop(number: int, frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _with_command(words: list[str]) -> list[str]:
    if words and words[0] in (*COMMANDS, "-h", "--help", "--version"):
        return words
    return ["check", *words]


# Commands -------------------------------------------------------------------------------------------------------------


def check(options: argparse.Namespace) -> int:
    """Look at PATHs and report; with --verify, run the compiler too."""
    from tlint.analyzer import pipeline, report  # as in each command: `--help` need not wait for what it imports

    cwd = _cwd()
    asked = _asked(options, cwd)
    settings = _settings(options, asked, cwd)
    if settings.reason and not settings.add_ignores:
        raise TlintError("--reason goes with --add-ignores")
    with _output(settings.output_file) as stream:
        with _progress(settings.quiet) as progress:
            result = pipeline.run(asked.paths, settings, cwd, progress, asked.buffer, asked.errors)
        buffer = asked.buffer
        sources = report.texts(project.display(buffer.path, cwd), buffer) if buffer else {}
        report.write(result, settings, stream, sources=sources)
    # The text tells of targets that failed.
    told = pipeline.failures(result.targets) if stream is sys.stdout and settings.output_format == "text" else ()
    for error in result.errors:
        if settings.statistics or error not in told:
            print(f"tlint: error: {error}", file=sys.stderr)
    return result.exit_code


def baseline_(options: argparse.Namespace) -> int:
    """Write down the findings that there are, or those of a report: they do not fail from then on."""
    from tlint.analyzer import baseline, pipeline
    from tlint.analyzer.report import json_

    cwd = _cwd()
    asked = _asked(options, cwd)
    if asked.errors:
        raise TlintError("\n".join(asked.errors))
    settings = _settings(options, asked, cwd)
    root = project.find_root(asked.paths, cwd)
    file = baseline.file(root, settings)
    if file is None:
        raise TlintError("the setting `baseline` is empty: it has to name a file")
    if not file.exists():
        settings = replace(settings, baseline="")
    old = baseline.read(root, settings)
    if options.report:
        if options.words:
            raise TlintError("--from goes with no PATH: what was looked at is in the report")
        report, stale = baseline.load(Path(options.report)), tuple[str, ...]()
    else:
        with _progress(settings.quiet) as progress:
            result = pipeline.run(asked.paths, settings, cwd, progress)
        if result.errors:
            raise TlintError("\n".join(result.errors))
        report, stale = json_.report_json(result), result.stale
    new = baseline.renewed(old, report, stale, root, cwd)
    baseline.write(file, new)
    count = f"{len(new)} finding{'' if len(new) == 1 else 's'}"
    print(f"{project.display(file, cwd)}: {count} ({len(new.keys() - old.keys())} new, {len(stale)} dropped)")
    return 0


def roots(options: argparse.Namespace) -> int:
    """List the compile roots of a project."""
    from tlint.analyzer import pipeline
    from tlint.analyzer.report import summary

    cwd = _cwd()
    asked = _asked(options, cwd)
    settings = _settings(options, asked, cwd)
    with _progress(settings.quiet) as progress:
        found, missing = pipeline.roots(asked.paths, settings, cwd, progress, asked.buffer)
    errors = (*asked.errors, *missing)
    for root in found:
        how = f"{root.kind.name}, {root.how}" + (", fullgraph" if root.fullgraph else "")
        unresolved = "" if root.resolved else ", unresolved"
        place = summary.where(root.path, root.cell)
        print(f"{place}:{root.line}:{root.column}: {root.name} ({how}{unresolved})")
    for error in errors:
        print(f"tlint: error: {error}", file=sys.stderr)
    return 2 if errors else 0


def rules(options: argparse.Namespace) -> int:
    """List the rules."""
    from tlint.analyzer import explain

    explain.list_rules()
    return 0


def explain_(options: argparse.Namespace) -> int:
    """Tell what a rule or a graph break is about."""
    from tlint.analyzer import explain

    explain.explain(options.subject)
    return 0


COMMANDS = {
    "check": check,
    "verify": check,
    "baseline": baseline_,
    "roots": roots,
    "rules": rules,
    "explain": explain_,
}


def _cwd() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise TlintError("the working directory has been deleted") from error


# What is asked for ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line names: PATHs and TARGETs, and what of them is not there."""

    paths: tuple[Path, ...]
    targets: tuple[str, ...] = ()
    only_targets: bool = False
    errors: tuple[str, ...] = ()
    buffer: source.Source | None = None


def _asked(options: argparse.Namespace, cwd: Path) -> Asked:
    if "-" in options.words:
        buffer = _standard_input(options, cwd)
        return Asked((buffer.path,), buffer=buffer)
    paths: list[str] = []
    files: list[str] = []  # of the targets
    targets: list[str] = []
    errors: list[str] = []
    for word in options.words:
        is_file, exists = os.path.isfile(word), os.path.exists(word)
        is_target = _verifies(options) and (not exists or (is_file and options.command == "verify"))
        file = _target_file(word, cwd) if is_target else word
        if file is not None and (trouble := source.trouble(file)):
            errors.append(f"{file or repr(file)}: {trouble}{_hint(word)}")
        elif not is_target:
            paths.append(word)
        elif file and os.path.isdir(file):
            errors.append(f"{word}: {file} is a folder: a TARGET is FILE.py:NAME, or MODULE:NAME")
        else:
            targets.append(word)
            files += [file] if file else []
    if errors and not (paths or targets):
        raise TlintError("\n".join(errors))
    looked_at = tuple(map(Path, [*paths, *files] or ["."]))
    return Asked(looked_at, tuple(targets), bool(targets and not paths), tuple(errors))


def _verifies(options: argparse.Namespace) -> bool:
    return options.command == "verify" or getattr(options, "verify", False)


def _target_file(target: str, cwd: Path) -> str | None:
    """The file that a TARGET names, by its path or as a module of the project. None: another stage has to find it."""
    place, separator, _ = target.rpartition(":")
    place = place if separator else target
    if place.endswith(".py") or "/" in place:
        return place
    if not separator or not all(map(str.isidentifier, place.split("."))):
        return None
    module = Path(*place.split("."))
    candidates = [
        folder / file
        for folder in (Path(), Path("src"))
        for file in (module.with_suffix(".py"), module / "__init__.py")
    ]
    return next((str(file) for file in candidates if os.path.isfile(cwd / file)), None)


def _hint(word: str) -> str:
    if word in COMMANDS:
        return f" (a command comes first: `tlint {word} ...`)"
    near = difflib.get_close_matches(word, COMMANDS, 1, 0.7)
    if near:
        return f" (did you mean `tlint {near[0]}`?)"
    if os.path.isfile(word.rpartition(":")[0]):
        return f" (a target: `tlint verify {word}`, or --root {word})"
    return ""


def _standard_input(options: argparse.Namespace, cwd: Path) -> source.Source:
    if len(options.words) > 1:
        raise TlintError("`-` stands for standard input and goes with no other PATH")
    if _verifies(options):
        raise TlintError("standard input cannot be verified: save it to a file")
    if options.command == "baseline" or hasattr(options, "add_ignores"):
        raise TlintError("`-`: name a file instead of standard input")
    if sys.stdin is None:
        raise TlintError("`-`: standard input is closed")
    return source.decode(cwd / options.stdin_filename, sys.stdin.buffer.read())


def _settings(options: argparse.Namespace, asked: Asked, cwd: Path) -> Settings:
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in vars(options).items()}
    overrides: dict[str, Any] = {name: value for name, value in given.items() if name in config.NAMES}
    if _verifies(options):
        overrides["verify"] = True
    if asked.targets:
        overrides |= {"targets": asked.targets, "only_targets": asked.only_targets}
    return config.load(project.find_root(asked.paths, cwd), overrides)


# What is said ---------------------------------------------------------------------------------------------------------


def _speak(options: argparse.Namespace) -> None:
    """Notices go to standard error; colour follows the variables that rich and the worker's Python know."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("tlint: %(message)s"))
    log.handlers = [handler]
    log.setLevel(logging.ERROR if options.quiet else logging.INFO if options.verbose else logging.WARNING)
    match options.color:
        case "never":
            os.environ["NO_COLOR"] = "1"
        case "always":
            os.environ.pop("NO_COLOR", None)
            os.environ["FORCE_COLOR"] = "1"


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    try:
        stream = open(path, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115 - an error of opening is not one of writing
    except OSError as error:
        raise TlintError(f"--output-file {path}: {error.strerror}") from error
    with stream:
        yield stream


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar for each step of a run that takes long, where a person is looking."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

    console = Console(stderr=True)
    if quiet or not sys.stderr.isatty():  # not `console.is_terminal`, which FORCE_COLOR makes true
        yield None
        return
    bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=console, transient=True)
    steps: dict[str, TaskID] = {}
    begun = time.monotonic()

    def advance(step: str, done: int, total: int) -> None:
        if step not in steps:
            for task in bar.tasks:  # a step tells where it begins; the next one, that it has ended
                bar.update(task.id, completed=task.total)
            steps[step] = bar.add_task(step)
        bar.update(steps[step], completed=done, total=total)
        if time.monotonic() - begun > LONG:
            bar.start()

    try:
        yield advance
    finally:
        bar.stop()


# The options ----------------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tlint",
        description="The linter for torch.compile.",
        epilog=EPILOG,
        usage="tlint [check] [OPTIONS] [PATH ...]\n       tlint COMMAND --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tlint {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands", prog="tlint")
    for name, (words, help_text) in {
        "check": ("PATH", "look at files and folders (default: the working directory)"),
        "verify": ("TARGET", "the same, and prove it with the compiler: check --verify"),
        "baseline": ("PATH", "write down the findings that there are: they do not fail from then on"),
        "roots": ("PATH", "list what is compiled in a project"),
    }.items():
        command = _command(commands, name, help_text)
        command.usage = f"tlint {name} [OPTIONS] [{words} ...]"
        command.add_argument("words", nargs="*", metavar=words, default=[])
        _analysis_options(command)
        if name != "baseline":
            command.add_argument(
                "--stdin-filename",
                metavar="FILE",
                default="stdin.py",
                help="what the PATH `-` (standard input) is called",
            )
        if name != "roots":
            _selection_options(command)
        if name == "baseline":
            command.add_argument(
                "--from",
                dest="report",
                metavar="REPORT",
                default=None,
                help=("take the findings, and what the compiler said of them, from a JSON report"),
            )
        elif name != "roots":
            _report_options(command)
            _verify_options(command, asked=name == "verify")
    _command(commands, "rules", "list the rules")
    command = _command(commands, "explain", "tell what a rule or a graph break is about")
    command.add_argument("subject", metavar="CODE|NAME|GBID")
    return parser


def _command(commands: Any, name: str, help_text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help_text,
        description=f"{help_text[0].upper()}{help_text[1:]}.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    command.set_defaults(run=COMMANDS[name])
    command.add_argument("-q", "--quiet", action="store_true", default=False, help="no notices, no progress")
    command.add_argument("-v", "--verbose", action="store_true", default=False, help="say what was found out")
    command.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    return command


def _analysis_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("what is looked at")
    group.add_argument("--root", action="append", metavar="TARGET", help="a compile root, as if the code compiled it")
    group.add_argument(
        "--roots",
        choices=get_args(config.Roots),
        help="auto: all, assumed ones as advice; modules: every nn.Module.forward counts; explicit: what is compiled",
    )
    group.add_argument(
        "--target-torch", action="extend", type=_commas, metavar="VERSION,...", help="torch to look at the code for"
    )
    group.add_argument("--python", metavar="FILE|FOLDER", help="interpreter or environment of the project")
    group.add_argument("--cache-dir", metavar="FOLDER", help="where results are kept (default: .tlint_cache)")
    group.add_argument("--no-cache", dest="cache_dir", action="store_const", const="", help="keep and use no results")


def _selection_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("what counts")
    for name, help_text in {
        "select": "rules to turn on: names, codes or their beginnings",
        "ignore": "rules to turn off",
        "extend-select": "rules to turn on besides",
    }.items():
        group.add_argument(f"--{name}", action="extend", type=_commas, metavar="RULE,...", help=help_text)
    group.add_argument("--preview", action="store_true", help="turn on rules that are not measured yet")
    group.add_argument("--min-confidence", choices=get_args(config.MinConfidence), help="leave out what is less sure")
    group.add_argument("--baseline", metavar="FILE", help="findings that do not fail (default: .tlint-baseline)")


def _report_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("what is reported")
    group.add_argument("--no-baseline", dest="baseline", action="store_const", const="", help="as if there were none")
    group.add_argument("--output-format", choices=get_args(config.OutputFormat))
    group.add_argument("--output-file", metavar="FILE")
    group.add_argument("--add-ignores", action="store_true", help="write a comment for each finding into its file")
    group.add_argument("--reason", metavar="TEXT", help="what these comments say")
    group.add_argument("--fail-on", choices=get_args(config.FailOn), help="severity that makes exit code 1")
    group.add_argument("--statistics", action="store_true", help="count the findings of each rule")


def _verify_options(command: argparse.ArgumentParser, *, asked: bool) -> None:
    group = command.add_argument_group("verification")
    if not asked:
        group.add_argument("--verify", action="store_true", help="run the compiler and compare")
    group.add_argument("--gpu", dest="gpus", action="extend", type=_commas, metavar="NAME", help="GPU to compile for")
    group.add_argument("--timeout", type=float, metavar="SECONDS", help="that one target may take")
    group.add_argument("--memory", type=_size, metavar="SIZE", help="that one target may take, like 8GiB")
    group.add_argument("--jobs", type=int, metavar="N", help="how many targets run at a time")
    group.add_argument("--mode", choices=get_args(config.Mode), help="the mode of torch.compile")
    training = group.add_mutually_exclusive_group()
    training.add_argument("--train", action="store_true", help="run modules in training mode")
    training.add_argument("--eval", dest="train", action="store_false", help="run modules in evaluation mode")


def _commas(text: str) -> list[str]:
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise argparse.ArgumentTypeError("nothing is named")
    return items


def _size(text: str) -> int:
    try:
        return config.parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error

"""Makes docs/demo.svg, the picture in README.md, from a real run: python docs/picture.py"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROOT = Path(__file__).parent.parent
COMMAND = "tlint check fixtures/demo --verify"
WIDTH = 100


def main() -> None:
    env = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    words = [sys.executable, "-m", *COMMAND.split(), "--color", "always", "--quiet"]
    run = subprocess.run(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    if run.returncode != 1:
        sys.exit(f"the demonstration has to end with findings, not with exit code {run.returncode}")
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "bold green"), (COMMAND, "bold"), "\n"))
    console.print(Text.from_ansi(run.stdout))
    # A fixed id: the picture changes only where the text does.
    svg = console.export_svg(title="tlint", theme=SVG_EXPORT_THEME, unique_id="demo")
    (ROOT / "docs" / "demo.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()

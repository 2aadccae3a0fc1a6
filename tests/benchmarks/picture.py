"""Draw docs/demo.svg, the README's picture: what `tlint check fixtures/demo --verify` prints on a terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent.parent
WORDS = ["check", "fixtures/demo", "--verify"]
WIDTH = 100

env = {**os.environ, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1"}
done = subprocess.run([sys.executable, "-m", "tlint", *WORDS], cwd=ROOT, env=env, capture_output=True, text=True)
text = Text.from_ansi(done.stdout)
width = max(map(len, text.plain.splitlines()))  # suggested code is longer than a line
console = Console(record=True, width=width, file=io.StringIO())
console.print(text, soft_wrap=True)
console.save_svg(str(ROOT / "docs" / "demo.svg"), title=" ".join(["tlint", *WORDS]), unique_id="demo")

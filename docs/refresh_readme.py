"""Put today's output of `reliablenet demo` into the README: python docs/refresh_readme.py."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def main() -> None:
    """Run the demo and replace the block that shows its two tables."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "reliablenet", "demo", "--out", folder]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    tables = output[output.index("1. Synthetic Band") : output.index("\n3. ")].rstrip()
    text, count = re.subn(
        r"```text\n.*?```", lambda _: f"```text\n{tables}\n```", README.read_text(), flags=re.DOTALL
    )
    if count != 1:
        raise SystemExit(f"README.md must hold one block marked text; found {count}.")
    README.write_text(text)


if __name__ == "__main__":
    main()

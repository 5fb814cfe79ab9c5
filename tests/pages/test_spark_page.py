"""The Spark program of a page is run where Spark is, and prints what the page shows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tools.docs import pages
from tools.docs.markdown import DOCS

PAGE = DOCS / "how-to" / "many-machines.md"
MISSING = [
    name
    for name, there in (("pyspark", find_spec("pyspark")), ("java", shutil.which("java")))
    if not there
]


@pytest.mark.skipif(bool(MISSING), reason=f"the program needs {' and '.join(MISSING)}")
def test_the_program_runs_and_counts_as_one_machine_does(tmp_path) -> None:
    blocks = list(pages.BLOCK.finditer(PAGE.read_text()))
    program = next(k for k, block in enumerate(blocks) if 'title="on_spark.py"' in block["options"])
    earlier = [block[0] for block in blocks[:program] if block["language"] == "python"]
    pages.run_page("\n\n".join([*earlier, blocks[program][0]]), tmp_path)
    ran = subprocess.run(
        [sys.executable, "on_spark.py"],
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == blocks[program + 1]["body"]
    # what Dask counts on the same page, Spark counts too
    acted, certificate = ran.stdout.splitlines()
    assert acted.split()[0] in blocks[program - 3]["body"]
    assert certificate in blocks[program - 1]["body"]

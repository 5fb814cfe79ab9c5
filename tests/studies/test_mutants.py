"""The study of mutants can run the tests at all: it is run by hand, and settings of pytest change meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from studies.quality.mutants import OPTIONS, own_tests

ROOT = Path(__file__).parents[2]


def test_the_settings_of_the_project_are_known_to_the_plugins_that_it_loads() -> None:
    options = [option for option in OPTIONS if "profile" not in option]  # made in its own process
    command = [sys.executable, "-m", "pytest", *options, "--collect-only", *own_tests("risk/event")]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

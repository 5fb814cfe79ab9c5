"""`reliablenet doctor`: what to paste into an issue."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from reliablenet._version import __version__
from reliablenet.cli import options

PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "torch", "pandas", "safetensors", "skops", "typer", "rich"),
    *("pyarrow", "zstandard", "matplotlib", "jinja2", "distributed", "onnxruntime"),
)


def doctor(as_json: options.AsJson = False) -> None:
    """Print versions and settings that matter for an issue; none of your paths or names.

    Example: reliablenet doctor
    """
    from reliablenet.cli.printing import show, show_json

    found = {
        "reliablenet": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": str(os.cpu_count()),
        "in a virtual environment": "yes" if sys.prefix != sys.base_prefix else "no",
        "variables set": ", ".join(
            sorted(name for name in os.environ if name.startswith(("RELIABLENET_", "OMP_NUM")))
        )
        or "none",
    }
    packages = {name: _version(name) for name in PACKAGES}
    if as_json:
        show_json(found | {"packages": packages})
    else:
        show("Versions, for an issue:", found | packages)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"

"""Does the package work as it is handed out: built, installed in an empty environment, tested there?

Wheel and source archive are built once. For each interpreter that is found, an environment of its own gets the wheel, and
the tests of the unpacked source archive run against it, so that both are tried. One environment has the oldest versions
that pyproject.toml allows. Environments are kept in .cache/release.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import venv
import zipfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from studies.runner import ROOT, Block, Record, Study

FOLDER = ROOT / ".cache" / "release"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = ("dask", "excel", "onnx", "parquet", "report", "serve", "sign")
TOOLS = (
    *("pytest", "pytest-randomly", "pytest-timeout", "hypothesis", "statsmodels", "torchmetrics"),
    *("polars", "playwright", "zstandard", "mapie", "skorch", "cooper-optim", "psutil"),
)
# All rooms that need no hour; model files of earlier versions; commands, a server and a graph.
TESTS = (
    *(f"tests/{room}" for room in ("risk", "certificate", "metrics", "tables", "modelfile")),
    *(f"tests/methods/test_{name}.py" for name in ("models_of_0_1", "models_of_0_2_dev")),
    *(f"tests/methods/test_{name}.py" for name in ("promised", "members", "regressor")),
    *(f"tests/cli/test_{name}.py" for name in ("train", "commands", "certify", "export_record")),
    "tests/monitor",
    "tests/serve/test_decisions.py",
    "tests/export/onnx/test_trees.py",
)
# Old libraries warn of a future that has come, and of each other.
OLD = ("-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning")
IMPORTED = """
import json, sys, time
start = time.perf_counter()
import reliablenet
light = time.perf_counter()
reliablenet.ReliableClassifier
whole = time.perf_counter()
print(json.dumps({"file": reliablenet.__file__, "import": light - start, "with_torch": whole - start}))
"""


def run(*command: str | Path, cwd: Path = ROOT, **more: Any) -> str:
    """Run a command without the settings of this environment; return what it printed."""
    left = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    settings = left | {"OMP_NUM_THREADS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    ended = subprocess.run(  # noqa: S603
        [*map(str, command)], cwd=cwd, env=settings, text=True, stdout=subprocess.PIPE, **more
    )
    return str(ended.stdout)


def find_python(version: str) -> Path | None:
    """Return an interpreter of a version: one on the path that starts, or one of pyenv's."""
    places = [Path(found) for found in [shutil.which(f"python{version}")] if found]
    places += sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for place in places:
        answer = subprocess.run([place, "--version"], capture_output=True, text=True)  # noqa: S603
        if answer.stdout.startswith(f"Python {version}."):
            return place
    return None


def environment(name: str, interpreter: Path | None = None) -> Path:
    """Return the interpreter of an environment that is empty when it is made."""
    folder = FOLDER / name
    if not (folder / "bin" / "python").exists():
        if interpreter is None:
            venv.create(folder, with_pip=True)
        else:
            run(interpreter, "-m", "venv", folder, check=True)
    return folder / "bin" / "python"


def pins() -> dict[str, str]:
    """Return the tested versions."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {name.lower(): line for line in lines if (name := line.partition("==")[0]) != line}


def oldest() -> list[str]:
    """Return the oldest versions that are allowed, torch left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    return sorted({line.replace(">=", "==") for line in asked if not line.startswith("torch>")})


@functools.cache
def build() -> tuple[Path, Path]:
    """Build the source archive and the wheel; return both."""
    shutil.rmtree(FOLDER / "dist", ignore_errors=True)
    python = environment("build")
    run(python, "-m", "pip", "install", "-q", pins()["hatchling"], check=True)
    run(python, "-m", "hatchling", "build", "-d", FOLDER / "dist", check=True)
    (archive,) = (FOLDER / "dist").glob("*.tar.gz")
    (wheel,) = (FOLDER / "dist").glob("*.whl")
    return archive, wheel


def built() -> list[Record]:
    """Return the sizes of what is handed out."""
    archive, wheel = build()
    with zipfile.ZipFile(wheel) as opened:
        files = [name for name in opened.namelist() if name.startswith("reliablenet/")]
    with tarfile.open(archive) as packed:
        members = [one for one in packed.getmembers() if one.isfile()]
    return [
        {"file": wheel.name, "bytes": wheel.stat().st_size, "files": len(files)},
        {"file": archive.name, "bytes": archive.stat().st_size, "files": len(members)},
    ]


def tried(version: str, dependencies: str) -> Record:
    """Return how the package fares in an environment of its own."""
    interpreter = find_python(version)
    if interpreter is None:
        return {"found": False}
    archive, wheel = build()
    python = environment(f"{version}-{dependencies}", interpreter)
    install(python, wheel, dependencies == "oldest")
    source = FOLDER / "source"
    shutil.rmtree(source, ignore_errors=True)
    with tarfile.open(archive) as packed:
        packed.extractall(source, filter="data")
    (unpacked,) = source.iterdir()
    empty = FOLDER / "empty"
    shutil.rmtree(empty, ignore_errors=True)
    empty.mkdir()
    demo = run(python, "-m", "reliablenet", "demo", cwd=empty, check=True)
    times = [json.loads(run(python, "-c", IMPORTED, cwd=empty, check=True)) for _ in range(5)]
    if not all(Path(one["file"]).is_relative_to(python.parents[1]) for one in times):
        raise RuntimeError(f"Not the installed package was imported, but {times[0]['file']}.")
    said = json.loads(run(python, "-m", "reliablenet", "doctor", "--json", cwd=empty, check=True))
    return {
        "found": True,
        "versions": said,
        "demo_certified": len(re.findall(r"^   Use \w+: within alpha", demo, re.MULTILINE)),
        "import_seconds": round(min(one["import"] for one in times), 3),
        "with_torch_seconds": round(min(one["with_torch"] for one in times), 2),
        "tests": endings(python, unpacked, dependencies == "oldest"),
    }


def install(python: Path, wheel: Path, old: bool) -> None:
    """Install the wheel, its extras and what the tests need."""
    known = pins()
    tools = [known[name] for name in (*TOOLS, "torch") if name in known]
    package = f"reliablenet[{','.join(EXTRAS)}] @ {wheel.resolve().as_uri()}"
    limits = oldest() if old else ["-c", str(ROOT / "constraints.txt")]
    pip = (python, "-m", "pip", "install", "-q")
    run(*pip, *limits, *tools, package, check=True)
    run(*pip, "--no-deps", "--force-reinstall", wheel, check=True)  # this one, not one before


def endings(python: Path, folder: Path, old: bool) -> dict[str, int]:
    """Run the tests of the unpacked archive and return how many ended in which way."""
    report = FOLDER / "report.xml"
    report.unlink(missing_ok=True)
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    print(run(python, *command, *(OLD if old else ()), *TESTS, cwd=folder))
    cases = ElementTree.parse(report).iter("testcase")  # noqa: S314 - pytest wrote it
    return dict(Counter(next((child.tag for child in case), "passed") for case in cases))


def blocks() -> list[Block]:
    """Return the archives, each interpreter with the tested versions, and the first with the oldest."""
    wanted = [(python, "tested") for python in PYTHONS] + [(PYTHONS[0], "oldest")]
    return [
        Block.once({"what": "archives"}, built),
        *(
            Block.once({"python": python, "dependencies": which}, partial(tried, python, which))
            for python, which in wanted
        ),
    ]


def complaints(records: list[Record]) -> list[str]:
    """Say where tests fail."""
    return [
        f"{bad} tests fail on Python {one['python']} with the {one['dependencies']} versions."
        for one in records
        if one.get("found")
        and (bad := one["tests"].get("failure", 0) + one["tests"].get("error", 0))
    ]


STUDY = Study(
    "quality",
    "release",
    about="Does the package work as it is handed out, on every Python and with the oldest versions allowed?",
    cost="an hour, and gigabytes of GPU packages where torch has no other build; needs PyPI",
    blocks=blocks,
    complaints=complaints,
)

"""Files that a user or an attacker may hand over: tables, predictions, settings, certificates."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from fuzz_case import Fault, Hang, Random, limited, only_our_warnings, pick
from fuzz_targets import sound_certificate
from typer.testing import CliRunner

import reliablenet as rn
from reliablenet.bench import Plan, Profile, load_profile
from reliablenet.certificate.sealing import digest
from reliablenet.cli.app import app
from reliablenet.tables.files import column_names, read_batches, read_table

Words = list[bytes]
TABLE_WORDS: Words = [
    b",",
    b";",
    b"\t",
    b"|",
    b'"',
    b'""',
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n",
    b" ",
    b"\xef\xbb\xbf",
    b"NaN",
    b"inf",
    b"1e999",
    b"-",
    b"1,5",
    b"1.234,5",
    b"\x00",
    b"\xff\xfe",
    b"\xe9",
    b"x" * 300,
    b"true",
    b"'",
    b"\\",
    b"\x1a",
    "\u2028".encode(),
    b"0x1f",
    b"1_000",
    b"\x85",
    b"\x0b",
    b"\x1c",
]
JSON_WORDS: Words = [
    b"null",
    b"-1",
    b"1e999",
    b"[]",
    b"{}",
    b'"\\u0000"',
    b"99999999999999999999",
    b"NaN",
    b"true",
    b'"inf"',
    b"0.0",
    b"-0.0",
    b"1e-400",
    b",",
    b":",
    b'"',
    b"\xff",
    b"[" * 2000,
    b'"fixed"',
]
TOML_WORDS: Words = [
    b"=",
    b"[",
    b"]",
    b"\n",
    b'"',
    b"inf",
    b"nan",
    b"-1",
    b"true",
    b"{}",
    b"[]",
    b"[1, 2]",
    b'"x"',
    b"1979-05-27",
    b"[plans]\n",
    b"[[plans]]\n",
    b"99999999999999999999",
    b"1e999",
    b"\xff",
    b'"../../x"',
    b'"/"',
    b'""',
    b'name = "a/b"\n',
    b"seeds = []\n",
    b"only = true\n",
    b"#",
    b"\x00",
]


@dataclass(frozen=True)
class FileTarget:
    """A reader under test.

    Parameters
    ----------
    seeds : list of bytes
        Good files to start from.
    words : list of bytes
        What its parser may stumble over.
    read : callable
        Reads a path; raises an error of ours, or Fault, or returns the kind of its answer.
    suffix : str
    """

    seeds: list[bytes]
    words: Words
    read: Callable[[Path], str]
    suffix: str


def mutate(random: Random, content: bytes, words: Words) -> bytes:
    """Change, cut, repeat, swap or insert, one to four times."""
    for _ in range(random.choice([0, 1, 1, 2, 4])):
        kind, place = random.randint(6), random.randint(len(content) + 1)
        end = min(len(content), place + random.randint(1, 20))
        lines = content.splitlines(keepends=True)
        if kind == 0:
            content = content[:place] + pick(random, words) + content[place:]
        elif kind == 1:
            content = content[:place] + pick(random, words) + content[end:]
        elif kind == 2:
            content = content[:place] + bytes([random.randint(256)]) + content[place + 1 :]
        elif kind == 3:
            content = content[:place] + content[end:]
        elif kind == 4 and lines:
            line = random.randint(len(lines))
            content = b"".join(lines[:line] + lines[line : line + 1] * 2 + lines[line + 1 :])
        elif lines and random.uniform() < 0.5:
            content = b"".join(lines[i] for i in random.permutation(len(lines)))
        else:
            content = content[:place]
    return content


def run_file(name: str, target: FileTarget, seed: int, folder: Path) -> str:
    """Run one case and return its outcome; a fault is raised."""
    random = Random(crc32(f"{name} {seed}".encode()))
    content = mutate(random, pick(random, target.seeds), target.words)
    path = folder / f"case{target.suffix}"
    path.write_bytes(content)
    story = f"{name}, case {seed}, {content[:300]!r}"
    try:
        with limited(), only_our_warnings():
            return target.read(path)
    except rn.errors.ReliableNetError:
        return "our error"
    except Fault as error:
        raise Fault(f"{story}: {error}") from error
    except (Exception, Hang) as error:
        raise Fault(f"{story}: {error!r}") from error


# --- tables


def read_csv(path: Path) -> str:
    """Read a table, and compare every cell with what Python's own csv module reads."""
    names = column_names(path)
    whole = read_table(path, text=names)
    expected = cells(path, names)
    if expected is None:
        return "answer"
    found = [["" if pd.isna(cell) else str(cell) for cell in row] for row in whole.to_numpy(object)]
    if len(found) != len(expected):
        raise Fault(f"{len(found)} rows where there are {len(expected)}")
    for ours, theirs in zip(found, expected, strict=True):
        for cell, truth in zip(ours, theirs, strict=True):
            if cell and cell.strip() != truth.strip():
                raise Fault(f"the cell {truth!r} is read as {cell!r}")
    batches = list(read_batches(path, rows=3, text=names))
    if not pd.concat(batches).equals(whole):
        raise Fault("batches differ from the whole")
    typed = read_table(path)
    if typed.shape != whole.shape:
        raise Fault("types change the shape")
    return "right answer"


def cells(path: Path, names: list[str]) -> list[list[str]] | None:
    """Return the cells as the csv module sees them, or None where it cannot."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        return None  # compressed, or in UTF-16
    for separator in ",;\t|":
        lines = io.StringIO(text, newline=None)
        try:
            rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
        except csv.Error:
            return None
        rows = [row for row in rows if len(row) > 1 or (row and row[0].strip(" "))]
        header = [n.strip() or f"Unnamed: {i}" for i, n in enumerate(rows[0])] if rows else []
        if header == names and (len(names) > 1 or separator == ","):
            return rows[1:]
    return None


# --- predictions


def read_predictions(path: Path) -> str:
    """Certify a file of predictions, and count again where its labels are plain letters."""
    result = CliRunner().invoke(
        app,
        [
            "certify",
            "--predictions",
            str(path),
            "--label",
            "y",
            "--predicted",
            "yhat",
            "--score",
            "s",
            "--threshold",
            "0.5",
            "--alpha",
            "0.3",
            "--json",
        ],
    )
    if result.exit_code not in (0, 2, 3, 5):
        raise Fault(f"exit code {result.exit_code}: {result.stderr} {result.exception!r}")
    if result.exit_code in (2, 5):
        if not result.stderr.strip():
            raise Fault("no message")
        return "our error"
    found = json.loads(result.stdout)
    rows = cells(path, column_names(path))
    if rows is None:
        return "answer"
    place = {name: i for i, name in enumerate(column_names(path))}
    n = wrong = 0
    for row in rows:
        truth, answer, score = (row[place[name]].strip() for name in ("y", "yhat", "s"))
        if not (truth + answer).isalpha() or (truth + answer).lower() in ("truetrue", "falsefalse"):
            return "answer"
        n += 1
        wrong += truth != answer and float(score.replace(",", ".")) >= 0.5
    if (found["n"], found["errors"]) != (n, wrong):
        raise Fault(f"{found['errors']} errors in {found['n']}, and not {wrong} in {n}")
    return "right answer"


# --- settings


def read_profile(path: Path) -> str:
    profile = load_profile(str(path))
    if not isinstance(profile, Profile) or not profile.plans:
        raise Fault(f"no profile: {profile!r}")
    if not all(isinstance(plan, Plan) for plan in profile.plans.values()):
        raise Fault(f"no plans: {profile!r}")
    if not all(type(seed) is int and seed >= 0 for seed in profile.seeds) or not profile.seeds:
        raise Fault(f"no seeds: {profile.seeds!r}")
    results = Path("results").absolute()
    for plan in profile.plans:
        place = profile.open_store(results).path(plan, "erm", 0).resolve()
        if results.resolve() not in place.parents or len(place.parents) != len(results.parents) + 4:
            raise Fault(f"results go to {place}")
    return "answer"


def read_config(path: Path) -> str:
    """Give settings to train; the table is not there, so that good settings end with 5."""
    result = CliRunner().invoke(
        app,
        ["train", "no-such-table.csv", "--target", "y", "--out", "m.rnet", "--config", str(path)],
    )
    if result.exit_code not in (2, 5) or not result.stderr.strip():
        raise Fault(f"exit code {result.exit_code}: {result.stderr} {result.exception!r}")
    return "answer" if result.exit_code == 5 else "our error"


# --- certificates


def read_certificate(path: Path) -> str:
    certificate = rn.Certificate.from_json(path.read_bytes().decode("utf-8", "replace"))
    try:
        sound_certificate(certificate)
        assert rn.Certificate.from_json(certificate.to_json()) == certificate
    except AssertionError as error:
        raise Fault(f"unsound {certificate}: {error}") from error
    return "answer"


def read_sealed_certificate(path: Path) -> str:
    """The same, with its hash made anew, as whoever alters it would."""
    try:
        values = json.loads(path.read_bytes().decode("utf-8", "replace"))
        values.pop("sha256", None)
        values["sha256"] = digest(values)
        path.write_text(json.dumps(values))
    except (ValueError, AttributeError, TypeError, RecursionError):
        pass
    return read_certificate(path)


def certificates() -> list[bytes]:
    made = [
        rn.Certificate(errors=k, accepted=a, n=n, alpha=0.05, rho=0.05, threshold=t, kind=kind)
        for k, a, n, t, kind in [
            (0, 9, 40, 0.9, "fixed"),
            (3, 200, 300, 0.25, "monotone"),
            (0, 0, 10, math.inf, "monotone"),
        ]
    ]
    return [certificate.to_json().encode() for certificate in made]


def tables() -> list[bytes]:
    random = np.random.RandomState(0)
    rows = [
        (i, f"{random.uniform():.3f}", pick(random, ["a", "b", '"x, y"', ""])) for i in range(12)
    ]
    plain = "id,value,kind\n" + "".join(f"{i},{v},{k}\n" for i, v, k in rows)
    german = "id;value;kind\n" + "".join(f"{i};{v.replace('.', ',')};{k}\n" for i, v, k in rows)
    quoted = 'a,"b ""c""",d\n1,"two\nlines",3\n4,"5",6\n7,,9\n'
    made = [plain, german, quoted, plain.replace(",", "\t"), plain.replace("\n", "\r\n")]
    return [text.encode() for text in made] + [gzip.compress(plain.encode(), mtime=0)]


def predictions() -> list[bytes]:
    random = np.random.RandomState(0)
    rows = [(pick(random, "ab"), pick(random, "ab"), f"{random.uniform():.3f}") for _ in range(20)]
    plain = "y,yhat,s\n" + "".join(",".join(row) + "\n" for row in rows)
    return [plain.encode(), plain.replace(",", ";").encode()]


PROFILE = b"""name = "mine"
extends = "smoke"
only = true
seeds = [0, 1]
rho = 0.1
[plans.synthetic_band]
epochs = 20
alpha = 0.1
data = { gamma = 0.4 }
[plans.wide]
dataset = "synthetic_band"
width = 64
kind = "images"
"""
CONFIG = b"""alpha = 0.02
rho = 0.1
threshold = "certified"
seed = 3
drop = ["a", "b"]
"""

FILES = {
    "CSV tables": FileTarget(tables(), TABLE_WORDS, read_csv, ".csv"),
    "files of predictions": FileTarget(predictions(), TABLE_WORDS, read_predictions, ".csv"),
    "profiles in TOML": FileTarget([PROFILE], TOML_WORDS, read_profile, ".toml"),
    "settings for --config": FileTarget([CONFIG], TOML_WORDS, read_config, ".toml"),
    "certificates": FileTarget(certificates(), JSON_WORDS, read_certificate, ".json"),
    "certificates, sealed again": FileTarget(
        certificates(), JSON_WORDS, read_sealed_certificate, ".json"
    ),
}

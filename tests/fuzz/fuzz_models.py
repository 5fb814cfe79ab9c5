"""Model files altered and sealed again, as an attacker can: refused, or a working model.

Another seed is another model with other weights, and other alterations of it.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contract_helpers import fit_quietly, quick
from fuzz_case import Fault, Hang, Random, limited, pick
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.modelfile.archive import SEAL, SEAL_LENGTH, seal, sha256

BAND = SyntheticBand(random_state=0).sample(500)
MUTATIONS = 200  # of each model
DIRECTORY = b"PK\x01\x02"  # where the list of an archive's members begins
WORDS = [b"null", b"-1", b"1e999", b"[]", b"{}", b'"\\u0000"', b"99999999999", b"\xff" * 8]


def boosting(seed: int) -> Any:
    trees = HistGradientBoostingClassifier(max_iter=3, random_state=seed)
    return rn.CertifiedThreshold(trees, alpha=0.4, random_state=seed)


def forest(seed: int) -> Any:
    trees = RandomForestClassifier(3, max_depth=4, random_state=seed)
    return rn.TemperatureScaling(trees, alpha=0.4, random_state=seed)


def network(seed: int) -> Any:
    return quick(rn.ReliableClassifier, random_state=seed)


MODELS: dict[str, Callable[[int], Any]] = {
    "network": network,
    "boosting": boosting,
    "forest": forest,
}


def good_file(kind: str, seed: int, folder: Path) -> bytes:
    """Return the file of a fitted model."""
    path = fit_quietly(MODELS[kind](seed), BAND.X, BAND.y).save(folder / "good.rnet")
    content = path.read_bytes()
    path.unlink()
    return content


def mutants(content: bytes, seed: int) -> Iterator[bytes]:
    """Yield altered files: raw bytes, members, and members of the archive in the archive."""
    random = Random(seed)
    parts = members(content)
    for number in range(MUTATIONS):
        if number % 4 == 0:
            body = spoil_raw(content[:-SEAL_LENGTH], random)
            yield body + SEAL + sha256(body).encode()
            continue
        changed = dict(parts)
        name = pick(random, list(parts))
        if name.endswith(".skops") and number % 4 != 1:
            changed[name] = spoil_inside(parts[name], random)
        elif name.endswith(".skops"):
            changed[name] = spoil_raw(parts[name], random)
        else:
            changed[name] = spoil(parts[name], random)
        if name != "manifest.json":
            manifest = json.loads(parts["manifest.json"])
            manifest["sha256"][name] = sha256(changed[name])
            changed["manifest.json"] = json.dumps(manifest).encode()
        yield seal(changed)


def run_mutant(kind: str, mutant: bytes, path: Path, story: str) -> str:
    """Load an altered file, decide with it, and return the outcome; a fault is raised."""
    path.write_bytes(mutant)
    try:
        with limited(), warnings.catch_warnings(action="ignore"):
            try:
                model = rn.load(path)
            except rn.errors.ReliableNetError:
                return "our error"
            try:
                decided = len(model.decide(BAND.X[:20]))
            except rn.errors.ReliableNetError:
                return "our error"
            except Exception:
                if kind == "network":
                    raise
                return (
                    "documented error"  # what scikit-learn says of an altered classifier of its own
                )
    except (Exception, Hang) as error:
        raise Fault(f"models, {kind}, {story}: {error!r}") from error
    if decided != 20:
        raise Fault(f"models, {kind}, {story}: {decided} decisions for 20 rows")
    return "answer"


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def spoil(part: bytes, random: Random) -> bytes:
    """Change some bytes, cut, repeat, or put in what a parser may stumble over."""
    changed = bytearray(part)
    kind = random.randint(5)
    if kind == 0 or not changed:
        return bytes(changed[: random.randint(len(changed) + 1)])
    if kind == 1:
        start, stop = sorted(random.randint(len(changed) + 1, size=2))
        return bytes(changed[:stop] + changed[start:stop] + changed[stop:])
    if kind == 2:
        place = random.randint(len(changed))
        return bytes(changed[:place] + pick(random, WORDS) + changed[place:])
    for place in random.randint(len(changed), size=random.choice([1, 1, 2, 8])):
        changed[place] = (
            random.randint(256) if kind == 3 else changed[place] ^ (1 << random.randint(8))
        )
    return bytes(changed)


def spoil_raw(archive: bytes, random: Random) -> bytes:
    """Change an archive anywhere, or where it lists its members: that is short and rarely hit."""
    listed = archive.index(DIRECTORY)
    if random.uniform() < 0.5:
        return spoil(archive, random)
    return archive[:listed] + spoil(archive[listed:], random)


def spoil_inside(archive: bytes, random: Random) -> bytes:
    """Change one member of a skops file, and write a whole zip again."""
    parts = members(archive)
    name = pick(random, list(parts))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as new:
        for key, part in parts.items():
            new.writestr(key, spoil(part, random) if key == name else part)
    return buffer.getvalue()

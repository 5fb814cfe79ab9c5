"""Thousands of altered model files, sealed again as an attacker can: refused, or a working model."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from contract_helpers import fit_quietly, quick
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import reliablenet as rn
from reliablenet.data import SyntheticBand
from reliablenet.methods.archive import SEAL, SEAL_LENGTH, seal, sha256

BAND = SyntheticBand(seed=0).sample(500)
MODELS = {
    "network": quick(rn.ReliableClassifier),
    "boosting": rn.CertifiedThreshold(
        HistGradientBoostingClassifier(max_iter=3, random_state=0), alpha=0.4, random_state=0
    ),
    "forest": rn.TemperatureScaling(
        RandomForestClassifier(3, max_depth=4, random_state=0), alpha=0.4, random_state=0
    ),
}
MUTATIONS = 700  # of each model


@pytest.fixture(scope="module", params=MODELS)
def content(request, tmp_path_factory) -> bytes:
    model = fit_quietly(MODELS[request.param], BAND.X, BAND.y)
    return model.save(tmp_path_factory.mktemp("model") / "model.rnet").read_bytes()


def spoil(part: bytes, random: np.random.RandomState) -> bytes:
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
        words = [b"null", b"-1", b"1e999", b"[]", b"{}", b'"\\u0000"', b"99999999999", b"\xff" * 8]
        return bytes(changed[:place] + words[random.randint(len(words))] + changed[place:])
    for place in random.randint(len(changed), size=random.choice([1, 1, 2, 8])):
        changed[place] = (
            random.randint(256) if kind == 3 else changed[place] ^ (1 << random.randint(8))
        )
    return bytes(changed)


def mutants(content: bytes, seed: int):
    """Yield altered files: raw bytes, members, and members of the archive in the archive."""
    random = np.random.RandomState(seed)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for number in range(MUTATIONS):
        if number % 4 == 0:
            body = spoil(content[:-SEAL_LENGTH], random)
            yield body + SEAL + sha256(body).encode()
            continue
        changed = dict(parts)
        name = list(parts)[random.randint(len(parts))]
        if name.endswith(".skops") and number % 4 != 1:
            changed[name] = spoil_inside(parts[name], random)
        else:
            changed[name] = spoil(parts[name], random)
        if name != "manifest.json":
            manifest = json.loads(parts["manifest.json"])
            manifest["sha256"][name] = sha256(changed[name])
            changed["manifest.json"] = json.dumps(manifest).encode()
        yield seal(changed)


def spoil_inside(archive: bytes, random: np.random.RandomState) -> bytes:
    """Change one member of a skops file, and write a whole zip again."""
    with zipfile.ZipFile(io.BytesIO(archive)) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    name = list(parts)[random.randint(len(parts))]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as new:
        for key, part in parts.items():
            new.writestr(key, spoil(part, random) if key == name else part)
    return buffer.getvalue()


def test_altered_files_are_refused_or_work(content, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("model.rnet")
    refused = 0
    for mutant in mutants(content, seed=len(content)):
        path.write_bytes(mutant)
        with warnings.catch_warnings(action="ignore"):
            try:
                model = rn.load(path)
            except rn.ReliableNetError:
                refused += 1
                continue
            try:
                decided = model.decide(BAND.X[:20])
            except rn.ReliableNetError:
                refused += 1
                continue
            except Exception:  # what scikit-learn says of an altered classifier of its own
                assert isinstance(model, rn.CertifiedThreshold | rn.TemperatureScaling)
                refused += 1
                continue
        assert len(decided) == 20
    assert refused > MUTATIONS // 2
    assert [file.name for file in tmp_path.iterdir()] == ["model.rnet"]  # nothing was written


@pytest.mark.parametrize(
    ("estimator", "attribute", "field", "value", "message"),
    [
        (HistGradientBoostingClassifier(max_iter=2), "left", "left", 10**6, "a child that is not"),
        (HistGradientBoostingClassifier(max_iter=2), "circle", "right", 0, "a child that is not"),
        (HistGradientBoostingClassifier(max_iter=2), "f", "feature_idx", 99, "a feature that is"),
    ],
)
def test_a_tree_that_leads_out_of_itself_is_refused(
    estimator, attribute, field, value, message, tmp_path
) -> None:
    model = fit_quietly(rn.CertifiedThreshold(estimator, alpha=0.4), BAND.X, BAND.y)
    model.estimator_._predictors[0][0].nodes[field][0] = value
    path = model.save(tmp_path / "model.rnet")
    with pytest.raises(rn.ModelFileError, match=message):
        rn.load(path)

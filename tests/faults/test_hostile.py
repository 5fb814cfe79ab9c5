"""What an attacker may try: code in files, bombs, paths that lead elsewhere."""

from __future__ import annotations

import ast
import gzip
import io
import json
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from sklearn.naive_bayes import GaussianNB

import reliablenet as rn
from reliablenet.bench import load_profile
from reliablenet.datasets import SyntheticBand
from reliablenet.datasets.unpacking import read_members
from reliablenet.modelfile.archive import seal, sha256
from reliablenet.report import comparison_page, model_page
from reliablenet.tables import text
from reliablenet.tables.files import read_table

SOURCES = sorted(Path(rn.__file__).parent.rglob("*.py"))
MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "yaml", "ctypes"}
BUILTINS, OS = {"eval", "exec", "compile"}, {"system", "popen"}
CALLS = {
    "system",
    "popen",
    "extractall",
    "extract",
    "mktemp",
    "Unpickler",
}


def offences(tree: ast.AST) -> list[str]:
    """Return what could run code that came with a file, by line."""
    found = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "").split(".")[0]]
        found += [f"{node.lineno}: import {name}" for name in names if name in MODULES]
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        owner = getattr(getattr(called, "value", None), "id", "")
        given = {word.arg: ast.unparse(word.value) for word in node.keywords}
        builtin = isinstance(called, ast.Name)
        if (name in BUILTINS and builtin) or (name in CALLS and (owner == "os" or name not in OS)):
            found.append(f"{node.lineno}: {name}")
        if given.get("shell") == "True" or given.get("verify") == "False":
            found.append(f"{node.lineno}: {name} with {given}")
        if (owner, name) == ("torch", "load") and given.get("weights_only") != "True":
            found.append(f"{node.lineno}: torch.load")
        if (owner, name) == ("np", "load") and given.get("allow_pickle") != "False":
            found.append(f"{node.lineno}: np.load")
        if owner == "joblib" and name == "load":
            found.append(f"{node.lineno}: joblib.load")
    return found


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "eval('1')",
        "torch.load(f)",
        "os.system('x')",
        "subprocess.run('x', shell=True)",
        "np.load(f)",
        "archive.extractall()",
        "import yaml",
    ],
)
def test_the_walk_finds_what_it_looks_for(code) -> None:
    assert len(offences(ast.parse(code))) == 1


def test_no_source_can_run_code_that_came_with_a_file() -> None:
    assert len(SOURCES) > 90
    found = {path.name: offences(ast.parse(path.read_text())) for path in SOURCES}
    assert {name: lines for name, lines in found.items() if lines} == {}


# --- bombs


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_member_larger_than_memory_is_refused_by_its_size(kind, tmp_path) -> None:
    """The sizes are only claimed here; nothing is read before they are looked at."""
    path = tmp_path / f"set.{kind}"
    if kind == "tar":
        member = tarfile.TarInfo("a.bin")
        member.size = 2**40
        path.write_bytes(member.tobuf() + bytes(10240))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.bin", b"x")
        content = bytearray(path.read_bytes())
        place = content.index(b"PK\x01\x02") + 24
        content[place : place + 4] = (2**32 - 2).to_bytes(4, "little")
        path.write_bytes(content)
    with pytest.raises(
        rn.errors.DataFileError, match=r"a\.bin in the archive .* would take [\d,]+ bytes"
    ):
        read_members(path, {"a.bin": "0" * 64})


def test_a_line_larger_than_memory_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(text, "LONGEST_LINE", 2**20)
    path = tmp_path / "t.csv"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n" + b"0" * 2**24))
    with pytest.raises(
        rn.errors.InvalidDataError, match=r"t\.csv: line 3 has 1,048,576 characters or more"
    ):
        read_table(path)
    path.write_text("a,b\n1,2\n" + "3" * (2**20 - 3) + ",4\n")
    with pytest.raises(rn.errors.InvalidDataError, match="line 3"):
        read_table(path)
    path.write_text("a,b\n1,2\n" + "x" * (2**17 - 9) + ",4\n")
    assert len(read_table(path)) == 2
    path.write_text("a,b\n1,2\n" + "x" * (2**17 + 1) + ",4\n")
    with pytest.raises(
        rn.errors.InvalidDataError, match=r"t\.csv holds a field of more than 131,072"
    ):
        read_table(path)


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory) -> Path:
    band = SyntheticBand(random_state=0).sample(300)
    model = rn.CertifiedThreshold(GaussianNB(), alpha=0.4, random_state=0).fit(band.X, band.y)
    return model.save(tmp_path_factory.mktemp("wrapped") / "m.rnet")


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_bomb_inside_a_model_file_is_refused(wrapped, tmp_path) -> None:
    parts = members(wrapped)
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(parts["estimator.skops"])) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
        new.writestr("bomb.npy", bytes(2**26))
    parts["estimator.skops"] = buffer.getvalue()
    manifest = json.loads(parts["manifest.json"])
    manifest["sha256"]["estimator.skops"] = sha256(parts["estimator.skops"])
    parts["manifest.json"] = json.dumps(manifest).encode()
    path = tmp_path / "m.rnet"
    path.write_bytes(seal(parts))
    with pytest.raises(rn.errors.ModelFileError, match="compressed members, which we never write"):
        rn.load(path)


# --- paths that lead elsewhere


@pytest.mark.parametrize("name", ["../evil", "/evil", "C:\\evil", "weights/../../evil"])
def test_a_model_file_with_another_name_in_it_is_refused(wrapped, tmp_path, name) -> None:
    path = tmp_path / "inside" / "m.rnet"
    path.parent.mkdir()
    path.write_bytes(seal(members(wrapped) | {name: b"evil"}))
    with pytest.raises(rn.errors.ModelFileError, match="must hold one of"):
        rn.load(path)
    assert [file.name for file in tmp_path.rglob("*")] == ["inside", "m.rnet"]


def test_a_link_in_the_place_of_a_member_gives_no_other_file(wrapped, tmp_path) -> None:
    """A zip can hold links; we read the text of the link as the member, which it is not."""
    parts = members(wrapped)
    secret = tmp_path / "secret"
    secret.write_bytes(parts["certificate.json"])
    parts["certificate.json"] = str(secret).encode()
    manifest = json.loads(parts["manifest.json"])
    manifest["sha256"]["certificate.json"] = sha256(parts["certificate.json"])
    parts["manifest.json"] = json.dumps(manifest).encode()
    buffer = io.BytesIO(seal(parts))
    path = tmp_path / "m.rnet"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(rn.errors.ReliableNetError, match="This is not the JSON of a certificate"):
        rn.load(path)


def test_saving_through_a_link_replaces_the_link_and_not_what_it_points_to(
    wrapped, tmp_path
) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "m.rnet").symlink_to("precious")
    rn.load(wrapped).save(tmp_path / "m.rnet")
    assert (tmp_path / "precious").read_text() == "precious"
    assert rn.load(tmp_path / "m.rnet").threshold_ == rn.load(wrapped).threshold_


@pytest.mark.parametrize("name", ["../up", "/root", "a/b", "", ".", "..", "a\\\\b"])
@pytest.mark.parametrize("where", ["profile", "plan"])
def test_a_profile_names_no_folder_outside_of_the_results(name, where, tmp_path) -> None:
    path = tmp_path / "p.toml"
    plan = name if where == "plan" else "band"
    top = name if where == "profile" else "mine"
    path.write_text(
        f'name = "{top}"\nextends = "smoke"\n[plans."{plan}"]\ndataset = "synthetic_band"\n'
    )
    with pytest.raises(rn.errors.InvalidParameterError, match="must be a name for a folder"):
        load_profile(str(path))


# --- pages: classes, columns, cells, groups and titles are tried in tests/report


def test_names_notes_failures_and_fingerprints_are_text_in_a_page(wrapped) -> None:
    evil, shown = "<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"
    band = SyntheticBand(random_state=0).sample(300)
    found = rn.compare(
        *(band.X, band.y, 0.4),
        methods={evil: rn.CertifiedThreshold(GaussianNB())},
        resamples=20,
        verbose=False,
    )
    results = {name: replace(result, notes=(evil,)) for name, result in found.results.items()}
    comparison = replace(found, results=results, failures={f"{evil}2": evil})
    model = rn.load(wrapped)
    model.fingerprint_ = evil
    for page, times in ((comparison_page(comparison), 4), (model_page(model), 1)):
        assert evil not in page
        assert page.count(shown) >= times

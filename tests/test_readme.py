"""The README's Python blocks run, one after the other, as a reader would paste them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()


@pytest.mark.filterwarnings("ignore::reliablenet.ConstraintWarning")
def test_the_python_blocks_run(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(block, names)  # noqa: S102
        if "rn.compare(X, y" in block:
            assert len(names["comparison"].results) == 9
    assert capsys.readouterr().out.startswith("True - ")
    assert names["certificate"].certified
    assert names["comparison"].best().certificate.certified

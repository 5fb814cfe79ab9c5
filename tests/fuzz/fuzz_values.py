"""Values that a user may hand over: good ones in any dress, spoiled ones, and ones that fit nowhere."""

from __future__ import annotations

import datetime
import decimal
import fractions
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
import torch

Random = np.random.RandomState


def pick(random: Random, items: Any) -> Any:
    """Return one of some items."""
    return items[random.randint(len(items))]


def array_of(n: int, random: Random) -> np.ndarray:
    return random.standard_normal(n)


# Each is made anew, so that no case can spoil it for the next.
STRANGE = {
    "None": lambda r: None,
    "bool": lambda r: bool(r.randint(2)),
    "small number": lambda r: pick(r, [0, 1, -1, 2, 2.5, -0.5, 0.5, 1.0, 100, 5e-324]),
    "nan": lambda r: float("nan"),
    "infinity": lambda r: pick(r, [float("inf"), -float("inf")]),
    "huge number": lambda r: pick(r, [10**30, -(10**30), 1e308, 2**63, 2**64]),
    "numpy scalar": lambda r: pick(
        r, [np.float16(0.3), np.float32(0.3), np.int8(1), np.bool_(1), np.uint64(2**64 - 1)]
    ),
    "decimal": lambda r: pick(r, [decimal.Decimal("0.1"), fractions.Fraction(1, 3)]),
    "complex": lambda r: 1 + 2j,
    "text": lambda r: pick(r, ["", "abc", "0.5", "\x00", "ß" * 50, "certified", b"bytes"]),
    "date": lambda r: pick(
        r,
        [
            datetime.datetime(2026, 1, 1),
            np.datetime64("2026-01-01"),
            pd.Timestamp("2026-01-01", tz="UTC"),
            np.timedelta64(1, "D"),
        ],
    ),
    "missing": lambda r: pick(r, [pd.NA, pd.NaT, np.ma.masked]),
    "empty": lambda r: pick(r, [[], (), {}, np.array([]), np.zeros((0, 2)), np.zeros((2, 0))]),
    "container": lambda r: pick(r, [{"a": 1}, {1, 2}, range(5), iter([1, 2]), [[1], [1, 2]]]),
    "object": lambda r: pick(r, [object(), int, len, Ellipsis, slice(3)]),
    "object array": lambda r: np.array(
        pick(r, [[None, "a", 1], [[1], [2, 3]], [{}, {}], [1.0, "b"]]), dtype=object
    ),
    "text array": lambda r: np.array(["a", "b", "c"][: r.randint(1, 4)]),
    "complex array": lambda r: array_of(4, r) * 1j,
    "bool array": lambda r: r.randint(2, size=r.randint(1, 6)).astype(bool),
    "date array": lambda r: np.array(["2026-01-01", "NaT"], "datetime64[D]"),
    "masked array": lambda r: np.ma.masked_array([0.2, 0.8, 0.5], [False, True, False]),
    "structured array": lambda r: np.zeros(3, [("a", float), ("b", int)]),
    "big integers": lambda r: np.array([2**63, 2**64 - 1], dtype=np.uint64),
    "many axes": lambda r: array_of(8, r).reshape(pick(r, [(2, 2, 2), (8, 1), (1, 8), (4, 2, 1)])),
    "scalar array": lambda r: np.array(0.5),
    "sparse": lambda r: sp.csr_matrix(np.eye(3)),
    "pandas": lambda r: pick(
        r,
        [
            pd.DataFrame({"a": [1.0, None], "b": ["x", "y"]}),
            pd.Series([1, None], dtype="Int64"),
            pd.Series(["a", "b"], dtype="category"),
            pd.Series([True, None], dtype="boolean"),
            pd.Index([1, 2]),
            pd.DataFrame(),
        ],
    ),
    "polars": lambda r: pick(
        r,
        [
            pl.DataFrame({"a": [1.0, None], "b": ["x", "y"]}),
            pl.Series([1, None]),
            pl.DataFrame(),
            pl.LazyFrame({"a": [1]}),
        ],
    ),
    "tensor": lambda r: pick(
        r,
        [
            torch.randn(3, 2, requires_grad=True),
            torch.tensor([[0.3, 0.7]], dtype=torch.float16),
            torch.tensor([True, False]),
            torch.tensor([1j, 2.0]),
            torch.tensor([float("nan"), 1.0]),
            torch.empty(0, 2),
            torch.eye(2).to_sparse(),
            torch.tensor(0.5),
            torch.tensor([0, 1]),
            torch.randn(2, 2, 2),
            torch.tensor([0.5], dtype=torch.bfloat16),
        ],
    ),
}


def strange(random: Random) -> tuple[str, Any]:
    """Return a value that probably fits nowhere, and what kind it is."""
    kind = pick(random, list(STRANGE))
    return kind, STRANGE[kind](random)


def spoil(random: Random, value: Any) -> tuple[str, Any]:
    """Return a good value changed, so that it is perhaps no good any more."""
    tensor = isinstance(value, torch.Tensor)
    if not tensor and not isinstance(value, np.ndarray):
        return strange(random)
    changed = np.array(value.detach().numpy() if tensor else value)
    kind = pick(random, ["entry", "length", "axes", "dtype", "strange", "values", "masked"])
    if kind == "entry" and changed.size and changed.dtype.kind in "fiu":
        entries = [0, 1, -1, 2, 7, 127]
        if changed.dtype.kind == "f":
            entries += [np.nan, np.inf, -np.inf, 1e300, 1e-300, 0.5, 1.0000001]
        with np.errstate(over="ignore"):
            changed.flat[random.randint(changed.size)] = pick(random, entries)
    elif kind == "masked" and not tensor and changed.ndim and changed.size:
        mask = np.zeros(changed.shape, bool)
        mask.flat[random.randint(changed.size)] = True
        return kind, np.ma.masked_array(changed, mask)
    elif kind == "length" and changed.ndim:
        changed = changed[: random.randint(len(changed) + 1)]
    elif kind == "axes":
        axes = [changed[None], changed[..., None], changed.ravel(), changed.T]
        changed = pick(random, [*axes, changed[..., :1]] if changed.ndim else axes)
    elif kind == "dtype" and changed.dtype.kind in "fiu":
        dtypes = [np.float16, np.float32, np.int8, bool, complex, str, object, np.longdouble]
        if not tensor:
            with np.errstate(all="ignore"):
                return kind, changed.astype(pick(random, dtypes))
        kinds = [torch.float16, torch.float64, torch.int8, torch.bool, torch.complex64]
        return kind, value.detach().to(pick(random, kinds))
    elif kind == "values" and changed.dtype.kind in "fiu":
        changed = changed * pick(random, [-1, 0, 1000]) + pick(random, [0, 1])
    else:
        return strange(random)
    return kind, torch.from_numpy(np.ascontiguousarray(changed)) if tensor else changed


def dress(random: Random, value: Any) -> tuple[str, Any]:
    """Return the same numbers or labels in another container or layout."""
    if isinstance(value, torch.Tensor):
        return dress_tensor(random, value)
    if not isinstance(value, np.ndarray) or not value.ndim:
        return "plain", value
    numbers = value.dtype.kind in "fiu"
    frame = value.ndim == 2
    kind = pick(
        random,
        ["plain", "list", "Fortran", "strided", "backwards", "read-only", "pandas", "polars"]
        + ["tensor", "tensor with grad", "byte order", "unmasked", "wide"] * numbers,
    )
    if kind == "list":
        return kind, value.tolist()
    if kind == "Fortran":
        return kind, np.asfortranarray(value)
    if kind == "strided":
        wide = np.repeat(value, 2, axis=0)
        return kind, wide[::2]
    if kind == "backwards":
        return kind, value[::-1].copy()[::-1]
    if kind == "read-only":
        copy = value.copy()
        copy.flags.writeable = False
        return kind, copy
    if kind == "pandas":
        index = random.permutation(len(value)) + 7  # an index that is not the position
        made = pd.DataFrame(value, index=index) if frame else pd.Series(value, index=index)
        return kind, made
    if kind == "polars":
        return kind, pl.DataFrame(value) if frame else pl.Series(value.tolist())
    if kind.startswith("tensor"):
        made = torch.from_numpy(value.copy())
        return kind, made.requires_grad_() if "grad" in kind and value.dtype.kind == "f" else made
    if kind == "byte order":
        return kind, value.astype(value.dtype.newbyteorder(">"))
    if kind == "unmasked":
        return kind, np.ma.masked_array(value, np.zeros(value.shape, bool))
    if kind == "wide":
        return kind, value.astype(np.longdouble if value.dtype.kind == "f" else np.int64)
    return "plain", value


def dress_tensor(random: Random, value: torch.Tensor) -> tuple[str, Any]:
    kind = pick(random, ["plain", "strided", "with grad", "transposed", "parameter", "expanded"])
    if kind == "strided":
        return kind, value.repeat_interleave(2, dim=0)[::2] if value.ndim else value
    if kind == "with grad" and value.is_floating_point():
        return kind, (value.clone().requires_grad_() * 1.0)
    if kind == "transposed" and value.ndim > 1:
        return kind, value.transpose(0, 1).contiguous().transpose(0, 1)
    if kind == "parameter" and value.is_floating_point():
        return kind, torch.nn.Parameter(value.clone())
    return "plain", value

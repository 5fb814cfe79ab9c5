"""Leaks: what one column tells, against a count by hand and on tables whose truth is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from reliablenet.errors import LeakWarning
from reliablenet.tables.leaks import column_leak, tells_number
from reliablenet.tables.target import take_target


def late(n: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return (rng.random(n) < 0.3).astype(int), rng


@pytest.mark.parametrize("wrong", [0.0, 0.01, 0.1, 0.2])
def test_a_copy_with_slips_scores_what_it_is_worth(wrong) -> None:
    y, rng = late()
    copy = np.where(rng.random(len(y)) < wrong, 1 - y, y)
    for values in (pd.Series(copy), pd.Series(np.array(["no", "yes"])[copy])):
        leak = column_leak(values, y)
        assert leak.right == pytest.approx((copy == y).mean(), abs=1e-12)
        assert leak.guessed == pytest.approx((y == 0).mean())
        assert leak.nearly_decides == (wrong <= 0.01)


def test_numbers_are_cut_and_gaps_are_a_kind() -> None:
    y, rng = late()
    days = np.where(y == 1, rng.uniform(30, 90, len(y)), rng.uniform(0, 30, len(y)))
    assert column_leak(pd.Series(days), y).right > 0.98
    paid = pd.Series(np.where(y == 1, np.nan, rng.uniform(0, 1, len(y))))  # a date only if paid
    assert column_leak(paid, y).right > 0.99


def test_a_name_of_each_row_and_noise_tell_nothing() -> None:
    y, rng = late()
    for values in ([f"row {i}" for i in range(len(y))], rng.normal(size=len(y))):
        leak = column_leak(pd.Series(values), y)
        assert leak.right <= leak.guessed + 0.01


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
def test_no_column_of_a_real_table_is_suspected(load, recwarn) -> None:
    table = load(as_frame=True).frame
    take_target(table, "target")
    assert [w for w in recwarn if w.category is LeakWarning] == []


def test_the_column_is_named_with_its_score() -> None:
    y, rng = late()
    fee = np.where(rng.random(len(y)) < 0.005, 1 - y, y) * rng.uniform(20, 60, len(y))
    table = pd.DataFrame({"age": rng.normal(size=len(y)), "fee": fee, "y": y})
    with pytest.warns(
        LeakWarning, match=r"'fee' nearly gives.*tells 99\.\d % of the labels"
    ) as said:
        take_target(table, "y")
    assert [str(w.message.column) for w in said] == ["fee"]


def test_a_number_in_another_unit_is_a_leak() -> None:
    _, rng = late()
    price = rng.lognormal(size=500)
    table = pd.DataFrame({"size": price + rng.normal(size=500), "cents": 100 * price, "p": price})
    with pytest.warns(
        LeakWarning, match="'cents' gives the target away: it is 'p' in another unit"
    ):
        take_target(table, "p", numbers=True)
    assert not tells_number(pd.Series(["a"] * 500), price)
    assert not tells_number(pd.Series(np.ones(500)), price)
    assert not tells_number(pd.Series(100 * price[:50]), price[:50])
    assert not tells_number(pd.Series(price * 1e304), price)

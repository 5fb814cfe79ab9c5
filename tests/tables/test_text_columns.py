"""Columns of text in an encoder: found, asked for, left out; gaps marked; kept in arrays that are checked."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from made_up_texts import make_texts
from reliablenet.errors import ColumnWarning, InvalidDataError, InvalidParameterError
from reliablenet.tables import PiecewiseEncoder, TabularEncoder
from reliablenet.tables.text_columns import NOTHING_SHARED, TextColumns

RNG = np.random.default_rng(0)
N = 300
SAID = make_texts(N, RNG)
TABLE = pd.DataFrame({"age": RNG.integers(20, 60, N), "said": SAID})
encoders = pytest.mark.parametrize("encoder", [TabularEncoder, PiecewiseEncoder])


@encoders
def test_free_text_is_found_and_becomes_numbers(encoder) -> None:
    found = encoder().fit(TABLE)
    assert (found.numbers_, found.texts_, found.dropped_) == (["age"], ["said"], [])
    width = found.text_columns_.width
    assert width == N // 8
    expected = found.text_columns_.readers[0].transform(SAID)
    assert np.array_equal(found.compact(TABLE)[:, -width:], expected)
    assert len(found.bins_) == found.compact(TABLE).shape[1]


@encoders
def test_a_row_has_the_same_bits_in_any_company_and_type(encoder) -> None:
    found = encoder().fit(TABLE)
    whole = found.transform(TABLE)
    alone = np.concatenate([found.transform(TABLE.iloc[[row]]) for row in range(20)])
    assert np.array_equal(alone, whole[:20])
    for kind in ("category", "string", object):
        assert np.array_equal(found.transform(TABLE.astype({"said": kind})), whole)


@encoders
def test_missing_and_blank_texts_are_marked_if_training_had_some(encoder) -> None:
    gaps = TABLE.assign(said=[None, " ", "", *SAID[3:]])
    found = encoder().fit(gaps)
    assert found.text_columns_.gaps == [True]
    last = found.compact(gaps)[:, -1]
    assert last.tolist() == [1.0] * 3 + [0.0] * (N - 3)
    complete = encoder().fit(TABLE)
    assert complete.text_columns_.gaps == [False]
    assert not complete.compact(gaps)[:3, -complete.text_columns_.width :].any()


def test_text_is_left_out_if_not_asked_for_and_read_if_it_is() -> None:
    with pytest.warns(ColumnWarning, match=r"'said' is left out: it is text with .* values"):
        without = TabularEncoder(text=None).fit(TABLE)
    assert (without.texts_, without.dropped_) == ([], ["said"])
    codes = TABLE.assign(said=[f"{a}-{b}" for a, b in RNG.integers(100, 110, (N, 2))])
    assert TabularEncoder().fit(codes).categories_ == ["said"]
    for named in ("said", ["said"]):
        assert TabularEncoder(text=named).fit(codes).texts_ == ["said"]
    names = TABLE.assign(said=[f"Ada{n} King{n}" for n in range(N)])
    with pytest.warns(ColumnWarning, match="name it as text"):
        assert TabularEncoder().fit(names).dropped_ == ["said"]


def test_texts_without_a_word_in_common_are_left_out_with_the_reason() -> None:
    texts = TABLE.assign(said=["".join(RNG.choice(list("bcdfghjkmnpqrstvwxz"), 60)) for _ in SAID])
    few = TABLE.head(2).assign(said=["abc def ghi", "jkl mno pqr"])
    with pytest.warns(ColumnWarning, match=NOTHING_SHARED):
        assert TabularEncoder(text="said").fit(few).dropped_ == ["said"]
    assert TabularEncoder(text="said").fit(texts).texts_ == ["said"]  # in pieces


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"text": ["seid"]}, InvalidDataError, "no column 'seid'. Did you mean 'said'"),
        ({"text": ["said"], "dates": ["said"]}, InvalidParameterError, "`dates` of Tabular"),
        ({"text": True}, InvalidParameterError, '`text` of TabularEncoder must be "auto", None'),
        ({"embedding": "minilm"}, InvalidParameterError, "`embedding` of TabularEncoder must be a"),
    ],
)
def test_bad_settings_are_named(settings, error, message) -> None:
    with pytest.raises(error, match=message):
        TabularEncoder(**settings).fit(TABLE)


@encoders
def test_an_encoder_comes_back_from_json_and_arrays(encoder) -> None:
    table = TABLE.assign(at=pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.permutation(N), "D"))
    found = encoder().fit(table)
    plain = json.loads(json.dumps(found.to_dict()))
    again = encoder.from_dict(plain, found.to_arrays())
    assert np.array_equal(again.compact(table), found.compact(table))
    with pytest.raises((InvalidDataError, TypeError)):
        encoder.from_dict(plain, {})
    with pytest.raises(InvalidDataError, match="stored text columns are inconsistent"):
        TextColumns.from_dict({"columns": ["said"], "gaps": [0], "kinds": ["tf-idf"]}, {}, None)


@encoders
def test_an_encoder_of_numbers_alone_is_stored_as_before(encoder) -> None:
    found = encoder().fit(TABLE[["age"]])
    assert set(found.to_dict()) == set(encoder._learned)
    assert found.to_arrays() == {}


def vowels(texts: list[str]) -> np.ndarray:
    """Embed texts by their vowels."""
    return np.array([[text.count(letter) for letter in "aeiou"] for text in texts], np.float32)


def test_an_embedding_of_the_users_own_reads_all_columns_of_text() -> None:
    found = PiecewiseEncoder(embedding=vowels).fit(TABLE.assign(more=SAID[::-1]))
    assert found.text_columns_.embedded
    assert found.text_columns_.width == 10
    plain = json.loads(json.dumps(found.to_dict()))
    again = PiecewiseEncoder.from_dict(plain, found.to_arrays(), vowels)
    assert again.embedding is vowels

"""Text as numbers: TF-IDF as scikit-learn weighs it, the same bits in any company, and safe from a file."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from threadpoolctl import threadpool_limits

from made_up_texts import make_texts
from reliablenet.errors import InvalidDataError, ModelFileError
from reliablenet.tables.free_text import CLOSE, PROBES, EmbeddedText, TextFeatures
from reliablenet.tables.ngrams import CELLS, WORD_CELLS, count_ngrams

RNG = np.random.default_rng(0)
TEXTS = make_texts(200, RNG)
FEATURES = TextFeatures.fit(TEXTS, dimensions=8)
assert FEATURES is not None


def test_weights_are_those_of_scikit_learn() -> None:
    counts = count_ngrams(TEXTS)
    expected = np.zeros((len(TEXTS), CELLS))
    for half in (slice(0, WORD_CELLS), slice(WORD_CELLS, CELLS)):
        transformer = TfidfTransformer(sublinear_tf=True).fit(counts[:, half])
        expected[:, half] = transformer.transform(counts[:, half]).toarray()
    found = FEATURES.weigh(counts).toarray()
    np.testing.assert_allclose(found, expected[:, FEATURES.cells], atol=1e-6)
    assert (found**2).sum() <= 2 * len(TEXTS) + 1e-3


def test_directions_are_those_of_a_singular_value_decomposition() -> None:
    matrix = FEATURES.weigh(count_ngrams(TEXTS)).toarray()
    exact = np.linalg.svd(matrix, full_matrices=False)
    kept = (exact[1][:8] ** 2).sum()
    basis = np.linalg.qr(FEATURES.directions.astype(np.float64))[0]
    assert ((matrix @ basis) ** 2).sum() > 0.97 * kept
    placed = FEATURES.transform(TEXTS)
    np.testing.assert_allclose(placed.mean(0), 0.0, atol=2e-3)
    assert np.sqrt((placed**2).mean()) == pytest.approx(1.0, abs=2e-3)


def test_a_text_has_the_same_bits_in_any_company_and_on_any_number_of_threads() -> None:
    whole = FEATURES.transform(TEXTS)
    for size in (1, 7):
        parts = [FEATURES.transform(TEXTS[i : i + size]) for i in range(0, len(TEXTS), size)]
        assert np.array_equal(np.concatenate(parts), whole)
    for threads in (1, 4):
        with threadpool_limits(threads):
            again = TextFeatures.fit(TEXTS, dimensions=8)
            assert np.array_equal(again.transform(TEXTS), whole)


def test_no_text_is_the_middle_and_unknown_words_make_a_text_short() -> None:
    found = FEATURES.transform([None, "", "?!", "card lost", "card lost zzyzx qwrty vbnml"])
    assert not found[:3].any()
    short, long = (np.linalg.norm(row + FEATURES.middle) for row in found[[4, 3]])
    assert short < 0.9 * long


def test_texts_that_share_nothing_give_nothing() -> None:
    assert TextFeatures.fit(["abcde", "fghij", "klmno"]) is None
    assert TextFeatures.fit(["same words here"] * 9) is None
    assert TextFeatures.fit([None, ""]) is None


def test_few_texts_give_few_dimensions() -> None:
    assert TextFeatures.fit(TEXTS).width == len(TEXTS) // 8
    assert TextFeatures.fit(TEXTS[:10]).width == 2


def test_arrays_are_checked_when_they_come_back() -> None:
    arrays = FEATURES.to_arrays()
    again = TextFeatures.from_arrays(arrays)
    assert np.array_equal(again.transform(TEXTS), FEATURES.transform(TEXTS))
    broken = [
        arrays | {"cells": arrays["cells"] + CELLS},
        arrays | {"cells": arrays["cells"][::-1]},
        arrays | {"weights": arrays["weights"][1:]},
        arrays | {"weights": -arrays["weights"]},
        arrays | {"directions": arrays["directions"] * np.float16(np.nan)},
        arrays | {"directions": arrays["directions"].astype(np.float64)},
        arrays | {"middle": arrays["middle"][1:]},
        arrays | {"rarest": np.array([0.0])},
    ]
    for one in broken:
        with pytest.raises(InvalidDataError, match="do not fit together"):
            TextFeatures.from_arrays(one)


def letters(texts: list[str]) -> np.ndarray:
    """Embed texts by how often they have some letters."""
    return np.array([[text.count(letter) for letter in "aeiou"] for text in texts], np.float32)


def test_an_embedding_is_put_on_one_scale_and_recognised() -> None:
    features = EmbeddedText.fit(TEXTS, letters)
    placed = features.transform([*TEXTS, None, " "])
    assert not placed[-2:].any()
    assert np.sqrt((placed[:-2] ** 2).mean()) == pytest.approx(1.0, abs=1e-4)
    again = EmbeddedText.from_arrays(features.to_arrays(), letters)
    assert np.array_equal(again.transform(TEXTS), placed[:-2])
    with pytest.raises(ModelFileError, match=r"a file cannot hold code.*load\(path, embedding="):
        EmbeddedText.from_arrays(features.to_arrays())
    for other in (lambda texts: letters(texts) + 1, lambda texts: letters(texts)[:, :3]):
        with pytest.raises(ModelFileError, match="not the one that the model was fitted with"):
            EmbeddedText.from_arrays(features.to_arrays(), other)
    near = EmbeddedText.from_arrays(features.to_arrays(), lambda t: letters(t) * (1 + CLOSE / 2))
    assert near.probes.shape == (len(PROBES), 5)


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        (lambda texts: letters(texts)[:-1], "finite numbers of shape"),
        (lambda texts: letters(texts)[0], "finite numbers of shape"),
        (lambda texts: letters(texts) / 0.0, "finite numbers of shape"),
        (lambda texts: [["a"] for _ in texts], "finite numbers of shape"),
        (lambda texts: letters(texts) + len(texts), "the same numbers alone and with other texts"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_bad_embedding_is_refused(embedding, message) -> None:
    with pytest.raises(InvalidDataError, match=message):
        EmbeddedText.fit(TEXTS, embedding)

"""Whether rows come from the certified source: levels that hold, shifts that are seen, streams in any batches."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.monitor.drift import holm, p_value
from reliablenet.monitor.martingale import SourceMonitor, payoffs, rarity_ranks
from reliablenet.tables.source import Reference, Source


def rows(n, seed, shift=0.0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4)) + shift
    X[:, 3] = np.round(X[:, 3])
    y = (X[:, 0] + random.normal(size=n) > shift).astype(int)
    return X, y


@pytest.fixture(scope="module")
def model():
    fit = rn.CertifiedThreshold(LogisticRegression(), alpha=0.2, random_state=0)
    return fit.fit(*rows(1500, 0))


def test_a_shift_is_seen_and_named(model):
    assert not rn.source_test(model, rows(300, 1)[0]).changed
    found = rn.source_test(model, rows(100, 2)[0] + [0, 0, 1.5, 0])
    assert found.changed
    assert "2" in found.where
    assert found.parts[0].name in ("2", "rarity")
    assert str(found).startswith("The source changed, in ")
    assert "promise" not in str(found)
    assert found.to_dict()["rows"] == 100


def test_the_same_rows_give_the_same_answer(model):
    new = rows(80, 3)[0]
    assert rn.source_test(model, new) == rn.source_test(model, new)


def test_an_old_file_compares_scores_alone(model):
    old = copy.copy(model)
    old.source_ = None
    found = rn.source_test(old, 5 * rows(200, 4)[0])
    assert {part.name for part in found.parts} == {"score", "prediction"}
    assert found.changed
    assert SourceMonitor(old).update(5 * rows(200, 4)[0]).alarm


@pytest.mark.parametrize("ordered", [True, False])
def test_p_values_are_those_of_all_divisions(ordered):
    random = np.random.default_rng(0)
    level, draws = 0.1, 400
    small = 0
    for _ in range(draws):
        old, new = random.multinomial(60, [0.5, 0.3, 0.2]), random.multinomial(30, [0.5, 0.3, 0.2])
        small += p_value(old, new, ordered=ordered, least=level, random=random) <= level
    assert stats.binom.sf(small - 1, draws, level) > 1e-4
    assert stats.binom.cdf(small, draws, level) > 1e-4  # nor is it far below


def test_p_values_against_fisher():
    random = np.random.default_rng(1)
    old, new = np.array([40, 20]), np.array([8, 16])
    exact = stats.fisher_exact([old, new]).pvalue
    found = p_value(old, new, ordered=False, least=1e-3, random=random)
    assert found == pytest.approx(exact, rel=0.35)
    assert p_value([9, 0], [4, 0], ordered=True, least=0.01, random=random) == 1.0


def test_holm_against_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    values = [0.001, 0.2, 0.03, 0.012, 0.9]
    ours = holm(values, np.full(5, 0.2))
    assert ours == pytest.approx(multitest.multipletests(values, method="holm")[1])


def test_groups_count_once():
    X, y = rows(900, 5)
    people = np.repeat(np.arange(300), 3)
    model = rn.CertifiedThreshold(LogisticRegression(), alpha=0.2, random_state=0)
    model.fit(X, y, groups=people)
    with pytest.raises(InvalidParameterError, match="`groups` of source_test must name the group"):
        rn.source_test(model, X)
    assert rn.source_test(model, X + 2.0, groups=people).rows == 300
    with pytest.raises(InvalidDataError, match="counts groups"):
        SourceMonitor(model)


@pytest.mark.parametrize("level", [0.0, 1.0, 5, "x"])
def test_levels_are_checked(model, level):
    with pytest.raises(InvalidParameterError, match="`level`"):
        rn.source_test(model, rows(10, 0)[0], level=level)
    with pytest.raises(InvalidParameterError, match="`level`"):
        SourceMonitor(model, level)


def test_a_stream_raises_the_alarm_after_the_change_and_keeps_it(model):
    watch = SourceMonitor(model).update(rows(200, 6)[0])
    assert not watch.alarm
    watch.update(rows(150, 7, shift=1.0)[0])
    assert 200 < watch.alarm_row <= 350
    row = watch.alarm_row
    assert watch.update(rows(50, 8)[0]).alarm_row == row


def test_batches_and_json_do_not_matter(model):
    X = rows(90, 9, shift=0.3)[0]
    whole, parts = SourceMonitor(model).update(X), SourceMonitor(model)
    for start in range(0, 90, 7):
        parts.update(X[start : start + 7])
        parts = SourceMonitor.from_json(parts.to_json(), model)
    assert parts.e_value == whole.e_value
    assert parts.to_json() == whole.to_json()
    with pytest.raises(InvalidDataError, match="not one of a SourceMonitor"):
        SourceMonitor.from_json(whole.to_json().replace("rarity", "x"), model)


def test_every_bet_is_fair():
    fine = (np.arange(400_000) + 0.5) / 400_000
    assert payoffs(fine).mean(axis=0) == pytest.approx(1.0, abs=0.02)
    assert (payoffs(fine) >= 0).all()


def test_streams_of_the_same_source_keep_the_level(model):
    level, streams, alarms = 0.2, 120, 0
    for seed in range(streams):
        held, new = rows(60, [10, seed])[0], rows(60, [11, seed])[0]
        fresh = copy.copy(model)
        fresh.evidence_ = SimpleNamespace(score=model.acceptance_score(held))
        fresh.source_ = Source(None, None)
        alarms += SourceMonitor(fresh, level, seed).update(new).alarm
    assert stats.binom.sf(alarms - 1, streams, level) > 1e-4


def test_rare_categories_rank_high():
    assert rarity_ranks((5, 100, 20), ordered=False).tolist() == [2, 0, 1]
    assert rarity_ranks((5, 100, 20), ordered=True).tolist() == [0, 1, 2]


def test_forged_counts_are_refused(model):
    reference = model.source_.reference
    with pytest.raises(InvalidDataError, match="contradict each other"):
        Reference(reference.counts, (1,) * 128)
    with pytest.raises(InvalidDataError, match="do not fit"):
        Source(model.profile_, Reference(reference.counts[1:], reference.surprise))

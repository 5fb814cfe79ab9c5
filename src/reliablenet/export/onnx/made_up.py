"""Rows made up from what an encoder knows, on which a graph is tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.export.onnx.dates import durations
from reliablenet.export.parts import Parts
from reliablenet.tables.date_columns import DateColumns
from reliablenet.tables.dates import ELAPSED
from reliablenet.tables.piecewise import PiecewiseEncoder

MADE_UP = 2000
UNSEEN = "a text that no row of training had"
DATES = (
    *("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S.%f", "%Y/%m/%d %H:%M", "%m/%d/%Y", "%d.%m.%y", "%Y%m%d"),
    *("%d %b %Y", "%B %d, %Y %I:%M %p", "%Y-%m-%d %H:%M:%S+05:30", " %Y-%m-%d", "in %Y", ""),
)
DAYS_EACH_SIDE = 400  # beyond what training showed
LETTERS = "etaoinshrdlcumwfgypbvkETAOI0123456789"
OTHERS = (*"éüñßÅçøЖдяωΔעبحकข日本한가ÀＡｋ²½™ﬁ…—'!?.,;:()€%&#@/\n\t\u00a0", "e\u0301")


def make_up_rows(
    parts: Parts, columns: Sequence[Any] | None, grouping: Sequence[str] = (), seed: int = 0
) -> tuple[Any, dict[str, NDArray[Any]] | None]:
    """Return rows that meet every level, edge and gap of an encoder, and the groups of these rows.

    Parameters
    ----------
    parts : Parts
    columns : sequence or None
        Of the frames that the model takes; None if it knows no names, as of arrays, which have no gaps.
    grouping : sequence of str
        Columns whose groups must be known to decide, features or not.
    seed : int
    """
    random = np.random.default_rng(seed)
    encoder = parts.encoder
    named = columns is not None or bool(encoder.categories_ or encoder.texts_ or encoder.dates_)
    table = pd.DataFrame(index=range(MADE_UP), columns=encoder.columns_, dtype=np.float64)
    for place, column in enumerate(encoder.numbers_):
        table[column] = _numbers(encoder, place, random, gaps=named)
    for column, levels in zip(encoder.categories_, encoder.levels_, strict=True):
        table[column] = random.choice(np.array([*levels, UNSEEN, None], object), MADE_UP)
    for column in encoder.dates_:
        table[column] = _dates(encoder.date_columns_, column, random)
    for column in encoder.texts_:
        table[column] = [_text(random) for _ in range(MADE_UP)]
    groups: dict[str, NDArray[Any]] = {}
    for name in grouping:
        known = parts.rule.values_of(name) if parts.rule else []
        drawn = random.choice(np.array([*known, None], object), MADE_UP)
        if name in encoder.numbers_:  # both what the encoder and what the rule knows
            own = random.random(MADE_UP) < 0.5
            table[name] = table[name].where(own, pd.Series(drawn).astype(np.float64))
        elif name in encoder.dropped_:
            table[name] = drawn
        groups[name] = table[name].to_numpy() if name in table else drawn
    if not named:
        return table.fillna(0.0).to_numpy(np.float64), groups or None
    return table if columns is None else table.reindex(columns=list(columns)), groups or None


def _numbers(encoder: Any, place: int, random: Any, *, gaps: bool) -> NDArray[np.float64]:
    mean, scale = encoder.means_[place], encoder.scales_[place]
    known = [encoder.medians_[place], mean]
    if isinstance(encoder, PiecewiseEncoder):
        known += [*encoder.edges_[place], *encoder.ranges_[place]]
        known += [] if encoder.dominant_[place] is None else [encoder.dominant_[place]]
    if gaps:
        known.append(np.nan)
    drawn = mean + 2.0 * scale * random.standard_normal(MADE_UP)
    exact = random.random(MADE_UP) < 0.5
    found: NDArray[np.float64] = np.where(exact, random.choice(np.array(known), MADE_UP), drawn)
    return found


def _dates(dates: DateColumns, column: Any, random: Any) -> pd.Series[Any]:
    """Return moments in many forms, also before and after those of training, gaps, and what is no date."""
    known = zip(dates.parts, dates.ranges, strict=True)
    ends = [ends for part, ends in known if part == [column, ELAPSED]] or [[0.0, 20_000.0]]
    low, high = ends[0][0] - DAYS_EACH_SIDE, ends[0][1] + DAYS_EACH_SIDE
    drawn = random.uniform(low, high, MADE_UP)
    if column in durations(dates):
        return pd.Series(pd.to_timedelta(drawn, unit="D")).where(random.random(MADE_UP) < 0.9)
    moments = pd.Timestamp(0) + pd.to_timedelta(drawn, unit="D")
    forms = random.choice(np.array([*DATES, None], object), MADE_UP)
    texts = [form and moment.strftime(form) for moment, form in zip(moments, forms, strict=True)]
    return pd.Series(texts, dtype=object)


def _text(random: Any) -> str | None:
    """Return words of letters drawn at random, a few of them foreign; or nothing."""
    if random.random() < 0.05:
        return None
    size = int(random.geometric(0.02)) - 1
    letters = random.choice(list(LETTERS), size)
    marks = random.random(size)
    letters = np.where(marks < 0.05, random.choice(OTHERS, size), letters)
    return "".join(np.where(marks > 0.82, " ", letters))

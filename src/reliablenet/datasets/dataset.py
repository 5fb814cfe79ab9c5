"""`Dataset`: folds of a source domain, and what lies beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._checks import check_count, parameter_error
from reliablenet._listing import listed
from reliablenet._renamed import renamed_parameter
from reliablenet.errors import InvalidDataError
from reliablenet.tables.columns import check_distinct, check_known
from reliablenet.tables.fold_sizes import FoldSizes
from reliablenet.tables.folds import Fold, Folds, cut_folds

Mask = NDArray[np.bool_]
OWNER = "Dataset.from_frame"


class LazyFolds(Mapping[Any, Fold]):
    """Folds that are made when they are asked for, and not kept: images would fill the memory.

    Parameters
    ----------
    makers : mapping of key to function
        Each function returns the same fold whenever it is called.
    """

    def __init__(self, makers: Mapping[Any, Callable[[], Fold]]) -> None:
        self._makers: dict[Any, Callable[[], Fold]] = dict(makers)

    def __getitem__(self, key: Any) -> Fold:
        return self._makers[key]()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __contains__(self, key: object) -> bool:
        return key in self._makers  # without making the fold


@dataclass(frozen=True)
class Dataset:
    """Rows of a source domain in three folds, and rows of other domains to test on.

    Attributes
    ----------
    name : str
    folds : Folds
        Training, selection and certification rows, all of the source domain.
    shifts : mapping of str to Fold
        Shifted domains by name; none of their rows is in a fold.
    groups : mapping of str to Fold
        Subgroups to look into, in their natural order.
    sweeps : mapping of float to Fold
        Rows by severity of the shift.
    test : Fold or None
        A further set of rows of the source domain, where the source provides one.
    info : mapping of str to object
        What a reader of a result must know: files and rows used, settings of a generator.
    """

    name: str
    folds: Folds
    shifts: Mapping[str, Fold] = field(default_factory=dict)
    groups: Mapping[str, Fold] = field(default_factory=dict)
    sweeps: Mapping[float, Fold] = field(default_factory=dict)
    test: Fold | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    @renamed_parameter("seed", "random_state")
    def from_frame(
        cls,
        frame: pd.DataFrame,
        target: str,
        *,
        shift: str | Mapping[str, str] | None = None,
        groups: str | Mapping[str, str] | None = None,
        drop: str | Sequence[str] = (),
        random_state: int = 0,
        fold_sizes: FoldSizes = "auto",
        alpha: float = 0.05,
        rho: float = 0.05,
        name: str = "frame",
    ) -> Dataset:
        """Make a dataset from a table of your own.

        Parameters
        ----------
        frame : DataFrame
        target : str
            The column to predict; it may hold labels of any kind, but no missing values.
        shift : str or mapping of name to str, optional
            Which rows are the shifted domain: a query as for ``DataFrame.query``, or the name of a
            boolean column, which is then no predictor. Several domains by name; they may overlap.
            Rows of a shift are in no fold. A row whose value is missing is not in the shift.
        groups : str or mapping of name to str, optional
            Subgroups to look into: a column, one group for each of its values, sorted or in the
            order of the categories; or queries (or boolean columns) by name. They are taken from
            the shifted rows if there is a shift, otherwise from the certification fold. The columns
            stay predictors unless they are in ``drop``.
        drop : str or sequence of str
            Columns that are no predictors, such as a row number; queries may still use them.
        random_state : int
            Decides the folds.
        fold_sizes, alpha, rho
            As for `fold_counts`.
        name : str

        Returns
        -------
        Dataset

        Examples
        --------
        >>> import pandas as pd
        >>> from reliablenet.datasets import Dataset
        >>> table = pd.DataFrame({"age": range(20, 70), "job": ["a", "b"] * 25})
        >>> table["late"] = table["age"] % 3 == 0
        >>> loans = Dataset.from_frame(table, "late", shift="age < 30", groups="job")
        >>> len(loans.folds.train), len(loans.shifts["age < 30"]), list(loans.groups)
        (18, 10, ['a', 'b'])
        """
        predictors = _check_columns(frame, target, drop)
        check_count("random_state", random_state, OWNER, minimum=0)
        labels = _labels(frame, target)
        asked = {shift: shift} if isinstance(shift, str) else dict(shift or {})
        shifted = {key: _mask(frame, query, "shift") for key, query in asked.items()}
        source = ~_union(shifted, len(frame))
        X = frame[[column for column in predictors if column not in asked.values()]]
        if X.shape[1] == 0:
            raise InvalidDataError(
                f"{OWNER} needs a column to predict {target!r} from; got none besides the target, "
                "`drop` and `shift`."
            )

        def take(rows: NDArray[np.intp]) -> Fold:
            return Fold(X.iloc[rows], labels[rows])

        sizes: dict[str, Any] = {"fold_sizes": fold_sizes, "alpha": alpha, "rho": rho}
        rows = np.flatnonzero(source)
        cut = cut_folds(rows, labels[rows], **sizes, random_state=random_state)
        looked_into = ~source
        if not shifted:
            looked_into[cut.certification.X] = True
        found = _group_masks(frame, groups, looked_into)
        return cls(
            name=name,
            folds=Folds(take(cut.train.X), take(cut.selection.X), take(cut.certification.X)),
            shifts={key: take(np.flatnonzero(mask)) for key, mask in shifted.items()},
            groups={key: take(np.flatnonzero(mask)) for key, mask in found.items()},
            info={"rows": len(frame), "source_rows": len(rows), "target": target},
        )


def _check_columns(frame: Any, target: str, drop: str | Sequence[str]) -> list[Any]:
    """Return the columns that are neither target nor dropped."""
    if not isinstance(frame, pd.DataFrame):
        raise InvalidDataError(
            f"`frame` of {OWNER} must be a pandas DataFrame; got {type(frame).__name__}. "
            "Read a file with pandas.read_csv first."
        )
    check_distinct(frame.columns.tolist(), "The frame")
    dropped = [drop] if isinstance(drop, str) else list(drop)
    for parameter, column in [("target", target), *(("drop", column) for column in dropped)]:
        if column not in frame.columns:
            raise parameter_error(parameter, OWNER, "name a column", column, _columns_of(frame))
    return [column for column in frame.columns if column not in (target, *dropped)]


def _columns_of(frame: pd.DataFrame) -> str:
    return f"The frame has {listed(frame.columns)}."


def _labels(frame: pd.DataFrame, target: str) -> NDArray[Any]:
    check_known(
        frame[target],
        f"The target {target!r}",
        f"Drop those rows with frame.dropna(subset=[{target!r}]).",
    )
    return frame[target].to_numpy()


def _mask(frame: pd.DataFrame, query: Any, parameter: str) -> Mask:
    """Return the rows that a query or a boolean column marks; a missing value marks none."""
    expected = "be a query such as 'age < 30' or the name of a boolean column"
    try:
        named = query in frame.columns
        marked = frame[query] if named else frame.eval(query, engine="python")
    except Exception as error:  # pandas raises whatever the text of the query leads to
        hint = f"pandas says: {error}. Write names with spaces in backticks."
        raise parameter_error(parameter, OWNER, expected, query, hint) from error
    if not isinstance(marked, pd.Series) or not pd.api.types.is_bool_dtype(marked):
        kind = marked.dtype if isinstance(marked, pd.Series) else type(marked).__name__
        hint = f"It gives {kind}, not true or false for each row."
        raise parameter_error(parameter, OWNER, expected, query, hint)
    return marked.fillna(False).to_numpy(dtype=bool)


def _union(shifted: Mapping[str, Mask], n: int) -> Mask:
    """Return the rows of any shift; each must take some, and all together leave some."""
    union = np.zeros(n, bool)
    for name, mask in shifted.items():
        union |= mask
        if not mask.any() or union.all():
            expected = f"take some of the {n} rows and leave some for the folds"
            hint = f"It takes {'all that were left' if mask.any() else 'none'}."
            raise parameter_error("shift", OWNER, expected, name, hint)
    return union


def _group_masks(frame: pd.DataFrame, groups: Any, within: Mask) -> dict[str, Mask]:
    if groups is None:
        return {}
    if isinstance(groups, Mapping):
        masks = {str(key): _mask(frame, query, "groups") for key, query in groups.items()}
    elif groups in frame.columns:
        column = frame[groups]
        texts = column.astype(str).where(column.notna()).to_numpy()
        masks = {name: texts == name for name in _values_in_order(column[within])}
    else:
        expected = "be a column of the frame or a mapping of names to queries"
        raise parameter_error("groups", OWNER, expected, groups, _columns_of(frame))
    masks = {name: mask & within for name, mask in masks.items()}
    empty = [name for name, mask in masks.items() if not mask.any()]
    if empty or not masks:
        expected = f"each take some of the {int(within.sum())} shifted (or certification) rows"
        raise parameter_error("groups", OWNER, expected, empty or groups)
    return masks


def _values_in_order(column: pd.Series[Any]) -> list[str]:
    present = column.dropna().unique()
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [str(value) for value in column.cat.categories if value in present]
    try:
        return [str(value) for value in sorted(present)]
    except TypeError:  # values of several types have no order but that of their text
        return sorted(str(value) for value in present)

"""`Dataset`: folds of a source domain, and what lies beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reliablenet.data.folds import Fold, Folds


class LazyFolds(Mapping[Any, Fold]):
    """Folds that are made when they are asked for, and not kept: images would fill the memory.

    Parameters
    ----------
    makers : mapping of key to function
        Each function returns the same fold whenever it is called.
    """

    def __init__(self, makers: Mapping[Any, Callable[[], Fold]]) -> None:
        self._makers = dict(makers)

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

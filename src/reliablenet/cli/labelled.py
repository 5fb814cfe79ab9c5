"""A table to learn from, as the options of a command name its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reliablenet.cli import options
from reliablenet.tables.columns import find_columns
from reliablenet.tables.files import column_names, local_file, read_table
from reliablenet.tables.target import take_target

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True)
class LabelledTable:
    """A table with a target.

    Attributes
    ----------
    frame : DataFrame
    name : str
        That of the file.
    target : str
    group : str
        Column that says whose row each is; "" if rows are their own.
    by : tuple of str
        Columns whose values make the groups of a promise.
    drop : tuple of str
        Columns that are no features.
    weight : str
        Column that says how much each row counts in training; "" if all count alike.
    text, date : tuple of str
        Columns to read as free text and as dates.
    """

    frame: pd.DataFrame
    name: str
    target: str
    group: str
    by: tuple[str, ...]
    drop: tuple[str, ...]
    weight: str = ""
    text: tuple[str, ...] = ()
    date: tuple[str, ...] = ()

    def take(self, *, numbers: bool = False) -> tuple[pd.DataFrame, NDArray[Any]]:
        """Return features and labels, or the numbers to predict."""
        idle = [*self.drop, *filter(None, [self.group, self.weight])]
        return take_target(self.frame, self.target, idle, name=self.name, numbers=numbers)

    @property
    def groups(self) -> pd.Series[Any] | None:
        """The group of each row, if rows belong together."""
        return self.frame[self.group] if self.group else None

    @property
    def weights(self) -> dict[str, pd.Series[Any]]:
        """How much each row counts, as arguments of `fit`."""
        return {"sample_weight": self.frame[self.weight]} if self.weight else {}


def read_labelled(
    data: str,
    target: str,
    *,
    group: str = "",
    by: str = "",
    drop: str = "",
    weight: str = "",
    categorical: str = "",
    text: str = "",
    date: str = "",
    header: bool = True,
) -> LabelledTable:
    """Read a table and find the columns that are meant, whatever the case they were typed in."""
    with local_file(data, header=header) as file:
        present = column_names(file)
        kinds = [
            find_columns(options.names(named), present, file.name)
            for named in (categorical, text, date)
        ]
        frame = read_table(file, text=[name for names in kinds for name in names])
        present = frame.columns.tolist()  # of JSON lines, later ones may have more fields
        asked = {"target": target, "group": group, "weight": weight}
        found = iter(find_columns(list(filter(None, asked.values())), present, file.name))
        meant = {name: next(found) if given else "" for name, given in asked.items()}
        return LabelledTable(
            frame,
            file.name,
            **meant,
            by=tuple(find_columns(options.names(by), present, file.name)),
            drop=tuple(find_columns(options.names(drop), present, file.name)),
            text=tuple(kinds[1]),
            date=tuple(kinds[2]),
        )

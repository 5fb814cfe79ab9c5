"""`Table`: what a table of results looks like as Markdown, CSV and LaTeX."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Table:
    """A table of text cells under column titles, for people; ``numbers`` holds what it is made of."""

    caption: str
    cells: pd.DataFrame
    numbers: pd.DataFrame

    def markdown(self) -> str:
        """Return the table in Markdown."""
        lines = [
            f"**{self.caption}**\n",
            "| " + " | ".join(self.cells.columns) + " |",
            "|" + " --- |" * len(self.cells.columns),
        ]
        lines += ["| " + " | ".join(row) + " |" for row in self.cells.itertuples(index=False)]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Return the numbers as CSV."""
        return self.numbers.to_csv(index=False)

    def latex(self) -> str:
        """Return the table as a LaTeX tabular."""
        cells = self.cells.rename(columns=_escape).map(_escape)
        width = "l" * 2 + "r" * (cells.shape[1] - 2)
        lines = [f"\\begin{{tabular}}{{{width}}}", "\\toprule"]
        lines += [" & ".join(cells.columns) + " \\\\", "\\midrule"]
        lines += [" & ".join(row) + " \\\\" for row in cells.itertuples(index=False)]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def _escape(text: str) -> str:
    for plain, latex in (("_", "\\_"), ("%", "\\%"), ("±", "$\\pm$"), ("<=", "$\\leq$")):
        text = text.replace(plain, latex)
    return text

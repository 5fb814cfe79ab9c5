"""`TextColumns`: which columns hold free text, and how each becomes numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.errors import InvalidDataError
from reliablenet.tables.free_text import KINDS, EmbeddedText, Embedding, TextFeatures
from reliablenet.tables.values import text_codes

NOTHING_SHARED = "its texts are all alike, or no two of them have a word in common"


@dataclass
class TextColumns:
    """Columns of free text.

    Attributes
    ----------
    columns : list
    gaps : list of bool
        Whether each was missing or blank in some training row; a mark then says where.
    readers : list of TextFeatures or EmbeddedText
        How each becomes numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.text_columns import TextColumns
    >>> texts = TextColumns()
    >>> words = pd.Series(["my card is late", "card lost", "refund please", "my refund", None])
    >>> texts.add(words, "request")
    ''
    >>> texts.width, [block.shape for block in texts.blocks(pd.DataFrame({"request": words}))]
    (3, [(5, 3)])
    """

    columns: list[Any] = field(default_factory=list)
    gaps: list[bool] = field(default_factory=list)
    readers: list[TextFeatures | EmbeddedText] = field(default_factory=list)

    @property
    def width(self) -> int:
        """How many numbers all columns give together."""
        return sum(self.widths)

    @property
    def widths(self) -> list[int]:
        """How many numbers each column gives, with its mark."""
        return [reader.width + gap for reader, gap in zip(self.readers, self.gaps, strict=True)]

    @property
    def embedded(self) -> bool:
        """Whether an embedding of the user's own reads them."""
        return any(isinstance(reader, EmbeddedText) for reader in self.readers)

    def add(self, values: pd.Series[Any], column: Any, embedding: Embedding | None = None) -> str:
        """Learn to read a column, or return why nothing can be learned from it."""
        codes, distinct = text_codes(values)
        known = [*(text.strip() or None for text in distinct), None]
        texts = [known[code] for code in codes]
        reader: TextFeatures | EmbeddedText | None
        if embedding is not None and any(texts):
            reader = EmbeddedText.fit(texts, embedding)
        else:
            reader = TextFeatures.fit(texts)
        if reader is None:
            return NOTHING_SHARED
        self.columns.append(column)
        self.gaps.append(not all(texts))
        self.readers.append(reader)
        return ""

    def blocks(self, table: pd.DataFrame) -> Iterator[NDArray[np.float32]]:
        """Yield the numbers of each column, of shape (n, d), and last the mark for missing texts."""
        for column, reader, gap in zip(self.columns, self.readers, self.gaps, strict=True):
            codes, texts = text_codes(table[column])
            present = np.flatnonzero(np.bincount(codes + 1, minlength=len(texts) + 1)[1:])
            wanted = [texts[place].strip() or None for place in present.tolist()]
            numbers = np.zeros((len(wanted) + 1, reader.width + gap), np.float32)
            numbers[:-1, : reader.width] = reader.transform(wanted)
            if gap:
                numbers[:, -1] = [*(text is None for text in wanted), True]
            # The last row is what code -1, a missing value, finds.
            place_of = np.full(len(texts) + 1, len(wanted))
            place_of[present] = np.arange(len(wanted))
            yield numbers[place_of[codes]]

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        kinds = [reader.kind for reader in self.readers]
        return {"columns": self.columns, "gaps": self.gaps, "kinds": kinds}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is too much for JSON."""
        return {
            f"{place}/{name}": array
            for place, reader in enumerate(self.readers)
            for name, array in reader.to_arrays().items()
        }

    @classmethod
    def from_dict(
        cls,
        stored: dict[str, Any] | None,
        arrays: Mapping[str, NDArray[Any]],
        embedding: Embedding | None,
    ) -> Self:
        """Return what `to_dict` and `to_arrays` described, nothing for None; refuse what does not fit together."""
        if stored is None:
            stored = {"columns": [], "gaps": [], "kinds": []}
        parts: list[dict[str, NDArray[Any]]] = [{} for _ in stored["columns"]]
        for name, array in arrays.items():
            place, _, part = name.partition("/")
            parts[int(place)][part] = array
        sound = (
            len(stored["gaps"]) == len(stored["kinds"]) == len(parts)
            and all(type(gap) is bool for gap in stored["gaps"])
            and set(stored["kinds"]) <= set(KINDS)
        )
        if not sound:
            raise InvalidDataError(
                "The stored text columns are inconsistent. Fit and save the model again."
            )
        readers = [
            KINDS[kind].from_arrays(part, embedding)
            for kind, part in zip(stored["kinds"], parts, strict=True)
        ]
        return cls(list(stored["columns"]), list(stored["gaps"]), readers)

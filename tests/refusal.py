"""What is refused, and in which words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from reliablenet.errors import InvalidDataError, InvalidParameterError


@contextmanager
def refused(message: str) -> Iterator[None]:
    """Expect this message; one that ends in "(" or ": " goes on in words of other libraries."""
    with pytest.raises((InvalidParameterError, InvalidDataError)) as caught:
        yield
    said = str(caught.value)
    assert said == message or (message.endswith(("(", ": ")) and said.startswith(message))

"""What a request can get instead of an answer: one line, a status, and the column where there is one."""

from __future__ import annotations

from typing import Any


class RequestError(Exception):
    """A request that is not answered, and why.

    Parameters
    ----------
    status : int
        The HTTP status.
    message : str
        What was expected, what came, what to do.
    column : str, optional
        The column that the message is about.
    headers : dict, optional
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        column: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.column = status, message, column
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        """Return the answer as JSON has it."""
        column = {} if self.column is None else {"column": self.column}
        return {"error": self.message, **column}


def unusable(message: str, column: str | None = None) -> RequestError:
    """Return the error of a request that is JSON, but no rows that the model can take."""
    return RequestError(422, message, column=column)


def busy(message: str) -> RequestError:
    """Return the error of a request that may be sent again later."""
    return RequestError(503, message, headers={"Retry-After": "1"})

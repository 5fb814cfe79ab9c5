"""What all our figures share: an empty one, and its colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reliablenet.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
)  # of Okabe and Ito: colour-blind readers tell them apart


def new_figure(owner: str, size: tuple[float, float]) -> Figure:
    """Return an empty figure, made without pyplot and its back ends, or say what to install.

    Parameters
    ----------
    owner : str
        Who draws, for the message: "History.plot".
    size : tuple of float
        Width and height in inches.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from reliablenet._drawing import new_figure
    >>> new_figure("Curve.plot", (6, 4)).get_size_inches().tolist()
    [6.0, 4.0]
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            f"{owner} needs matplotlib: pip install 'reliablenet[report]'"
        ) from error
    return Figure(figsize=size, layout="constrained")

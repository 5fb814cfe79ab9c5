"""The smoothing family of Geletu and Hoffmann, and the surrogates built on it (paper, section 4.1).

`zeta` dominates the indicator 1{s >= 0}, so psi = E[zeta(g)] bounds JCW from above, and with its
reflection phi = E[zeta(-g)] it encloses P(g <= 0) in the bracket [1 - psi, phi].
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import torch
from torch import Tensor

from reliablenet._checks import check_fraction, check_positive, is_real, parameter_error
from reliablenet.errors import InvalidDataError
from reliablenet.risk.event import check_real

M1 = 0.5
M2 = 0.3


def zeta(s: Tensor, tau: float, m1: float = M1, m2: float = M2) -> Tensor:
    """Return the smooth upper bound (1 + m1 tau) / (1 + m2 tau exp(-s / tau)) of 1{s >= 0}.

    Equation (zeta_fs) of the paper, written with a sigmoid because the literal form overflows.

    Parameters
    ----------
    s : Tensor of any shape
    tau : float in (0, 1)
        Smoothing level; as it falls, zeta approaches the indicator.
    m1, m2 : float
        Shape, with 0 < m2 < m1 / (1 + m1).

    Returns
    -------
    Tensor of the shape of ``s``, between 0 and 1 + m1 tau; only rounding brings it to an end

    Examples
    --------
    >>> import torch
    >>> from reliablenet import zeta
    >>> zeta(torch.tensor([-1e4, 0.0, 1e4]), tau=0.1)
    tensor([0.0000, 1.0194, 1.0500])
    """
    return compute_zeta(check_real("s", s), *check_smoothing(tau, m1, m2))


def zeta_reflected(s: Tensor, tau: float, m1: float = M1, m2: float = M2) -> Tensor:
    """Return Pi(tau, s) = zeta(tau, -s), the smooth upper bound of 1{s <= 0}.

    Parameters
    ----------
    s : Tensor of any shape
    tau, m1, m2 : float
        As for `zeta`.

    Returns
    -------
    Tensor of the shape of ``s``

    Examples
    --------
    >>> import torch
    >>> from reliablenet.risk import zeta_reflected
    >>> zeta_reflected(torch.tensor([-1e4, 0.0, 1e4]), tau=0.1)
    tensor([1.0500, 1.0194, 0.0000])
    """
    return zeta(-check_real("s", s), tau, m1, m2)


def psi(g: Tensor, tau: float, m1: float = M1, m2: float = M2) -> Tensor:
    """Return the inner surrogate, the mean of zeta(g): an upper bound of the JCW of these rows.

    Parameters
    ----------
    g : Tensor
        Violations, as `violation` returns them; not empty.
    tau, m1, m2 : float
        As for `zeta`.

    Returns
    -------
    Tensor of shape ()

    Examples
    --------
    >>> import torch
    >>> from reliablenet import psi
    >>> psi(torch.tensor([-1.0, -1.0, -1.0, 1.0]), tau=0.01)
    tensor(0.2512)
    """
    return zeta(_not_empty(g), tau, m1, m2).mean()


def phi(g: Tensor, tau: float, m1: float = M1, m2: float = M2) -> Tensor:
    """Return the outer surrogate, the mean of zeta(-g): an upper bound of the share with g <= 0.

    Parameters
    ----------
    g : Tensor
        Violations, as `violation` returns them; not empty.
    tau, m1, m2 : float
        As for `zeta`.

    Returns
    -------
    Tensor of shape ()

    Examples
    --------
    >>> import torch
    >>> from reliablenet import phi
    >>> phi(torch.tensor([-1.0, -1.0, -1.0, 1.0]), tau=0.01)
    tensor(0.7537)
    """
    return zeta_reflected(_not_empty(g), tau, m1, m2).mean()


class Bracket(NamedTuple):
    """Enclosure of P(g <= 0): ``lower`` is 1 - psi, ``upper`` is phi."""

    lower: Tensor
    upper: Tensor


def bracket(g: Tensor, tau: float, m1: float = M1, m2: float = M2) -> Bracket:
    """Return the enclosure [1 - psi, phi] of the share of rows with g <= 0 (equation io_bracket).

    Parameters
    ----------
    g : Tensor
        Violations, as `violation` returns them; not empty.
    tau, m1, m2 : float
        As for `zeta`.

    Returns
    -------
    Bracket

    Examples
    --------
    >>> import torch
    >>> from reliablenet.risk import bracket
    >>> lower, upper = bracket(torch.tensor([-1.0, -1.0, -1.0, 1.0]), tau=0.01)
    >>> bool(lower <= 0.75 <= upper)
    True
    """
    return Bracket(1.0 - psi(g, tau, m1, m2), phi(g, tau, m1, m2))


def gap(g: Tensor, tau: float, m1: float = M1, m2: float = M2) -> Tensor:
    """Return the bracket's width phi - (1 - psi), which is never below m1 tau.

    As tau falls it tends to the share of rows with g = 0 exactly, which is none as a rule. A tolerance
    below m1 tau can never be met: compare the gap less its floor m1 tau instead.

    Parameters
    ----------
    g : Tensor
        Violations, as `violation` returns them; not empty.
    tau, m1, m2 : float
        As for `zeta`.

    Returns
    -------
    Tensor of shape ()

    Examples
    --------
    >>> import torch
    >>> from reliablenet import gap
    >>> gap(torch.tensor([-1.0, -1.0, -1.0, 1.0]), tau=0.01)
    tensor(0.0050)
    """
    lower, upper = bracket(g, tau, m1, m2)
    return upper - lower


def compute_zeta(s: Tensor, tau: float, m1: float, m2: float) -> Tensor:
    """Compute `zeta` without its checks, for use inside a training step."""
    return (1.0 + m1 * tau) * torch.sigmoid(s / tau - math.log(m2 * tau))


def check_smoothing(
    tau: float, m1: float, m2: float, owner: str = "zeta"
) -> tuple[float, float, float]:
    """Return the three as floats if 0 < tau < 1 and 0 < m2 < m1 / (1 + m1)."""
    tau, m1 = check_fraction("tau", tau, owner), check_positive("m1", m1, owner)
    limit = m1 / (1.0 + m1)
    if not is_real(m2) or not 0.0 < m2 < limit:
        raise parameter_error(
            "m2",
            owner,
            f"lie in (0, m1 / (1 + m1)) = (0, {limit:.4g})",
            m2,
            "Beyond that, zeta no longer bounds the indicator from above.",
        )
    if tau * float(m2) < sys.float_info.min:
        raise parameter_error("tau", owner, "not vanish beside m2", tau)
    return tau, m1, float(m2)


def _not_empty(g: Tensor) -> Tensor:
    if check_real("g", g).numel() == 0:
        raise InvalidDataError("`g` must hold at least one row; got an empty tensor.")
    return g

"""Upper confidence bounds (paper, section 4.2), vectorised over every argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv, xlog1py

from reliablenet._checks import as_array, parameter_error
from reliablenet.errors import InvalidParameterError


def clopper_pearson_upper(errors: ArrayLike, n: ArrayLike, rho: ArrayLike = 0.05) -> Any:
    """Return the exact one-sided upper bound of a proportion (Theorem holdout_certificates, ii).

    With probability at least 1 - rho over the draw of n independent rows, the true probability of
    an error does not exceed the bound.

    Parameters
    ----------
    errors : array-like of int
        Counted errors, 0 <= errors <= n.
    n : array-like of int
        Rows, at least 1.
    rho : array-like of float in (0, 1)
        Allowed probability that the bound fails.

    Returns
    -------
    float, or array of the broadcast shape

    Examples
    --------
    >>> from reliablenet import clopper_pearson_upper
    >>> round(clopper_pearson_upper(0, 59, 0.05), 4)
    0.0495
    >>> clopper_pearson_upper([0, 5, 10], 10).round(4)
    array([0.2589, 0.7776, 1.    ])
    """
    k, m = _whole("errors", errors), _whole("n", n)
    level = _in_open_unit("rho", rho, "clopper_pearson_upper")
    k, m, level = broadcast("clopper_pearson_upper", errors=k, n=m, rho=level)
    if np.any(m < 1):
        raise parameter_error("n", "clopper_pearson_upper", "be at least 1", n)
    if np.any(k < 0) or np.any(k > m):
        raise parameter_error("errors", "clopper_pearson_upper", "lie between 0 and n", errors)
    # A quantile of Beta(k + 1, m - k). There is none where k = m, and below rho of 1e-110 scipy
    # finds none near 1: 1 is always a bound.
    bound = betainccinv(k + 1.0, m - k, level)
    return _unwrap(np.where(np.isnan(bound), 1.0, bound))


def clopper_pearson_interval(count: ArrayLike, n: ArrayLike, level: ArrayLike = 0.95) -> Any:
    """Return the exact two-sided interval of a proportion.

    With probability at least ``level`` over the draw of n independent rows, the true probability
    lies in the interval. Each end fails in at most half of the rest, whatever the truth is.

    Parameters
    ----------
    count : array-like of int
        Rows counted, 0 <= count <= n.
    n : array-like of int
        Rows. Of no rows the interval is (0, 1): they say nothing.
    level : array-like of float in (0, 1)

    Returns
    -------
    low, high : float, or arrays of the broadcast shape

    Examples
    --------
    >>> from reliablenet.certificate.bounds import clopper_pearson_interval
    >>> low, high = clopper_pearson_interval(3, 153)
    >>> round(low, 4), round(high, 4)
    (0.0041, 0.0562)
    >>> clopper_pearson_interval(0, 0)
    (0.0, 1.0)
    """
    owner = "clopper_pearson_interval"
    k, m = _whole("count", count), _whole("n", n)
    k, m, inside = broadcast(owner, count=k, n=m, level=_in_open_unit("level", level, owner))
    if np.any(m < 0):
        raise parameter_error("n", owner, "be at least 0", n)
    if np.any(k < 0) or np.any(k > m):
        raise parameter_error("count", owner, "lie between 0 and n", count)
    tail = (1.0 - inside) / 2.0
    # Quantiles of Beta(k, m - k + 1) and Beta(k + 1, m - k); without one, 0 and 1 always hold.
    low, high = betaincinv(k, m - k + 1.0, tail), betainccinv(k + 1.0, m - k, tail)
    return _unwrap(np.where(k > 0, low, 0.0)), _unwrap(np.where(k < m, high, 1.0))


def hoeffding_upper(
    mean: ArrayLike, n: ArrayLike, rho: ArrayLike = 0.05, bound: ArrayLike = 1.0
) -> Any:
    """Return mean + bound sqrt(ln(1/rho) / (2n)) (Theorem holdout_certificates, i).

    An upper confidence bound of the expectation of independent values in [0, bound], such as the
    surrogate psi with ``bound`` = 1 + m1 tau. For JCW itself `clopper_pearson_upper` is far
    tighter: at rho = 0.05 and a mean of zero this one needs 600 rows to fall to 0.05, and 59 suffice there.

    Parameters
    ----------
    mean : array-like of float in [0, bound]
    n : array-like of int
    rho : array-like of float in (0, 1)
    bound : array-like of float
        Largest value that one row can take.

    Returns
    -------
    float, or array of the broadcast shape

    Examples
    --------
    >>> from reliablenet import hoeffding_upper
    >>> round(hoeffding_upper(0.0, 600), 4)
    0.05
    """
    level = _in_open_unit("rho", rho, "hoeffding_upper")
    m = _whole("n", n)
    value, top = (
        numbers("mean", mean, "hoeffding_upper"),
        numbers("bound", bound, "hoeffding_upper"),
    )
    value, m, level, top = broadcast("hoeffding_upper", mean=value, n=m, rho=level, bound=top)
    if np.any(m < 1):
        raise parameter_error("n", "hoeffding_upper", "be at least 1", n)
    if not np.all((top > 0) & np.isfinite(top)):
        raise parameter_error("bound", "hoeffding_upper", "be finite and positive", bound)
    if not np.all((value >= 0) & (value <= top * (1 + 1e-6))):  # a float32 mean may round up
        raise parameter_error("mean", "hoeffding_upper", "lie in [0, bound]", mean)
    return _unwrap(value + top * np.sqrt(-np.log(level) / (2.0 * m)))


def uniform_slack(
    n: ArrayLike,
    rho: ArrayLike,
    tau: ArrayLike,
    *,
    n_parameters: ArrayLike,
    lipschitz: ArrayLike,
    radius: ArrayLike,
    m1: ArrayLike = 0.5,
) -> Any:
    """Return delta_n(tau, rho) of the uniform concentration theorem (equation delta_n).

    With probability at least 1 - rho, every parameter vector in the ball whose empirical psi is at
    most alpha - delta_n has JCW <= alpha. For networks it is vacuous: a 10-128-128-2 MLP has
    18,178 parameters, and at n = 5,000 the slack already exceeds 4.

    Parameters
    ----------
    n : array-like of int
        Training rows.
    rho, tau : array-like of float in (0, 1)
    n_parameters : array-like of int
        Dimension d of the parameter vector.
    lipschitz : array-like of float
        Lipschitz constant L_g of the violation in the parameters.
    radius : array-like of float
        Radius R of a ball that holds every parameter vector.
    m1 : array-like of float
        As for `zeta`.

    Returns
    -------
    float, or array of the broadcast shape

    Examples
    --------
    >>> from reliablenet import uniform_slack
    >>> round(uniform_slack(5000, 0.05, 0.01, n_parameters=18178, lipschitz=1.0, radius=1.0), 2)
    4.21
    """
    owner = "uniform_slack"
    level, smoothing = _in_open_unit("rho", rho, owner), _in_open_unit("tau", tau, owner)
    m, d = _whole("n", n), _whole("n_parameters", n_parameters)
    if np.any(m < 1):
        raise parameter_error("n", owner, "be at least 1", n)
    if np.any(d < 1):
        raise parameter_error("n_parameters", owner, "be at least 1", n_parameters)
    constants = {"lipschitz": lipschitz, "radius": radius, "m1": m1}
    checked = {name: numbers(name, value, owner) for name, value in constants.items()}
    for name, value in checked.items():
        if not np.all(np.isfinite(value) & (value >= 0)):
            raise parameter_error(name, owner, "be finite and not negative", constants[name])
    m, level, smoothing, d, l_g, r, slope = broadcast(
        owner, n=m, rho=level, tau=smoothing, n_parameters=d, **checked
    )
    b_tau = 1.0 + slope * smoothing
    with np.errstate(over="ignore"):  # a slack too large for a float is infinite
        wide = b_tau * np.sqrt((d * np.log(3.0 * m) + np.log(2.0) - np.log(level)) / (2.0 * m))
        return _unwrap(wide + b_tau * l_g * r / (2.0 * smoothing * m))


def coin_divergence(q: float, u: float) -> float:
    """Return the Kullback-Leibler divergence of a coin of chance q from one of chance u, 0 < u < 1.

    Near coins differ by less than the rounding of the plain formula.
    """
    up, down = (q - u) / u, (u - q) / (1.0 - u)
    return float(u * (xlog1py(1.0 + up, up) - up) + (1.0 - u) * (xlog1py(1.0 + down, down) - down))


def numbers(name: str, values: ArrayLike, owner: str) -> NDArray[np.float64]:
    """Return numbers as float64; raise for anything else."""
    array = as_array(values, name)
    if array.dtype.kind not in "iuf":
        raise parameter_error(name, owner, "hold numbers", values)
    return array.astype(np.float64)


def broadcast(owner: str, **arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return arrays of one shape, or say which shapes do not fit together."""
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = ", ".join(f"`{name}` {array.shape}" for name, array in arrays.items())
        raise InvalidParameterError(
            f"The arrays of {owner} do not fit together: {shapes}."
        ) from None


def _whole(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return counts as float64, exact up to 2**53, refusing what is not a whole number."""
    array = as_array(values, name)
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)) or np.any(array % 1):
        raise InvalidParameterError(f"`{name}` must hold whole numbers; got {values!r}.")
    return array.astype(np.float64)


def _in_open_unit(name: str, values: ArrayLike, owner: str) -> NDArray[np.float64]:
    array = as_array(values, name)
    if array.dtype.kind not in "f" or not np.all((array > 0) & (array < 1)):
        raise parameter_error(name, owner, "lie in (0, 1)", values)
    return array.astype(np.float64)


def _unwrap(array: NDArray[np.float64]) -> Any:
    """Return a Python float for a scalar result, the array itself otherwise."""
    return float(array) if array.ndim == 0 else array

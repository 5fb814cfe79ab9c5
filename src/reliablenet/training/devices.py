"""Devices: which one "auto" stands for, and what each can do quickly."""

from __future__ import annotations

import torch
from torch import Tensor

from reliablenet._checks import parameter_error
from reliablenet.training.kernels import FAST_BFLOAT16

AUTO = "auto"


def find_device(name: str, owner: str) -> torch.device:
    """Return the device of a name; "auto" is CUDA if there is one, else Apple's MPS, else the CPU.

    Parameters
    ----------
    name : str
    owner : str
        Whom an error names.

    Examples
    --------
    >>> from reliablenet.training.devices import find_device
    >>> find_device("cpu", "me")
    device(type='cpu')
    """
    if isinstance(name, str) and name == AUTO:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        expected = 'be "auto" or name a device that torch can use here'
        raise parameter_error("device", owner, expected, name) from error
    return device


def has_fast_bfloat16(device: torch.device) -> bool:
    """Tell whether a device computes in bfloat16 faster than in float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return device.type == "cpu" and any(ask() for ask in FAST_BFLOAT16)


def in_double(tensor: Tensor) -> Tensor:
    """Return numbers in double precision; those of a device that has none come to the CPU."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()

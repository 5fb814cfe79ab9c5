"""How a fitted model is kept: a sealed file that runs no code when it is read.

It knows no method: each enters itself (`stored_as`), and tells what it stores and how it is restored.
"""

from reliablenet.modelfile.manifest import versions
from reliablenet.modelfile.registry import stored_as
from reliablenet.modelfile.save_load import load, save_layers

__all__ = ["load", "save_layers", "stored_as", "versions"]

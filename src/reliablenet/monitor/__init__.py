"""How a certified rule goes on: watched, audited, renewed. Never imports torch."""

from reliablenet.monitor.monitor import Monitor

__all__ = ["Monitor"]

"""T8: bulk over loopback. See transfers."""

from .transfers import loopback as measure

__all__ = ["measure"]

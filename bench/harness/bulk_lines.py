"""T9: bulk over lines of many lengths. See transfers."""

from .transfers import lines as measure

__all__ = ["measure"]

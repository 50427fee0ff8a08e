"""T10: many small files. See transfers."""

from .transfers import small_files as measure

__all__ = ["measure"]

"""T10-100K: files too large for a batch. See transfers."""

from .transfers import larger_files as measure

__all__ = ["measure"]

"""no-sftp: a host without SFTP. See transfers."""

from .transfers import without_sftp as measure

__all__ = ["measure"]

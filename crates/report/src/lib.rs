//! What a run says: live lines, gathered output, JSON Lines, files, progress, summary.

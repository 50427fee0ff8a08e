//! Host lists: ranges, files, exclusions, and folding names back.

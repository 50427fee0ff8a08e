//! Sans-I/O fan-out: who starts when, limits, deadlines, retries, results.

//! Thousands of simulated hosts in one process.

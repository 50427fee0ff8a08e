//! Stock OpenSSH servers, started for a test and stopped with it.

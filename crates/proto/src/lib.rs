//! A sans-I/O SSH client connection.

//! OpenSSH's known_hosts: parse, index, match.

//! OpenSSH's ssh_config: parsed once, resolved for each host.

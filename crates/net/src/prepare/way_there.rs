//! How a connection to a host is made: TCP's options, and ProxyCommand.

use sshoal_ssh_config::{Connection, Origin, Proxy, Resolved, Setting};

use super::{PrepareError, algorithms};
use crate::interfaces::LocalAddresses;
use crate::plan::TcpOptions;

pub(super) fn tcp_options(host: &str, connection: &Connection) -> Result<TcpOptions, PrepareError> {
    let connect_timeout = connection.connect_timeout.as_ref();
    Ok(TcpOptions {
        address_family: connection.address_family.value,
        bind: bind(host, connection)?,
        attempts: connection.connection_attempts.value,
        connect_timeout: connect_timeout.map(|timeout| timeout.value),
        // Where the server is asked for signs of life, that is better.
        keep_alive: connection.tcp_keep_alive.value && algorithms::keepalive(connection).is_none(),
    })
}

/// BindAddress, or else BindInterface (`ssh_create_socket`, sshconnect.c).
pub(super) fn bind(
    host: &str,
    connection: &Connection,
) -> Result<Option<LocalAddresses>, PrepareError> {
    let unusable = |keyword, set: &Setting<String>, why: String| PrepareError::Bind {
        host: host.to_owned(),
        keyword,
        value: set.value.clone(),
        why,
        origin: set.origin.to_string(),
    };
    if let Some(set) = &connection.bind_address {
        let addresses = LocalAddresses::of_name(&set.value);
        return addresses
            .map(Some)
            .map_err(|error| unusable("BindAddress", set, error.to_string()));
    }
    let Some(set) = &connection.bind_interface else {
        return Ok(None);
    };
    match LocalAddresses::of_interface(&set.value) {
        Ok(Some(addresses)) => Ok(Some(addresses)),
        Ok(None) => Err(unusable(
            "BindInterface",
            set,
            "this machine has no interface of that name that is up and has an address".to_owned(),
        )),
        Err(error) => Err(unusable("BindInterface", set, error.to_string())),
    }
}

/// ProxyCommand `-`, which no transport of a run can serve.
const STANDARD_STREAMS: &str = "ProxyCommand \"-\" (standard input and output are the run's own)";

/// That the connection is to be our own standard input and output.
pub(super) fn refuse_standard_streams(host: &str, resolved: &Resolved) -> Result<(), PrepareError> {
    let proxy = &resolved.connection.proxy;
    match &proxy.value {
        Proxy::Command(command) if command == "-" => Err(PrepareError::Unsupported {
            host: host.to_owned(),
            what: STANDARD_STREAMS,
            origin: proxy.origin.to_string(),
        }),
        _ => Ok(()),
    }
}

/// ProxyCommand for the shell. Our standard input and output are the run's, so `-` is none; and a connection that is
/// handed over as a descriptor is not taken.
pub(super) fn proxy_command(
    host: &str,
    resolved: &Resolved,
) -> Result<Option<String>, PrepareError> {
    let command = resolved.proxy_command();
    let command = command.map_err(|error| PrepareError::Resolve {
        host: host.to_owned(),
        error,
    })?;
    let Some(command) = command else {
        return Ok(None);
    };
    let unsupported = |what, origin: &Origin| PrepareError::Unsupported {
        host: host.to_owned(),
        what,
        origin: origin.to_string(),
    };
    let fdpass = &resolved.connection.proxy_use_fdpass;
    match command.value.as_str() {
        "-" => Err(unsupported(STANDARD_STREAMS, &command.origin)),
        _ if fdpass.value => Err(unsupported("ProxyUseFdpass", &fdpass.origin)),
        _ => Ok(Some(command.value)),
    }
}

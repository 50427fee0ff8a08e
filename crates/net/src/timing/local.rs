//! What this machine's own work for a login costs: looking names up, asking the agent for its keys.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use dns_lookup::{AddrFamily, AddrInfoHints, SockType, getaddrinfo};
use sshoal_ssh_config::AddressFamily;
use tokio::runtime::Builder;

use crate::agent::Agent;

/// How long a lookup may take: resolv.conf's servers, three at most, are asked twice for 5 s each.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(30);
/// How long an agent may take.
const AGENT_PATIENCE: Duration = Duration::from_secs(10);

/// How long the system takes to look a name up, and how many addresses of that kind it has; up to 30 s.
pub fn time_lookup(name: &str, family: AddressFamily) -> (Duration, usize) {
    let hints = AddrInfoHints {
        address: match family {
            AddressFamily::Any => 0,
            AddressFamily::Inet => AddrFamily::Inet.into(),
            AddressFamily::Inet6 => AddrFamily::Inet6.into(),
        },
        socktype: SockType::Stream.into(),
        ..AddrInfoHints::default()
    };
    let (found, result) = mpsc::channel();
    let name = name.to_owned();
    let begun = Instant::now();
    thread::spawn(move || {
        let addresses = getaddrinfo(Some(&name), None, Some(hints));
        let addresses = addresses.map_or(0, |addresses| addresses.flatten().count());
        // Nobody may wait any more.
        let _ = found.send(addresses);
    });
    let addresses = result.recv_timeout(LOOKUP_PATIENCE).unwrap_or(0);
    (begun.elapsed(), addresses)
}

/// How long the agent at a socket takes to list its keys, and how many it has; up to 10 s.
///
/// # Errors
///
/// It cannot be reached or does not answer, in words.
pub fn time_agent(socket: &str) -> Result<(Duration, usize), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let agent = Agent::new(socket);
    let begun = Instant::now();
    let keys = runtime.block_on(agent.keys(AGENT_PATIENCE));
    match keys {
        Ok(keys) => Ok((begun.elapsed(), keys.len())),
        Err(trouble) => Err(trouble.detail.clone()),
    }
}

//! Answers what an ssh_config asks of the system while a host is resolved.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use sshoal_ssh_config::{
    AddressFamily, Answers, Config, Lookup, Query, Question, ResolveError, Resolved, Unresolved,
};

use super::config_files;
use crate::shell;

/// What was asked so far, and the answers: they serve all hosts, so that a `Match exec` runs once for each different
/// command.
#[derive(Default)]
pub(super) struct Questions(Mutex<Answers>);

impl Questions {
    /// Resolves a host, answering what is asked.
    pub(super) fn resolve(
        &self,
        config: &Config,
        query: &Query<'_>,
    ) -> Result<Resolved, ResolveError> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match config.resolve(query, &answers) {
                Ok(resolved) => return Ok(resolved),
                Err(Unresolved::Refused(error)) => return Err(error),
                Err(Unresolved::Asks(question)) => answer(question, &mut answers),
            }
        }
    }
}

fn answer(question: Question, answers: &mut Answers) {
    match question {
        Question::Exec { command } => {
            let status = exit_status(&command);
            answers.exited(command, status);
        }
        Question::LocalAddresses => answers.local_addresses(local_addresses()),
        Question::Lookup { name, family } => {
            let lookup = look_up(&name, family);
            answers.looked_up(name, family, lookup);
        }
        Question::Home { user } => {
            let home = config_files::home_of(&user);
            answers.home(user, home);
        }
        Question::Include(request) => {
            let mut loader = request.loader(config_files::environment());
            config_files::supply_all(&mut loader);
            answers.included(request, loader.finish());
        }
    }
}

/// As ssh runs it: by the user's shell, with nothing to read and its output unseen (`execute_in_shell`, readconf.c).
fn exit_status(command: &str) -> Option<i32> {
    let mut shell = shell::command(command);
    shell.stdin(Stdio::null()).stdout(Stdio::null());
    shell.status().ok()?.code()
}

/// The system's resolver, as std asks it, does not say what a name is an alias for: it stays as it is.
fn look_up(name: &str, family: AddressFamily) -> Lookup {
    let counts = |address: IpAddr| match family {
        AddressFamily::Any => true,
        AddressFamily::Inet => address.is_ipv4(),
        AddressFamily::Inet6 => address.is_ipv6(),
    };
    let addresses = (name, 22).to_socket_addrs().into_iter().flatten();
    match addresses.map(|address| address.ip()).any(counts) {
        true => Lookup::Found {
            canonical_name: None,
        },
        false => Lookup::NotFound,
    }
}

/// The addresses of the interfaces that are up, as the kernel's routing tables list them.
fn local_addresses() -> Vec<IpAddr> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (ipv4, ipv6) = (read("/proc/net/fib_trie"), read("/proc/net/if_inet6"));
    local_ipv4(&ipv4).chain(local_ipv6(&ipv6)).collect()
}

/// An address in a line of /proc/net/fib_trie is one of this machine's if the next line says "host LOCAL".
fn local_ipv4(trie: &str) -> impl Iterator<Item = IpAddr> {
    let pairs = trie.lines().zip(trie.lines().skip(1));
    let local = pairs.filter(|(_, kind)| kind.trim_start().starts_with("/32 host LOCAL"));
    local.filter_map(|(line, _)| {
        let address: Ipv4Addr = line.trim_start_matches([' ', '|', '-', '+']).parse().ok()?;
        Some(address.into())
    })
}

/// Lines of /proc/net/if_inet6 begin with an address of 32 hexadecimal digits.
fn local_ipv6(interfaces: &str) -> impl Iterator<Item = IpAddr> {
    interfaces.lines().filter_map(|line| {
        let digits = line.split_whitespace().next()?;
        let bits = u128::from_str_radix(digits, 16).ok()?;
        Some(Ipv6Addr::from_bits(bits).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_judged_by_their_status() {
        assert_eq!(exit_status("exit 3"), Some(3));
        assert_eq!(exit_status("kill -9 $$"), None);
    }

    #[test]
    fn this_machine_has_its_own_addresses() {
        let trie = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.0\n        /24 link UNICAST\n     \
                    |-- 10.0.0.7\n        /32 host LOCAL\n     |-- 10.0.0.255\n        /32 link BROADCAST\n";
        let addresses: Vec<IpAddr> = local_ipv4(trie).collect();
        assert_eq!(addresses, [IpAddr::from([10, 0, 0, 7])]);
        let interfaces = "00000000000000000000000000000001 01 80 10 80       lo\n";
        let addresses: Vec<IpAddr> = local_ipv6(interfaces).collect();
        assert_eq!(addresses, [IpAddr::from(Ipv6Addr::LOCALHOST)]);
        assert!(local_addresses().contains(&IpAddr::from([127, 0, 0, 1])));
    }
}

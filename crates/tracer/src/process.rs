//! What /proc says of processes: who serves the connection that we were started by, and what identifies a process.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use crate::failure::Failure;

/// Octets of a process's surroundings that are read.
const MAX_VARIABLES: u64 = 256 * 1024;
/// More ancestors than a login has.
const MAX_DEPTH: usize = 32;
/// The first namespace's inode number (include/uapi/linux/nsfs.h, PID_NS_INIT_INO).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The line of proc_pid_stat(5), as far as it is of use.
struct Stat {
    name: String,
    /// A letter.
    state: String,
    parent: u32,
    /// In clock ticks since the system's start.
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and parentheses; nothing after it does.
    let (name, rest) = line.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some(Stat {
        name: name.split_once('(')?.1.to_owned(),
        state: fields.next()?.to_owned(),
        parent: fields.next()?.parse().ok()?,
        started: fields.nth(17)?.parse().ok()?,
    })
}

/// When a process was started, in clock ticks since the system's start; `None` if there is none.
pub(crate) fn started(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.started)
}

/// A process's name; `None` if there is none.
pub(crate) fn name(pid: u32) -> Option<String> {
    stat(pid).map(|stat| stat.name)
}

/// Whose child a process is now.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.parent)
}

/// Whether nothing but the entry of a process is left, if that.
pub(crate) fn has_ended(pid: u32) -> bool {
    stat(pid).is_none_or(|stat| matches!(stat.state.as_str(), "Z" | "X"))
}

/// The children that a process has now.
pub(crate) fn children(of: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| parent(*pid) == Some(of)).collect()
}

/// The ports of the connection that a process was started for, the server's and the client's, as sshd tells it (sshd(8),
/// SSH_CONNECTION). Others' surroundings are shown to root alone.
pub(crate) fn connection_ports(pid: u32) -> Option<(u16, u16)> {
    let mut variables = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(MAX_VARIABLES).read_to_end(&mut variables).ok()?;
    let mut variables = variables.split(|octet| *octet == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(b"SSH_CONNECTION="))?;
    let value = String::from_utf8_lossy(value);
    let words: Vec<&str> = value.split(' ').collect();
    let [_, client, _, server] = words[..] else {
        return None;
    };
    Some((server.parse().ok()?, client.parse().ok()?))
}

/// The namespace of our process numbers, as "pid:[...]".
pub(crate) fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// Whether our process numbers are those of the kernel.
pub(crate) fn numbers_are_the_kernels() -> bool {
    namespace() == FIRST_PID_NAMESPACE
}

/// The process that starts one for each connection: the topmost of the servers of SSH next above us. Where each connection's
/// process is the system's own child (socket activation), that one's parent.
///
/// # Errors
///
/// There is no such server above us.
pub(crate) fn listener() -> Result<u32, Failure> {
    let mut pid = std::process::id();
    let mut above: Vec<(u32, Stat)> = Vec::new();
    while let Some(stat) = stat(pid).filter(|_| pid > 0 && above.len() < MAX_DEPTH) {
        let parent = stat.parent;
        above.push((pid, stat));
        pid = parent;
    }
    let names: Vec<&str> = above.iter().map(|(_, stat)| stat.name.as_str()).collect();
    let Some((server, stat)) = topmost_server(&names).map(|at| &above[at]) else {
        let names = names.join(", ");
        let words = format!("no sshd stands above this process, but {names}");
        return Err(Failure::new("no-server", words));
    };
    match serves_one_connection(*server) && stat.parent > 0 {
        true => Ok(stat.parent),
        false => Ok(*server),
    }
}

/// The place of the last one of the first servers in a row: above them there may be others, by which somebody logged in who has
/// started this one.
fn topmost_server(names: &[&str]) -> Option<usize> {
    let first = names.iter().position(|name| is_server(name))?;
    let servers = names[first..].iter().take_while(|name| is_server(name));
    Some(first + servers.count() - 1)
}

/// Whether a process of that name serves SSH.
pub(crate) fn is_server(name: &str) -> bool {
    ["sshd", "dropbear"]
        .iter()
        .any(|server| name.starts_with(server))
}

/// sshd's processes for a connection call themselves "sshd: USER ..." or "sshd-session: ..." (setproctitle), the one that
/// listens "sshd: ... [listener] ..." since 8.2 and as it was started before.
fn serves_one_connection(pid: u32) -> bool {
    let title = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let title = String::from_utf8_lossy(&title);
    let is_title = title.starts_with("sshd: ") || title.starts_with("sshd-session: ");
    // sshd -i: started for one connection by someone else.
    let is_inetd = title.split('\0').any(|word| word == "-i");
    is_inetd || (is_title && !title.contains("[listener]"))
}

/// A file as a process sees it.
pub(crate) fn root_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/root"))
}

/// The files that a process has mapped and whose name begins so: "libc.so.6". As it sees them itself.
pub(crate) fn mapped(pid: u32, name: &str) -> Option<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let paths = maps.lines().filter_map(|line| line.split_once('/'));
    let is_it = |path: &str| path.rsplit('/').next().is_some_and(|last| last == name);
    let path = paths.map(|(_, path)| path).find(|path| is_it(path))?;
    Some(root_of(pid).join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_the_topmost_of_those_that_stand_together() {
        let usual = [
            "tracer",
            "sh",
            "sudo",
            "sh",
            "sshd-session",
            "sshd-session",
            "sshd",
            "systemd",
        ];
        assert_eq!(topmost_server(&usual), Some(6));
        // Somebody logged in and has started a server of his own.
        let within = [
            "tracer", "sh", "sshd", "sshd", "keeper", "bash", "sshd", "sshd", "systemd",
        ];
        assert_eq!(topmost_server(&within), Some(3));
        assert_eq!(
            topmost_server(&["tracer", "sh", "dropbear", "dropbear"]),
            Some(3)
        );
        assert_eq!(topmost_server(&["tracer", "bash", "login"]), None);
        assert_eq!(topmost_server(&[]), None);
    }
}

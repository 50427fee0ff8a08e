//! What /proc says of processes: who serves the connection that we were started by, and what identifies a process.

use std::fs::{self, File};
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Octets of a process's surroundings that are read.
const MAX_VARIABLES: u64 = 256 * 1024;
/// More ancestors than a login has.
const MAX_DEPTH: usize = 32;
/// The C library's file, or a link to that.
const C_LIBRARY: &str = "libc.so.6";
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

/// The connection that a process was started for, the server's port, the client's and its address, as sshd tells it (sshd(8),
/// SSH_CONNECTION). Others' surroundings are shown to root alone.
pub(crate) fn connection(pid: u32) -> Option<(u16, u16, IpAddr)> {
    let mut variables = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(MAX_VARIABLES).read_to_end(&mut variables).ok()?;
    let mut variables = variables.split(|octet| *octet == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(b"SSH_CONNECTION="))?;
    let value = String::from_utf8_lossy(value);
    let words: Vec<&str> = value.split(' ').collect();
    let [address, client, _, server] = words[..] else {
        return None;
    };
    // Behind an address of this link alone stands which one.
    let address = address.split('%').next().unwrap_or_default();
    Some((
        server.parse().ok()?,
        client.parse().ok()?,
        address.parse().ok()?,
    ))
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

/// The C library that a process has mapped, as it sees the file itself.
pub(crate) fn c_library(pid: u32) -> Option<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let root = root_of(pid);
    let mut paths = c_libraries(&maps).into_iter();
    paths
        .find(|path| root.join(path).is_file())
        .map(|path| root.join(path))
}

/// Where it may be by /proc/PID/maps: before glibc 2.34 its file has its version for a name. Where it was replaced meanwhile, what
/// the process starts maps the new one, which has the old one's name or the usual one.
fn c_libraries(maps: &str) -> Vec<PathBuf> {
    let paths = maps.lines().filter_map(|line| line.split_once('/'));
    let mut paths = paths.map(|(_, path)| path.strip_suffix(" (deleted)").unwrap_or(path));
    let is_it = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name == C_LIBRARY || (name.starts_with("libc-") && name.ends_with(".so"))
    };
    let path = paths.find(is_it).map(Path::new);
    path.map_or(Vec::new(), |path| {
        vec![path.to_owned(), path.with_file_name(C_LIBRARY)]
    })
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

    #[test]
    fn the_c_library_is_found_by_its_name_of_today_and_by_those_of_old() {
        let found = |last: &str| {
            let maps = format!(
                "7f00-7f01 r--p 00000000 fe:00 1 /usr/sbin/sshd\n7f02-7f03 rw-p 00000000 00:00 0 [heap]\n\
                 7f04-7f05 r--p 00000000 fe:00 2 /lib/libcrypt.so.1\n7f06-7f07 r-xp 00000000 fe:00 3 {last}\n"
            );
            c_libraries(&maps)
        };
        let usual = PathBuf::from("lib/x86_64-linux-gnu/libc.so.6");
        let old = PathBuf::from("lib/x86_64-linux-gnu/libc-2.31.so");
        for deleted in ["", " (deleted)"] {
            let path = format!("/lib/x86_64-linux-gnu/libc-2.31.so{deleted}");
            assert_eq!(found(&path), [old.clone(), usual.clone()]);
            let path = format!("/lib/x86_64-linux-gnu/libc.so.6{deleted}");
            assert_eq!(found(&path)[0], usual);
        }
        assert!(found("/lib/libc-client.so.2007").is_empty());
        assert!(c_library(std::process::id()).is_some_and(|path| path.is_file()));
    }
}

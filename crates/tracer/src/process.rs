//! What /proc says of processes: who serves the connection that we were started by, and what identifies a process.

use std::fs;
use std::path::PathBuf;

use crate::failure::Failure;

/// More ancestors than a login has.
const MAX_DEPTH: usize = 32;
/// The first namespace's inode number (include/uapi/linux/nsfs.h, PID_NS_INIT_INO).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The line of proc_pid_stat(5), as far as it is of use.
struct Stat {
    name: String,
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
        parent: fields.nth(1)?.parse().ok()?,
        started: fields.nth(17)?.parse().ok()?,
    })
}

/// When a process was started, in clock ticks since the system's start; `None` if there is none.
pub(crate) fn started(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.started)
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

/// The process that starts one for each connection: the topmost server of SSH above us. Where each connection's process is the
/// system's own child (socket activation), that one's parent.
///
/// # Errors
///
/// There is no such server above us.
pub(crate) fn listener() -> Result<u32, Failure> {
    let mut pid = std::process::id();
    let mut above = Vec::new();
    let mut topmost = None;
    for _ in 0..MAX_DEPTH {
        let Some(stat) = stat(pid) else { break };
        if is_server(&stat.name) {
            topmost = Some((pid, stat.parent));
        }
        above.push(stat.name);
        if stat.parent == 0 {
            break;
        }
        pid = stat.parent;
    }
    match topmost {
        Some((server, parent)) if serves_one_connection(server) && parent > 0 => Ok(parent),
        Some((server, _)) => Ok(server),
        None => Err(Failure::new(
            "no-server",
            format!(
                "no sshd stands above this process, but {}",
                above.join(", ")
            ),
        )),
    }
}

fn is_server(name: &str) -> bool {
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

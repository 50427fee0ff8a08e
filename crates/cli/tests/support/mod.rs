//! `sshoal` as a user runs it, and hosts for it: simulated ones, and real sshd.

#![allow(dead_code)] // each test file uses some of it

pub(crate) mod between;
pub(crate) mod chance;
pub(crate) mod copying;
pub(crate) mod cutter;
pub(crate) mod line;
pub(crate) mod network;
pub(crate) mod passenger;
pub(crate) mod program;
pub(crate) mod pty;
pub(crate) mod records;
pub(crate) mod terminal;
pub(crate) mod warm;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sshoal_testbed::client_files::ClientFiles;
use sshoal_testbed::simulated::{Simulation, SimulationSpec};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use tempfile::TempDir;

use program::{Ended, Running};

/// After so long something hangs that should not. No test's verdict depends on the number.
pub(crate) const DEADLINE: Duration = Duration::from_secs(240);

/// Waits until something has come true.
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < DEADLINE, "still waiting until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Somebody with an empty home, no agent and no terminal.
pub(crate) struct User {
    home: TempDir,
}

impl User {
    pub(crate) fn new() -> User {
        let home = tempfile::tempdir().unwrap();
        User { home }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Any program, with `sshoal` in its PATH.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        // setsid(1) keeps the process number: what a test starts leads no process group yet.
        let mut command = Command::new("setsid");
        let own = Path::new(env!("CARGO_BIN_EXE_sshoal")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        command
            .arg(program)
            .env_clear()
            .env("PATH", format!("{}:{path}", own.display()))
            .env("HOME", self.home())
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }

    /// A line for /bin/sh.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut command = self.command("/bin/sh");
        command.args(["-c", line]);
        command
    }

    /// `sshoal run` with these arguments and nothing else.
    pub(crate) fn run(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_sshoal"));
        command.arg("run").args(arguments);
        command
    }
}

/// Hosts, their files, and a user who may log in.
pub(crate) struct Shoal<H> {
    pub(crate) hosts: H,
    pub(crate) dir: TempDir,
    pub(crate) user: User,
}

impl Shoal<Simulation> {
    /// Simulated hosts with faults as on `sshoal-testbed`'s command line.
    pub(crate) fn simulated(hosts: u32, faults: &[&str]) -> Self {
        let mut spec = SimulationSpec::new(hosts);
        spec.faults = faults.iter().map(|text| text.parse().unwrap()).collect();
        Self::simulate(&spec)
    }

    pub(crate) fn simulate(spec: &SimulationSpec) -> Self {
        let hosts = Simulation::start(spec).unwrap();
        Shoal::of(hosts.client_files().clone(), hosts)
    }

    /// The address of a host, which is also what output calls it.
    pub(crate) fn name(&self, host: usize) -> String {
        self.hosts.addresses()[host].ip().to_string()
    }
}

impl Shoal<RealSshd> {
    pub(crate) fn real(spec: &SshdSpec) -> Self {
        let hosts = RealSshd::start(spec).unwrap();
        Shoal::of(hosts.client_files().unwrap(), hosts)
    }

    /// The address of a host, which is also what output calls it.
    pub(crate) fn name(&self, host: usize) -> String {
        self.hosts.addresses()[host].ip().to_string()
    }

    /// Waits until no session is left: whatever was sent to the hosts has been done or dropped.
    pub(crate) fn wait_for_sessions(&self) {
        let servers = 0..self.hosts.addresses().len();
        wait_until("all sessions have ended", || {
            servers
                .clone()
                .all(|host| descendants(self.hosts.pid(host).as_raw_nonzero().get()).is_empty())
        });
    }

    /// The same, and until what they have started has ended, too: a program does what it has been sent also when its sshd is
    /// gone, and is then nobody's descendant.
    pub(crate) fn wait_for_programs(&self) {
        self.wait_for_sessions();
        let addresses = self.hosts.addresses().iter();
        let servers: Vec<String> = addresses
            .map(|it| format!(" {} {}", it.ip(), it.port()))
            .collect();
        wait_until("all programs have ended", || {
            let of_hosts = |it: &String| servers.iter().any(|server| it.ends_with(server));
            !connections().iter().any(of_hosts)
        });
    }
}

impl<H> Shoal<H> {
    fn of(files: ClientFiles, hosts: H) -> Self {
        let dir = tempfile::tempdir().unwrap();
        files.write(dir.path()).unwrap();
        let user = User::new();
        Shoal { hosts, dir, user }
    }

    /// One of the files that [`ClientFiles::write`] writes.
    pub(crate) fn file(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// `sshoal run` with the hosts' configuration; the hosts are to be named.
    pub(crate) fn configured(&self, arguments: &[&str]) -> Command {
        let mut command = self.user.run(&["-F", &self.file("ssh_config")]);
        command.args(arguments);
        command
    }

    /// `sshoal run` on all hosts.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.configured(&["-f", &self.file("hosts")]);
        command.args(arguments);
        command
    }

    /// `sshoal run` on all hosts, to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Running::start(&mut self.command(arguments)).wait()
    }

    /// What the last run has recorded so far (`--record`), which may go on. Who has heard of a command can signal it; that it has
    /// done something does not tell that.
    pub(crate) fn recorded(&self) -> String {
        let mut show = self.user.command(env!("CARGO_BIN_EXE_sshoal"));
        let ended = Running::start(show.args(["show", "last"])).wait();
        ended.stdout()
    }

    /// `sshoal run` on some hosts, to its end.
    pub(crate) fn run_on(&self, hosts: &str, arguments: &[&str]) -> Ended {
        Running::start(self.configured(&["-w", hosts]).args(arguments)).wait()
    }

    /// `sshoal` in a line for /bin/sh, where `$RUN` is `sshoal run` on all hosts.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut command = self.user.shell(line);
        let (config, hosts) = (self.file("ssh_config"), self.file("hosts"));
        command.env("RUN", format!("sshoal run -F {config} -f {hosts}"));
        command
    }
}

/// A folder that the account on the hosts may write to as well.
pub(crate) fn shared_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// Writes a program that can be started at once.
pub(crate) fn write_program(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) {
    let written = tempfile::NamedTempFile::new().unwrap();
    fs::write(written.path(), contents).unwrap();
    // By a process of its own: a file that is open for writing here, if only in a fork, could not be executed.
    let mut install = Command::new("install");
    install.args(["-m", "755"]).arg(written.path());
    assert!(install.arg(path.as_ref()).status().unwrap().success());
}

/// The processes, by /proc, whose command line has this path: what runs on a host of this machine, but neither a client nor what has
/// ended.
pub(crate) fn processes_of(path: &Path) -> Vec<u32> {
    let path = path.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).into_owned();
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        let is_client = line.contains("/sshoal\0") || stat.contains("(sshoal)");
        // A process that has ended has no command line any more.
        if line.contains(path) && !is_client {
            found.push(pid);
        }
    }
    found
}

/// SSH_CONNECTION of each process that has one: sshd gives it to all that it starts (ssh(1)).
fn connections() -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        // Those of others cannot be read, and neither is there one of a process that has ended.
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let mut variables = environment.split(|octet| *octet == 0);
        let connection = variables.find_map(|it| it.strip_prefix(b"SSH_CONNECTION="));
        found.extend(connection.map(|it| String::from_utf8_lossy(it).into_owned()));
    }
    found
}

/// Bytes that compress badly and repeat late: Marsaglia's xorshift64.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = length as u64 | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// All that the process has started, the outermost first. The kernel's own lists of children leave some out while others
/// end (proc(5)), so that every process is looked at for its parent.
pub(crate) fn descendants(parent: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let name = entry.unwrap().file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    below(parent, &children)
}

fn below(parent: i32, children: &HashMap<i32, Vec<i32>>) -> Vec<i32> {
    let of_it = children.get(&parent).into_iter().flatten();
    of_it
        .flat_map(|&child| [vec![child], below(child, children)].concat())
        .collect()
}

/// proc_pid_stat(5); none if it is gone.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(1)?.parse().ok()
}

/// A program of the workspace that is built beside the one under test.
pub(crate) fn testbed_program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_sshoal")).with_file_name("sshoal-testbed");
    assert!(program.exists(), "run: cargo build -p sshoal-testbed");
    program
}

//! A running slow host.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use super::availability::SSHD;
use super::change::Change;
use super::inject;
use super::injection::Injection;
use super::keeper::Keeper;
use super::kind::Kind;
use super::plan::{ACCOUNT, Particulars, Plan, RUNS, SSHD_CONFIG};
use super::quota::Quota;
use super::resolver::Resolver;
use super::{SlowError, at, name_service, view};
use crate::client_files::known_hosts_name;
use crate::sshd::key_files::{KeyType, generate};
use crate::sshd::version;

/// How long a server may take to listen.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Pause between two looks at a log.
const LOOK: Duration = Duration::from_millis(2);
/// The addresses that hosts take by themselves: 127.64.0.0 and 22 bits.
const BASE: u32 = u32::from_be_bytes([127, 64, 0, 0]);
const BASE_BITS: u32 = 22;

/// A host to start. [`SlowSpec::new`] gives what most want; change the fields at will.
#[derive(Clone, Debug)]
pub struct SlowSpec {
    /// What clients call it: the `Host` of its ssh_config.
    pub name: String,
    /// What is done to it; nothing for a clean one.
    pub injections: Vec<Injection>,
    /// Its address in 127.0.0.0/8, on any free port. Without one: an address that no other host has.
    pub address: Option<Ipv4Addr>,
    /// Whether its account may become root by sudo without a password, as for tracing on the host. That root is the machine's:
    /// whoever can read the host's key, which is root's alone, has it.
    pub sudo: bool,
}

/// A host that is there until this is dropped.
#[derive(Debug)]
pub struct SlowHost {
    name: String,
    injections: Vec<Injection>,
    address: SocketAddrV4,
    fix: Vec<Change>,
    /// Connections that count for MaxStartups.
    held: Vec<TcpStream>,
    quota: Option<Quota>,
    resolver: Option<Resolver>,
    keeper: Keeper,
    dir: TempDir,
}

impl SlowSpec {
    /// A host with these injections, named after them.
    pub fn new(injections: &[Injection]) -> SlowSpec {
        // No `+` and `:`, which have a meaning in host lists.
        let names: Vec<String> = injections
            .iter()
            .map(|injection| injection.to_string().replace(':', "-"))
            .collect();
        SlowSpec {
            name: match names.is_empty() {
                true => "clean".to_owned(),
                false => names.join("-and-"),
            },
            injections: injections.to_vec(),
            address: None,
            sudo: false,
        }
    }
}

impl SlowHost {
    /// Starts a host with these injections; none make a clean one. When this returns it listens.
    ///
    /// # Errors
    /// [`SlowError`] says what is missing; nothing is left then.
    pub fn start(injections: &[Injection]) -> Result<SlowHost, SlowError> {
        SlowHost::start_spec(&SlowSpec::new(injections))
    }

    /// Starts a host. When this returns it listens.
    ///
    /// # Errors
    /// [`SlowError`] says what is missing; nothing is left then.
    pub fn start_spec(spec: &SlowSpec) -> Result<SlowHost, SlowError> {
        check(&spec.injections)?;
        let dir = make_dir().map_err(at("a temporary folder"))?;
        let identity = dir.path().join("id_ed25519");
        generate(&identity, KeyType::Ed25519, "")?;
        generate(&dir.path().join("host_key"), KeyType::Ed25519, "")?;
        let key = fs::read_to_string(identity.with_extension("pub")).map_err(at("the key"))?;
        let uid = view::free_uid().map_err(at("/etc/passwd"))?;
        let mut plan = Plan::new(uid);
        plan.sudo = spec.sudo;
        for &injection in &spec.injections {
            inject::add(&mut plan, injection, key.trim())?;
        }
        let resolver = plan
            .resolver
            .map(Resolver::start)
            .transpose()
            .map_err(at("a name server on port 53 of a loopback address"))?;
        let address = free_address(spec.address).map_err(at("a free port"))?;
        put_files(&mut plan, &dir, uid, address, key.trim(), resolver.as_ref())?;
        write_client_files(&spec.name, &plan, &dir, address).map_err(at("the client's files"))?;
        let quota = plan.quota.map(|_| quota_of(&dir)).transpose()?;
        let group = quota.as_ref().map(Quota::folder);
        let mut host = SlowHost {
            name: spec.name.clone(),
            injections: spec.injections.clone(),
            address,
            fix: std::mem::take(&mut plan.fix),
            held: Vec::new(),
            keeper: Keeper::start(dir.path(), group, SSHD)?,
            quota,
            resolver,
            dir,
        };
        host.wait_listening(1)?;
        host.burden(&plan)?;
        Ok(host)
    }

    /// What clients call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was done to it.
    pub fn injections(&self) -> &[Injection] {
        &self.injections
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// The account to log in as.
    pub fn user(&self) -> &str {
        ACCOUNT
    }

    /// The folder of its client's files, which goes with it: `ssh_config`, `known_hosts`, `id_ed25519`.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The client's configuration, complete: `ssh -F THIS NAME`.
    pub fn ssh_config(&self) -> PathBuf {
        self.dir.path().join("ssh_config")
    }

    /// The listening server's process.
    pub fn pid(&self) -> Pid {
        self.keeper.server()
    }

    /// The host's files as the host sees them: `/etc` is `root()/etc`.
    pub fn root(&self) -> PathBuf {
        self.keeper.root()
    }

    /// The host's mount namespace as a link in /proc says it. All its processes are in it, and no other. When the host has gone the
    /// kernel gives the number to the next namespace.
    pub fn namespace(&self) -> String {
        self.keeper.namespace()
    }

    /// The folder of its control group, if it has a quota of CPU time.
    pub fn control_group(&self) -> Option<&Path> {
        self.quota.as_ref().map(Quota::folder)
    }

    /// How many periods its quota was used up in; 0 without one.
    pub fn throttled(&self) -> u64 {
        self.quota.as_ref().map_or(0, Quota::throttled)
    }

    /// What its sshd has said, at level VERBOSE.
    pub fn log(&self) -> String {
        self.keeper.log()
    }

    /// How often an injected program has run, a lookup been made in the slow name service, or a query come to the name server.
    /// Always 0 for what is no program. Times [`Injection::time`] it is what was really injected so far.
    pub fn runs_of(&self, kind: Kind) -> u64 {
        if let (Some(resolver), true) = (&self.resolver, kind.asks_name_server()) {
            return resolver.queries();
        }
        let path = self.root().join(RUNS.trim_start_matches('/'));
        let runs = fs::read_to_string(path).unwrap_or_default();
        let count = runs.lines().filter(|line| *line == kind.row().name).count();
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// The changes that make it well, in the order in which they are to be made. Empty for decoys, and for what only another
    /// OpenSSH would mend.
    pub fn fix(&self) -> &[Change] {
        &self.fix
    }

    /// Makes all changes of [`SlowHost::fix`] and, if sshd's configuration is among them, has sshd read it again.
    ///
    /// # Errors
    /// A change that cannot be made, as when they have been made already.
    pub fn apply_fix(&self) -> Result<(), SlowError> {
        let root = self.root();
        for change in &self.fix {
            change.apply(&root).map_err(at(&change.to_string()))?;
            if let (Change::LiftQuota, Some(quota)) = (change, &self.quota) {
                quota.lift().map_err(at("the control group"))?;
            }
        }
        let is_configuration = |change: &Change| change.file() == Some(SSHD_CONFIG);
        match self.fix.iter().any(is_configuration) {
            true => self.reload(),
            false => Ok(()),
        }
    }

    /// Has sshd execute itself anew, which is how it reads its configuration again. Sessions go on.
    ///
    /// # Errors
    /// When it does not come back, with what it said of its configuration.
    pub fn reload(&self) -> Result<(), SlowError> {
        let times = self.times_listened();
        kill_process(self.pid(), Signal::HUP).map_err(|errno| at("sshd")(errno.into()))?;
        self.wait_listening(times + 1)
    }

    fn times_listened(&self) -> usize {
        let line = format!(
            "Server listening on {} port {}.",
            self.address.ip(),
            self.address.port()
        );
        self.log().matches(&line).count()
    }

    /// Until it has said so many times that it listens, and would not be ended by a SIGHUP.
    fn wait_listening(&self, times: usize) -> Result<(), SlowError> {
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            // Looked at before the log, so that a dead server's log is complete.
            let runs = self.keeper.runs();
            if self.times_listened() >= times && self.keeper.minds_hangups() {
                return Ok(());
            }
            if !runs {
                return Err(SlowError::Ended { log: self.log() });
            }
            if Instant::now() > deadline {
                return Err(SlowError::Late { log: self.log() });
            }
            thread::sleep(LOOK);
        }
    }

    /// What can only be done to a host that is there.
    fn burden(&mut self, plan: &Plan) -> Result<(), SlowError> {
        for _ in 0..plan.held {
            let connection = hold(self.address).map_err(at("a connection to hold"))?;
            self.held.push(connection);
        }
        match (&self.quota, plan.quota) {
            (Some(quota), Some(percent)) => quota.limit(percent).map_err(at("the control group")),
            _ => Ok(()),
        }
    }
}

fn check(injections: &[Injection]) -> Result<(), SlowError> {
    if !geteuid().is_root() {
        return Err(SlowError::NotRoot);
    }
    for injection in injections {
        let possible = injection.kind.is_possible();
        possible.map_err(|reason| SlowError::Impossible {
            name: injection.kind.row().name,
            reason,
        })?;
    }
    Ok(())
}

/// A folder that the account may look into: sshd reads some files as the user who logs in.
fn make_dir() -> io::Result<TempDir> {
    let dir = tempfile::Builder::new().prefix("sshoal-slow.").tempdir()?;
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755))?;
    fs::create_dir(dir.path().join("root"))?;
    Ok(dir)
}

fn quota_of(dir: &TempDir) -> Result<Quota, SlowError> {
    let name = dir.path().file_name().unwrap_or_default().to_string_lossy();
    Quota::named(&name).map_err(|reason| SlowError::Impossible {
        name: Kind::CpuQuota.row().name,
        reason,
    })
}

/// The given address, or one that no other host of this process has and none of another process is likely to, with a free port.
fn free_address(given: Option<Ipv4Addr>) -> io::Result<SocketAddrV4> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let ip = given.unwrap_or_else(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let place = std::process::id().wrapping_mul(64).wrapping_add(number + 1);
        Ipv4Addr::from(BASE | (place % (1 << BASE_BITS)))
    });
    let listener = TcpListener::bind((ip, 0))?;
    Ok(SocketAddrV4::new(ip, listener.local_addr()?.port()))
}

fn put_files(
    plan: &mut Plan,
    dir: &TempDir,
    uid: u32,
    address: SocketAddrV4,
    key: &str,
    resolver: Option<&Resolver>,
) -> Result<(), SlowError> {
    let files = dir.path().join("files");
    let particulars = Particulars {
        address,
        name_server: resolver.map(Resolver::address),
        host_key: fs::read_to_string(dir.path().join("host_key")).map_err(at("the host key"))?,
        key,
        has_penalties: version(Path::new(SSHD))? >= (9, 8),
    };
    let passwd_line = plan.passwd_line();
    let mut planned = view::accounts(&passwd_line, uid).map_err(at("this machine's accounts"))?;
    planned.append(&mut plan.files(&particulars));
    view::write(&files, &planned, uid).map_err(at("the host's files"))?;
    match plan.name_service {
        Some(milliseconds) => {
            name_service::put(&files, milliseconds).map_err(at("the slow name service"))
        }
        None => Ok(()),
    }
}

fn write_client_files(
    name: &str,
    plan: &Plan,
    dir: &TempDir,
    address: SocketAddrV4,
) -> io::Result<()> {
    let own = known_hosts_name(address);
    let host_key = fs::read_to_string(dir.path().join("host_key.pub"))?;
    let mut known_hosts = inject::foreign_hosts(plan.known_hosts);
    for key in [host_key.as_str()].into_iter().chain(plan.other_host_key) {
        known_hosts += &format!("{own} {}\n", key.trim());
    }
    fs::write(dir.path().join("known_hosts"), known_hosts)?;
    let (folder, ip, port) = (dir.path().display(), address.ip(), address.port());
    let ssh_config = format!(
        "Host {name} {ip}\n\
         \x20   HostName {ip}\n\
         \x20   Port {port}\n\
         \x20   User {ACCOUNT}\n\
         \x20   IdentityFile \"{folder}/id_ed25519\"\n\
         \x20   IdentitiesOnly yes\n\
         \x20   UserKnownHostsFile \"{folder}/known_hosts\"\n\
         \x20   GlobalKnownHostsFile /dev/null\n\
         \x20   StrictHostKeyChecking yes\n\
         \x20   BatchMode yes\n"
    );
    fs::write(dir.path().join("ssh_config"), ssh_config)
}

/// A connection that the server has answered, and that never goes on.
fn hold(address: SocketAddrV4) -> io::Result<TcpStream> {
    let connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(START_DEADLINE))?;
    let mut banner = String::new();
    BufReader::new(&connection).read_line(&mut banner)?;
    match banner.starts_with("SSH-2.0-") {
        true => Ok(connection),
        false => Err(io::Error::other(banner)),
    }
}

//! `sshoal-testbed slow-hosts`.

use std::error::Error;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use sshoal_testbed::addresses::host_addresses;
use sshoal_testbed::slow::{Injection, Role, SlowError, SlowHost, SlowSpec, TABLE};

use super::CommandResult;
use super::stay::{Staying, stay};

/// Where the hosts are: host i has this and 1 + i.
const BASE: Ipv4Addr = Ipv4Addr::new(127, 6, 0, 0);
/// A host with two causes, among those that are started when none are named.
const PAIR: &str = "pam-account:200+bashrc:200";

/// Start sshd hosts whose login is slow, each for a known reason, and keep them until SIGINT or SIGTERM.
///
/// Writes hosts (their names), hosts.jsonl (all about them), ssh_config and, once all listen, ready into DIR, and prints a table.
/// What of the injected programs has run is printed as JSON on SIGUSR1 and at the end; SIGUSR2 makes all hosts well. Needs root.
#[derive(Debug, Args)]
pub(crate) struct SlowHosts {
    /// What is slow on a host: a cause, a number where it has one, several with + between them; or clean. Without any: a host
    /// for each cause and decoy, one with two causes, and a clean one.
    #[arg(value_name = "CAUSE[:NUMBER][+...]")]
    hosts: Vec<String>,
    /// Print all causes and decoys with their numbers' meaning, and whether this machine has what they need; start nothing.
    #[arg(long)]
    list: bool,
    /// Where to put the files that a client needs, made if missing; without it a temporary folder.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Let the hosts' account become root by sudo without a password, as tracing on the host needs. That is this machine's root.
    #[arg(long)]
    sudo: bool,
    /// End when standard input ends, too.
    #[arg(long)]
    until_eof: bool,
}

impl SlowHosts {
    pub(crate) fn run(self) -> CommandResult {
        if self.list {
            list();
            return Ok(ExitCode::SUCCESS);
        }
        let hosts = self.start()?;
        let first = hosts.first().ok_or("this machine can show none of them")?;
        // A folder within a host's goes with it, whatever becomes of this process.
        let within = first.dir().join("all");
        let dir = self.dir.unwrap_or(within);
        let mut running = Running { hosts, dir };
        stay(self.until_eof, &mut running)?;
        Ok(ExitCode::SUCCESS)
    }

    fn start(&self) -> Result<Vec<SlowHost>, Box<dyn Error>> {
        let wanted = self.wanted()?;
        let addresses = host_addresses(BASE, u32::try_from(wanted.len())?)?;
        let mut hosts = Vec::new();
        for (injections, address) in wanted.iter().zip(addresses) {
            let spec = SlowSpec {
                address: Some(address),
                sudo: self.sudo,
                ..SlowSpec::new(injections)
            };
            match SlowHost::start_spec(&spec) {
                Ok(host) => hosts.push(host),
                // Among all that there are, what this machine cannot show is merely told.
                Err(error @ SlowError::Impossible { .. }) if self.hosts.is_empty() => {
                    eprintln!("slow-hosts: {error}");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(hosts)
    }

    fn wanted(&self) -> Result<Vec<Vec<Injection>>, Box<dyn Error>> {
        if !self.hosts.is_empty() {
            let wanted = self.hosts.iter().map(|text| Injection::several(text));
            return Ok(wanted.collect::<Result<_, _>>()?);
        }
        let mut wanted = vec![Vec::new()];
        wanted.extend(TABLE.iter().map(|row| vec![Injection::usual(row.kind)]));
        wanted.push(Injection::several(PAIR)?);
        Ok(wanted)
    }
}

fn list() {
    for row in TABLE {
        let usual = Injection::usual(row.kind);
        let role = match row.role {
            Role::Cause => phases(&usual),
            Role::Decoy => "decoy".to_owned(),
        };
        println!("{:<22} {:<14} {}", usual.to_string(), role, row.what);
        if let Err(reason) = row.kind.is_possible() {
            println!("{:<22} {:<14} not on this machine: {reason}", "", "");
        }
    }
}

struct Running {
    hosts: Vec<SlowHost>,
    dir: PathBuf,
}

impl Staying for Running {
    fn announce(&mut self) -> io::Result<()> {
        write_files(&self.hosts, &self.dir)?;
        print_table(&self.hosts, &self.dir.join("ssh_config"));
        fs::write(self.dir.join("ready"), format!("{}\n", self.hosts.len()))
    }

    fn report(&mut self) -> io::Result<String> {
        let runs = |host: &SlowHost| -> Value {
            let kinds = host.injections().iter().map(|injection| injection.kind);
            kinds
                .map(|kind| (kind.row().name.to_owned(), host.runs_of(kind).into()))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let hosts = self.hosts.iter();
        let all: serde_json::Map<_, _> = hosts
            .map(|host| (host.name().to_owned(), runs(host)))
            .collect();
        Ok(Value::from(all).to_string())
    }

    fn mend(&mut self) -> io::Result<String> {
        for host in &self.hosts {
            host.apply_fix().map_err(io::Error::other)?;
        }
        self.report()
    }
}

fn write_files(hosts: &[SlowHost], dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    // One left by an earlier run would be believed too early.
    match fs::remove_file(dir.join("ready")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (mut names, mut lines, mut config) = (String::new(), String::new(), String::new());
    for host in hosts {
        names += &format!("{}\n", host.name());
        lines += &format!("{}\n", about(host));
        config += &fs::read_to_string(host.ssh_config())?;
    }
    fs::write(dir.join("hosts"), names)?;
    fs::write(dir.join("hosts.jsonl"), lines)?;
    fs::write(dir.join("ssh_config"), config)
}

/// All that a scorer may want to know of a host.
fn about(host: &SlowHost) -> Value {
    let injections: Vec<Value> = host
        .injections()
        .iter()
        .map(|injection| {
            let row = injection.kind.row();
            let phases = row.phases.iter().map(ToString::to_string);
            json!({
                "name": row.name,
                "amount": injection.amount,
                "milliseconds": injection.time().map(|time| u64::try_from(time.as_millis()).ok()),
                "decoy": row.role == Role::Decoy,
                "phases": phases.collect::<Vec<_>>(),
                "what": row.what,
            })
        })
        .collect();
    let fix = host.fix().iter().map(ToString::to_string);
    json!({
        "name": host.name(),
        "address": host.address().ip().to_string(),
        "port": host.address().port(),
        "pid": host.pid().as_raw_nonzero().get(),
        "namespace": host.namespace(),
        "folder": host.dir(),
        "control_group": host.control_group(),
        "injections": injections,
        "fix": fix.collect::<Vec<_>>(),
    })
}

fn print_table(hosts: &[SlowHost], config: &Path) {
    let width = hosts
        .iter()
        .map(|host| host.name().len())
        .max()
        .unwrap_or(0);
    for host in hosts {
        let address = host.address().to_string();
        let line = |phases: &str, quantity: &str, what: &str| {
            println!(
                "{:<width$} {address:<16} {phases:<14} {quantity:<16} {what}",
                host.name()
            );
        };
        if host.injections().is_empty() {
            line("", "", "nothing is slow here");
        }
        for injection in host.injections() {
            line(
                &phases(injection),
                &injection.quantity(),
                injection.kind.row().what,
            );
        }
    }
    let Some(name) = hosts.last().map(SlowHost::name) else {
        return;
    };
    let config = config.display();
    println!(
        "\nTry, as root:\n    time ssh -F {config} {name} true\n    sshoal why -F {config} {name}"
    );
    println!("Ctrl-C ends and removes them.");
}

/// Where a client waits, such as `P7 P8`; of many phases the first and the last.
fn phases(injection: &Injection) -> String {
    match injection.kind.row().phases {
        [] => "decoy".to_owned(),
        [first, _, .., last] => format!("{first}..{last}"),
        few => few
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" "),
    }
}

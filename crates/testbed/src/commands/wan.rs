//! `sshoal-testbed wan`.

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::{self, Pid, kill_process, kill_process_group};
use sshoal_testbed::delay_line::{DelayLine, Direction, LineError, LineSpec};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{sleep, timeout};

use super::CommandResult;

/// How long a process may take to end after SIGTERM, before SIGKILL.
const GRACE: Duration = Duration::from_secs(3);
/// How long a server may take to listen.
const UNTIL_LISTENING: Duration = Duration::from_secs(20);
/// How often to look whether it does.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// Connections whose round trips are printed.
const CONNECTIONS_SHOWN: usize = 20;

/// Run a command on one side of a slow link, whose other side is a server's.
///
/// Both sides are network namespaces of this machine. The command finds the server's address in
/// SSHOAL_WAN_SERVER and the namespaces' names in SSHOAL_WAN_SERVER_NETNS and SSHOAL_WAN_CLIENT_NETNS
/// (`ip netns exec NAME ...`). Servers on loopback addresses from 127.1.0.0 on, started on the server's side,
/// are reached through the link under these addresses. What the link saw is printed at the end. Needs root
/// and iproute2.
#[derive(Debug, Args)]
pub(crate) struct Wan {
    /// Delay each way in milliseconds; a round trip takes twice this.
    #[arg(long, value_name = "MS", default_value = "50", value_parser = parse_milliseconds)]
    delay_ms: Duration,
    /// Bits a second each way, such as 100mbit or 1gbit. Without it: as fast as the machine can.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    rate: Option<NonZeroU64>,
    /// Probability that a packet is lost, 0 to 1.
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    loss: f64,
    /// Bytes that may wait for the rate in each direction. Without it: one round trip's worth.
    #[arg(long, value_name = "BYTES")]
    queue: Option<u64>,
    /// Where the losses start from: the same seed loses the same packets of a sequence.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A shell command to run on the server's side first; ended after the command. It must stay in the
    /// foreground (`sshd -D`).
    #[arg(long, value_name = "CMD")]
    server_cmd: Option<OsString>,
    /// Wait until something listens on this TCP port on the server's side before running the command.
    #[arg(long, value_name = "PORT")]
    wait_port: Option<u16>,
    /// Print nothing about the link at the end.
    #[arg(long)]
    quiet: bool,
    /// The command, run on the client's side. Without it: a shell.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Wan {
    pub(crate) fn run(self) -> CommandResult {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(self.run_on_line())
    }

    async fn run_on_line(self) -> CommandResult {
        // Before there is anything to tidy up.
        let mut signals = Signals::listen()?;
        let line = DelayLine::start(LineSpec {
            delay: self.delay_ms,
            rate_bits: self.rate.map(NonZeroU64::get),
            queue_bytes: self.queue,
            loss: self.loss,
            seed: self.seed,
        })?;
        let status = self.serve_and_run(&line, &mut signals).await?;
        if !self.quiet {
            print_counts(&line);
        }
        line.finish()?;
        Ok(status)
    }

    async fn serve_and_run(&self, line: &DelayLine, signals: &mut Signals) -> CommandResult {
        let mut server = self
            .server_cmd
            .as_ref()
            .map(|command| start_server(line, command))
            .transpose()?;
        let result = self.run_client(line, signals).await;
        if let Some(server) = &mut server {
            end_server(server).await?;
        }
        result
    }

    async fn run_client(&self, line: &DelayLine, signals: &mut Signals) -> CommandResult {
        if let Some(port) = self.wait_port {
            tokio::select! {
                ready = wait_listening(line, port) => ready?,
                () = signals.told_to_end() => return Ok(ExitCode::FAILURE),
            }
        }
        let mut client = self.client_command(line).spawn()?;
        let status = tokio::select! {
            status = client.wait() => status?,
            () = signals.told_to_end() => end_client(&mut client).await?,
        };
        Ok(exit_code(status))
    }

    fn client_command(&self, line: &DelayLine) -> Command {
        let shell = || std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let (program, arguments) = match self.command.split_first() {
            Some((program, arguments)) => (program.clone(), arguments),
            None => (shell(), &[][..]),
        };
        let mut command = line.command_in_client(program);
        command.args(arguments);
        with_environment(line, command)
    }
}

/// The signals that would otherwise end this process before it has removed its namespaces.
struct Signals {
    terminations: Signal,
    hangups: Signal,
    /// A terminal's Ctrl-C and Ctrl-\ go to the command as well: it decides, and this process stays.
    _interrupts: [Signal; 2],
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        Ok(Signals {
            terminations: signal(SignalKind::terminate())?,
            hangups: signal(SignalKind::hangup())?,
            _interrupts: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::quit())?,
            ],
        })
    }

    async fn told_to_end(&mut self) {
        tokio::select! {
            _ = self.terminations.recv() => {}
            _ = self.hangups.recv() => {}
        }
    }
}

async fn wait_listening(line: &DelayLine, port: u16) -> Result<(), LineError> {
    let begun = Instant::now();
    while !line.is_listening(port)? {
        let waited = begun.elapsed();
        if waited >= UNTIL_LISTENING {
            return Err(LineError::NotListening { port, waited });
        }
        sleep(BETWEEN_LOOKS).await;
    }
    Ok(())
}

fn start_server(line: &DelayLine, command: &OsString) -> io::Result<Child> {
    let mut shell = line.command_in_server("/bin/sh");
    shell.arg("-c").arg(command);
    // A process group of its own: it is ended with all its children, and only by us.
    with_environment(line, shell)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
}

async fn end_server(server: &mut Child) -> Result<(), Box<dyn Error>> {
    let Some(group) = pid_of(server) else {
        return Ok(());
    };
    if let Some(status) = server.try_wait()? {
        eprintln!("wan: the server's command had ended by itself: {status}");
    }
    // The group may have lost its leader, or be gone altogether.
    let _ = kill_process_group(group, process::Signal::TERM);
    if timeout(GRACE, server.wait()).await.is_err() {
        let _ = kill_process_group(group, process::Signal::KILL);
        server.wait().await?;
    }
    Ok(())
}

async fn end_client(client: &mut Child) -> io::Result<ExitStatus> {
    if let Some(pid) = pid_of(client) {
        // Not yet waited for, so the id is still the child's.
        let _ = kill_process(pid, process::Signal::TERM);
    }
    if let Ok(status) = timeout(GRACE, client.wait()).await {
        return status;
    }
    client.kill().await?;
    client.wait().await
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id()?.cast_signed())
}

fn with_environment(line: &DelayLine, command: std::process::Command) -> Command {
    let mut command = Command::from(command);
    command
        .env("SSHOAL_WAN_SERVER", line.server_address().to_string())
        .env("SSHOAL_WAN_SERVER_NETNS", line.server_namespace().name())
        .env("SSHOAL_WAN_CLIENT_NETNS", line.client_namespace().name());
    command
}

/// A command killed by a signal gives 128 and the signal's number, as a shell's does.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or(status.signal().map(|number| 128 + number))
        .unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn print_counts(line: &DelayLine) {
    for (name, direction) in [
        ("to the server", Direction::ClientToServer),
        ("to the client", Direction::ServerToClient),
    ] {
        let seen = line.counters(direction);
        eprintln!(
            "wan: {name}: {} packets, {} bytes, {} lost, {} dropped for want of room",
            seen.packets, seen.bytes, seen.lost, seen.overflowed
        );
    }
    let flights = line.flights();
    eprintln!(
        "wan: flights of data: {} to the server, {} to the client",
        flights.client_to_server, flights.server_to_client
    );
    let connections = line.connections();
    for connection in connections.iter().take(CONNECTIONS_SHOWN) {
        eprintln!(
            "wan: {} to {}: {} round trips, {} of them for data alone",
            connection.client,
            connection.server,
            connection.round_trips(),
            connection.data_round_trips()
        );
    }
    if connections.len() > CONNECTIONS_SHOWN {
        eprintln!(
            "wan: and {} more connections",
            connections.len() - CONNECTIONS_SHOWN
        );
    }
}

fn parse_milliseconds(text: &str) -> Result<Duration, String> {
    let milliseconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).map_err(|error| error.to_string())
}

/// A whole number of bits a second, or of kbit, mbit, gbit: powers of 1000, as tc(8) writes them.
fn parse_rate(text: &str) -> Result<NonZeroU64, String> {
    const UNITS: [(&str, u64); 4] = [
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("bit", 1),
    ];
    let lower = text.to_ascii_lowercase();
    let (digits, unit) = UNITS
        .iter()
        .find_map(|&(suffix, unit)| Some((lower.strip_suffix(suffix)?, unit)))
        .unwrap_or((&lower, 1));
    let number: u64 = digits
        .parse()
        .map_err(|_| "write a whole number and kbit, mbit or gbit".to_owned())?;
    number
        .checked_mul(unit)
        .and_then(NonZeroU64::new)
        .ok_or_else(|| "a rate is at least 1 bit a second and below 2^64".to_owned())
}

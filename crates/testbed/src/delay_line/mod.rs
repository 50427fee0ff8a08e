//! A link with delay, limited rate and loss between two network namespaces, for kernels without netem.
//!
//! ```text
//!  client's namespace                   this process                    server's namespace
//!  10.77.0.1 -- wan0 (TUN) --> take_in -> queue -> give_out --> (TUN) wan0 -- 10.77.0.2, 127.1.0.0 and up
//!                     (TUN) <-- give_out <- queue <- take_in <-- (TUN)
//! ```
//!
//! Seen from the client, 127.1.0.0 to 127.255.255.255 lie beyond the line, so that any number of servers on
//! loopback addresses can be put behind it as they are; 127.0.0.0/16 stays the client's own.
//!
//! The devices leave TCP segmentation and checksums to each other (IFF_VNET_HDR), so that packets of 64 KiB
//! pass whole and a gigabyte costs little; rate, loss and the queue's length work on the segments inside.
//! The namespaces have nothing but this line and their loopback interfaces, and go when the line is dropped.
//!
//! Files, in the order of a packet's way: `tun` reads it, `packet` knows its segments, `monitor` counts
//! it, `queue` holds it, `pump` drives them all. `queue` and `monitor` are pure.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, io};

mod monitor;
mod namespace;
mod packet;
mod pump;
mod queue;
mod spec;
mod tun;

pub use monitor::{
    ConnectionTrips, Direction, DirectionCounters, Flights, MAX_CONNECTIONS, MAX_RECORDS,
    PacketRecord,
};
pub use namespace::Namespace;
pub use packet::flag;
pub use spec::{LineError, LineSpec};

use pump::{Pump, SharedMonitor};
use tun::{DEVICE, Tun};

const CLIENT_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// How often [`DelayLine::wait_listening`] looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// A running line. Dropping it ends the line and removes both namespaces.
#[derive(Debug)]
pub struct DelayLine {
    client: Namespace,
    server: Namespace,
    monitor: SharedMonitor,
    /// Dropping it tells the pump to end.
    stop: Option<OwnedFd>,
    pump: Option<JoinHandle<io::Result<()>>>,
}

impl DelayLine {
    /// Make both namespaces and start to move packets between them. Needs root and `ip` (iproute2).
    pub fn start(spec: LineSpec) -> Result<DelayLine, LineError> {
        spec.check()?;
        namespace::remove_abandoned();
        let client = Namespace::create("client")?;
        let server = Namespace::create("server")?;
        let client_end = open_end(&client, CLIENT_ADDRESS)?;
        let server_end = open_end(&server, SERVER_ADDRESS)?;
        send_loopback_over_the_line(&client)?;

        let monitor = SharedMonitor::default();
        let (stopped, stop) = io::pipe().map_err(LineError::system("make a pipe"))?;
        let pump = Pump::new(
            &spec,
            client_end,
            server_end,
            monitor.clone(),
            stopped.into(),
        );
        let pump = thread::Builder::new()
            .name("delay-line".to_owned())
            .spawn(move || pump.run())
            .map_err(LineError::system("start the line's thread"))?;
        Ok(DelayLine {
            client,
            server,
            monitor,
            stop: Some(stop.into()),
            pump: Some(pump),
        })
    }

    /// The client's side.
    pub fn client_namespace(&self) -> &Namespace {
        &self.client
    }

    /// The server's side.
    pub fn server_namespace(&self) -> &Namespace {
        &self.server
    }

    /// The client's only address.
    pub fn client_address(&self) -> Ipv4Addr {
        CLIENT_ADDRESS
    }

    /// The server's address on the link. Further ones: every address of 127.1.0.0 to 127.255.255.255.
    pub fn server_address(&self) -> Ipv4Addr {
        SERVER_ADDRESS
    }

    /// A command that will run `program` on the client's side.
    pub fn command_in_client(&self, program: impl AsRef<OsStr>) -> Command {
        self.client.command(program)
    }

    /// A command that will run `program` on the server's side.
    pub fn command_in_server(&self, program: impl AsRef<OsStr>) -> Command {
        self.server.command(program)
    }

    /// Whether something listens on this TCP port on the server's side. Nothing is sent to it: the kernel's
    /// list of sockets is read.
    pub fn is_listening(&self, port: u16) -> Result<bool, LineError> {
        self.server
            .run(|| listening(port))?
            .map_err(LineError::system("list the server's sockets"))
    }

    /// Wait until something listens on this TCP port on the server's side.
    pub fn wait_listening(&self, port: u16, at_most: Duration) -> Result<(), LineError> {
        let begun = Instant::now();
        while !self.is_listening(port)? {
            let waited = begun.elapsed();
            if waited >= at_most {
                return Err(LineError::NotListening { port, waited });
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    /// What one direction has seen so far.
    pub fn counters(&self, direction: Direction) -> DirectionCounters {
        self.monitor.lock().counters(direction)
    }

    /// How often data has turned its direction so far.
    pub fn flights(&self) -> Flights {
        self.monitor.lock().flights()
    }

    /// The trips of every connection so far, at most [`MAX_CONNECTIONS`].
    pub fn connections(&self) -> Vec<ConnectionTrips> {
        self.monitor.lock().connections()
    }

    /// Begin all counts anew. Connections that are open now are followed no longer.
    pub fn clear_counts(&self) {
        self.monitor.lock().clear();
    }

    /// Record every TCP packet from now on, at most [`MAX_RECORDS`]; drops earlier records.
    pub fn start_capture(&self) {
        self.monitor.lock().start_capture();
    }

    /// The records since [`DelayLine::start_capture`].
    pub fn stop_capture(&self) -> Vec<PacketRecord> {
        self.monitor.lock().stop_capture()
    }

    /// End the line, and say whether it worked to its end: an error means that it had stopped before.
    pub fn finish(mut self) -> Result<(), LineError> {
        self.end()
            .map_err(LineError::system("move packets along the line"))
    }

    fn end(&mut self) -> io::Result<()> {
        self.stop = None;
        self.pump.take().map_or(Ok(()), |pump| {
            pump.join()
                .unwrap_or_else(|_| Err(io::Error::other("the line's thread panicked")))
        })
    }
}

impl Drop for DelayLine {
    fn drop(&mut self) {
        // Who wants to know how it went calls `finish`.
        let _ = self.end();
    }
}

/// Make a namespace's end of the line and bring it up.
fn open_end(namespace: &Namespace, address: Ipv4Addr) -> Result<Tun, LineError> {
    let end = namespace
        .run(Tun::create)?
        .map_err(LineError::system("make a TUN device (/dev/net/tun)"))?;
    // The kernel drops loopback addresses that come from a link, unless told otherwise.
    let localnet = format!("/proc/sys/net/ipv4/conf/{DEVICE}/route_localnet");
    namespace
        .run(|| fs::write(localnet, "1"))?
        .map_err(LineError::system("set route_localnet"))?;
    // No IPv6 address and no multicast: the kernel must not send anything by itself that would be counted.
    // A long queue before the device: packets are to be dropped by the line or not at all.
    namespace.configure(&format!(
        "link set {DEVICE} addrgenmode none\n\
         link set {DEVICE} multicast off txqueuelen 10000 mtu 1500 up\n\
         addr add {address}/24 dev {DEVICE}\n"
    ))?;
    Ok(end)
}

/// Have all of 127.0.0.0/8 but 127.0.0.0/16 reached through the line.
fn send_loopback_over_the_line(client: &Namespace) -> Result<(), LineError> {
    client.configure(&format!(
        "route del table local local 127.0.0.0/8 dev lo\n\
         route add table local local 127.0.0.0/16 dev lo src 127.0.0.1\n\
         route add table local 127.0.0.0/8 dev {DEVICE} src {CLIENT_ADDRESS}\n"
    ))
}

/// Whether the calling thread's namespace has a listening TCP socket on this port (proc(5), /proc/net/tcp).
fn listening(port: u16) -> io::Result<bool> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    for file in ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"] {
        let sockets = fs::read_to_string(file)?;
        let found = sockets.lines().skip(1).any(|line| {
            let mut columns = line.split_ascii_whitespace().skip(1);
            let local = columns
                .next()
                .is_some_and(|address| address.ends_with(&suffix));
            local && columns.nth(1) == Some(LISTEN)
        });
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

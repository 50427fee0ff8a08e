//! One record of a run's journal.

use sshoal_wire::{DecodeError, Decoder, Put};

use crate::frame;

/// The longest body: an argument of a command line, a piece of output.
pub const MAX_RECORD: usize = 1024 * 1024;
/// Octets of hosts after which those that follow get a record of their own.
const HOSTS_OCTETS: usize = 64 * 1024;
/// Octets of output in one record.
pub const MAX_OUTPUT: usize = 256 * 1024;

const PLAN: u8 = 1;
const ARGUMENT: u8 = 2;
const FILE: u8 = 3;
const ONCE: u8 = 4;
const HOSTS: u8 = 5;
const PLANNED: u8 = 6;
const BEGAN: u8 = 7;
const SENT: u8 = 8;
const UNSENT: u8 = 9;
const RESULT: u8 = 10;
const OUTPUT: u8 = 11;
const ENDED: u8 = 12;
const KILLED: u8 = 13;
const STATUS: u8 = 14;

const EXIT: u8 = 0;
const SIGNAL: u8 = 1;
const FAILED: u8 = 2;
const NOT_STARTED: u8 = 3;

const GONE: u8 = 0;
const GONE_AFTER_KILL: u8 = 1;
const NOT_CONFIRMED: u8 = 2;

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRecord {
    /// A run begins.
    Plan(Plan),
    /// The next word of its command line.
    Argument(Vec<u8>),
    /// A file that it reads.
    File(FileIdentity),
    /// Something that it reads can be read once only: what, and why.
    Once(String),
    /// The next of its hosts, in the order in which they start.
    Hosts(Vec<PlannedHost>),
    /// The plan is whole.
    Planned,
    /// A process begins to carry it out.
    Began {
        /// Milliseconds since 1970.
        at_ms: u64,
        /// Its number.
        pid: u32,
        /// Which start of the machine it is, and what its records survive; `None` if it does not say.
        boot: Option<Boot>,
    },
    /// The commands of these hosts are about to leave.
    Sent(Vec<u32>),
    /// The command of this host is proven not to have run after all, and may be sent again.
    Unsent(u32),
    /// A host has ended.
    Result {
        /// The host.
        host: u32,
        /// How.
        ending: HostEnding,
    },
    /// What a command has written.
    Output {
        /// The host.
        host: u32,
        /// Whether to standard error.
        is_stderr: bool,
        /// The octets.
        octets: Vec<u8>,
    },
    /// The process has seen all of its hosts end.
    Ended {
        /// Milliseconds since 1970.
        at_ms: u64,
        /// The number of the signal that cut it short; 0 for none.
        signal: u32,
    },
    /// A host's command had to end, and it was looked whether it is gone; its result follows.
    Killed {
        /// The host.
        host: u32,
        /// What was seen.
        verdict: Verdict,
    },
    /// The status that the process exits with.
    Status(u8),
}

/// A start of the machine on which a run is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    /// The kernel's name for it: `/proc/sys/kernel/random/boot_id` (random(4)) as a number.
    pub id: [u8; 16],
    /// Whether what the process writes is on the disk before it goes by it.
    pub is_synced: bool,
}

/// Whether a command that had to end is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing of it is left.
    Gone,
    /// The same, but it took SIGKILL.
    GoneAfterKill,
    /// It is not known, or something is left: why, or what.
    NotConfirmed(String),
}

/// What is to be done, but for its words and hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The program's version.
    pub version: String,
    /// The command: `run` or `each`.
    pub command: String,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The working directory.
    pub folder: Vec<u8>,
    /// Whether output is kept here.
    pub keeps_output: bool,
    /// How many of the first hosts are canaries.
    pub canaries: u32,
}

/// A file that is read again when the run is gone on with, if it is still the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileIdentity {
    /// What it is to the run: `standard input`, `the script`.
    pub role: String,
    /// Where it is.
    pub path: Vec<u8>,
    /// Octets.
    pub len: u64,
    /// When it was changed, nanoseconds since 1970.
    pub modified_ns: u64,
    /// SipHash-2-4 with a key of zeros, 128 bits.
    pub hash: [u8; 16],
}

/// A host as it was planned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlannedHost {
    /// What it is called in output.
    pub label: String,
    /// Its name as the user wrote it.
    pub name: String,
    /// The user that the list names, if it does.
    pub user: Option<String>,
    /// The port that the list names; 0 for none.
    pub port: u16,
    /// What else is said of it, keyword and value.
    pub options: Vec<(String, String)>,
    /// The user that is logged in as, if that is known.
    pub login_user: Option<String>,
    /// The port that is connected to; 0 if that is not known.
    pub login_port: u16,
    /// How it is reached; empty for a command on this machine.
    pub transport: String,
    /// Why it is not reached natively.
    pub why: Option<String>,
}

/// How a host ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEnding {
    /// How its command did.
    pub ending: Ending,
    /// How often it was started.
    pub attempts: u32,
    /// Microseconds of lookup, connect, login, key exchange, authentication, session, command, waiting and all, as far as
    /// they came to be.
    pub times_us: [Option<u64>; 9],
}

/// How a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It returned this status.
    Exit(u32),
    /// A signal ended it.
    Signal {
        /// Without `SIG`.
        name: String,
        /// Whether the server reports a core dump.
        core_dumped: bool,
        /// The server's explanation.
        message: String,
    },
    /// The host failed before it gave a status.
    Failed {
        /// The failure's name.
        kind: String,
        /// What happened.
        detail: String,
        /// What to do about it.
        remedy: String,
        /// What is known of the command.
        known: Known,
    },
    /// The host's turn did not come.
    NotStarted,
}

/// What is known of a command whose host failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// It was not sent.
    NotSent,
    /// The server threw it away.
    Discarded,
    /// It may have run.
    MayHaveRun,
    /// It has run, at least in part.
    Ran,
}

/// Appends the records of hosts, as many as they need.
pub fn put_hosts(hosts: impl IntoIterator<Item = PlannedHost>, out: &mut Vec<u8>) {
    let mut bodies = Vec::new();
    let mut count = 0;
    let mut end = |bodies: &mut Vec<u8>, count: &mut u32| {
        frame::put_with(out, |out| {
            out.put_u8(HOSTS);
            out.put_u32(*count);
            out.put_bytes(bodies);
        });
        bodies.clear();
        *count = 0;
    };
    for host in hosts {
        host.encode(&mut bodies);
        count += 1;
        if bodies.len() >= HOSTS_OCTETS {
            end(&mut bodies, &mut count);
        }
    }
    if count > 0 {
        end(&mut bodies, &mut count);
    }
}

/// Appends the record of a command that is about to leave.
pub fn put_sent(host: u32, out: &mut Vec<u8>) {
    frame::put_with(out, |out| {
        out.put_u8(SENT);
        out.put_u32(1);
        out.put_u32(host);
    });
}

/// Appends the records of what a command has written.
pub fn put_output(host: u32, is_stderr: bool, octets: &[u8], out: &mut Vec<u8>) {
    for piece in octets.chunks(MAX_OUTPUT) {
        frame::put_with(out, |out| {
            out.put_u8(OUTPUT);
            out.put_u32(host);
            out.put_boolean(is_stderr);
            out.put_bytes(piece);
        });
    }
}

impl RunRecord {
    /// Appends the record in its frame.
    pub fn put(&self, out: &mut Vec<u8>) {
        frame::put_with(out, |out| self.encode(out));
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            RunRecord::Plan(plan) => {
                out.put_u8(PLAN);
                plan.encode(out);
            }
            RunRecord::Argument(word) => {
                out.put_u8(ARGUMENT);
                out.put_bytes(word);
            }
            RunRecord::File(file) => {
                out.put_u8(FILE);
                file.encode(out);
            }
            RunRecord::Once(why) => {
                out.put_u8(ONCE);
                out.put_bytes(why.as_bytes());
            }
            RunRecord::Hosts(hosts) => {
                out.put_u8(HOSTS);
                out.put_u32(hosts.len() as u32);
                hosts.iter().for_each(|host| host.encode(out));
            }
            RunRecord::Planned => out.put_u8(PLANNED),
            RunRecord::Began { at_ms, pid, boot } => {
                out.put_u8(BEGAN);
                out.put_u64(*at_ms);
                out.put_u32(*pid);
                if let Some(boot) = boot {
                    out.put_boolean(boot.is_synced);
                    out.put_bytes(&boot.id);
                }
            }
            RunRecord::Sent(hosts) => {
                out.put_u8(SENT);
                out.put_u32(hosts.len() as u32);
                hosts.iter().for_each(|host| out.put_u32(*host));
            }
            RunRecord::Unsent(host) => {
                out.put_u8(UNSENT);
                out.put_u32(*host);
            }
            RunRecord::Result { host, ending } => {
                out.put_u8(RESULT);
                out.put_u32(*host);
                ending.encode(out);
            }
            RunRecord::Output {
                host,
                is_stderr,
                octets,
            } => {
                out.put_u8(OUTPUT);
                out.put_u32(*host);
                out.put_boolean(*is_stderr);
                out.put_bytes(octets);
            }
            RunRecord::Ended { at_ms, signal } => {
                out.put_u8(ENDED);
                out.put_u64(*at_ms);
                out.put_u32(*signal);
            }
            RunRecord::Killed { host, verdict } => {
                out.put_u8(KILLED);
                out.put_u32(*host);
                verdict.encode(out);
            }
            RunRecord::Status(status) => {
                out.put_u8(STATUS);
                out.put_u8(*status);
            }
        }
    }

    /// `None`: a kind that is not known.
    pub(crate) fn decode(body: &[u8]) -> Result<Option<RunRecord>, DecodeError> {
        let mut fields = Decoder::named("record of a run", body);
        let record = match fields.field("kind").u8()? {
            PLAN => RunRecord::Plan(Plan::decode(&mut fields)?),
            ARGUMENT => RunRecord::Argument(fields.rest().to_vec()),
            FILE => RunRecord::File(FileIdentity::decode(&mut fields)?),
            ONCE => RunRecord::Once(lossy(fields.rest())),
            HOSTS => {
                // Each takes more than a dozen octets: the body's length bounds what is made of the count.
                let count = fields.field("count").u32()?;
                let hosts = (0..count).map(|_| PlannedHost::decode(&mut fields));
                RunRecord::Hosts(hosts.collect::<Result<_, _>>()?)
            }
            PLANNED => RunRecord::Planned,
            BEGAN => RunRecord::Began {
                at_ms: fields.field("time").u64()?,
                pid: fields.field("process").u32()?,
                // The first version has nothing behind the process.
                boot: match fields.unread() {
                    [] => None,
                    _ => Some(Boot {
                        is_synced: fields.field("synced").boolean()?,
                        id: fields.field("boot").array()?,
                    }),
                },
            },
            SENT => {
                let count = fields.field("count").u32()?;
                let hosts = (0..count).map(|_| fields.field("host").u32());
                RunRecord::Sent(hosts.collect::<Result<_, _>>()?)
            }
            UNSENT => RunRecord::Unsent(fields.field("host").u32()?),
            RESULT => RunRecord::Result {
                host: fields.field("host").u32()?,
                ending: HostEnding::decode(&mut fields)?,
            },
            OUTPUT => RunRecord::Output {
                host: fields.field("host").u32()?,
                is_stderr: fields.field("stream").boolean()?,
                octets: fields.rest().to_vec(),
            },
            ENDED => RunRecord::Ended {
                at_ms: fields.field("time").u64()?,
                signal: fields.field("signal").u32()?,
            },
            KILLED => RunRecord::Killed {
                host: fields.field("host").u32()?,
                verdict: Verdict::decode(&mut fields)?,
            },
            STATUS => RunRecord::Status(fields.field("status").u8()?),
            _ => return Ok(None),
        };
        fields.finish()?;
        Ok(Some(record))
    }
}

impl Plan {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(self.version.as_bytes());
        out.put_string(self.command.as_bytes());
        out.put_u64(self.at_ms);
        out.put_string(&self.folder);
        out.put_boolean(self.keeps_output);
        out.put_u32(self.canaries);
    }

    fn decode(fields: &mut Decoder<'_>) -> Result<Plan, DecodeError> {
        Ok(Plan {
            version: text(fields, "version")?,
            command: text(fields, "command")?,
            at_ms: fields.field("time").u64()?,
            folder: fields.field("folder").string()?.to_vec(),
            keeps_output: fields.field("output").boolean()?,
            canaries: fields.field("canaries").u32()?,
        })
    }
}

impl FileIdentity {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(self.role.as_bytes());
        out.put_string(&self.path);
        out.put_u64(self.len);
        out.put_u64(self.modified_ns);
        out.put_bytes(&self.hash);
    }

    fn decode(fields: &mut Decoder<'_>) -> Result<FileIdentity, DecodeError> {
        Ok(FileIdentity {
            role: text(fields, "role")?,
            path: fields.field("path").string()?.to_vec(),
            len: fields.field("length").u64()?,
            modified_ns: fields.field("time of change").u64()?,
            hash: fields.field("hash").array()?,
        })
    }
}

impl PlannedHost {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(self.label.as_bytes());
        out.put_string(self.name.as_bytes());
        put_option(self.user.as_deref(), out);
        put_number(self.port.into(), out);
        put_number(self.options.len() as u64, out);
        for (keyword, value) in &self.options {
            out.put_string(keyword.as_bytes());
            out.put_string(value.as_bytes());
        }
        put_option(self.login_user.as_deref(), out);
        put_number(self.login_port.into(), out);
        out.put_string(self.transport.as_bytes());
        put_option(self.why.as_deref(), out);
    }

    fn decode(fields: &mut Decoder<'_>) -> Result<PlannedHost, DecodeError> {
        Ok(PlannedHost {
            label: text(fields, "label")?,
            name: text(fields, "name")?,
            user: option(fields, "user")?,
            port: number(fields, "port")? as u16,
            options: {
                let count = number(fields, "options")?;
                let options = (0..count).map(|_| {
                    let keyword = text(fields, "keyword")?;
                    Ok((keyword, text(fields, "value")?))
                });
                options.collect::<Result<_, _>>()?
            },
            login_user: option(fields, "login user")?,
            login_port: number(fields, "login port")? as u16,
            transport: text(fields, "transport")?,
            why: option(fields, "reason")?,
        })
    }
}

impl HostEnding {
    fn encode(&self, out: &mut Vec<u8>) {
        self.ending.encode(out);
        put_number(self.attempts.into(), out);
        for time in self.times_us {
            // One more than the time; 0 for none.
            put_number(time.map_or(0, |time| time.saturating_add(1)), out);
        }
    }

    fn decode(fields: &mut Decoder<'_>) -> Result<HostEnding, DecodeError> {
        let ending = Ending::decode(fields)?;
        let attempts = number(fields, "attempts")? as u32;
        let mut times_us = [None; 9];
        for time in &mut times_us {
            *time = number(fields, "time")?.checked_sub(1);
        }
        Ok(HostEnding {
            ending,
            attempts,
            times_us,
        })
    }
}

impl Ending {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Ending::Exit(status) => {
                out.put_u8(EXIT);
                put_number((*status).into(), out);
            }
            Ending::Signal {
                name,
                core_dumped,
                message,
            } => {
                out.put_u8(SIGNAL);
                out.put_string(name.as_bytes());
                out.put_boolean(*core_dumped);
                out.put_string(message.as_bytes());
            }
            Ending::Failed {
                kind,
                detail,
                remedy,
                known,
            } => {
                out.put_u8(FAILED);
                out.put_string(kind.as_bytes());
                out.put_string(detail.as_bytes());
                out.put_string(remedy.as_bytes());
                out.put_u8(*known as u8);
            }
            Ending::NotStarted => out.put_u8(NOT_STARTED),
        }
    }

    fn decode(fields: &mut Decoder<'_>) -> Result<Ending, DecodeError> {
        Ok(match fields.field("outcome").u8()? {
            EXIT => Ending::Exit(number(fields, "status")? as u32),
            SIGNAL => Ending::Signal {
                name: text(fields, "signal")?,
                core_dumped: fields.field("core dumped").boolean()?,
                message: text(fields, "message")?,
            },
            FAILED => Ending::Failed {
                kind: text(fields, "failure")?,
                detail: text(fields, "detail")?,
                remedy: text(fields, "remedy")?,
                known: match fields.field("fate").u8()? {
                    0 => Known::NotSent,
                    1 => Known::Discarded,
                    3 => Known::Ran,
                    // What is not understood may have run.
                    _ => Known::MayHaveRun,
                },
            },
            _ => Ending::NotStarted,
        })
    }
}

impl Verdict {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Verdict::Gone => out.put_u8(GONE),
            Verdict::GoneAfterKill => out.put_u8(GONE_AFTER_KILL),
            Verdict::NotConfirmed(why) => {
                out.put_u8(NOT_CONFIRMED);
                out.put_string(why.as_bytes());
            }
        }
    }

    fn decode(fields: &mut Decoder<'_>) -> Result<Verdict, DecodeError> {
        Ok(match fields.field("verdict").u8()? {
            GONE => Verdict::Gone,
            GONE_AFTER_KILL => Verdict::GoneAfterKill,
            _ => Verdict::NotConfirmed(text(fields, "reason")?),
        })
    }
}

fn lossy(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn text(fields: &mut Decoder<'_>, name: &'static str) -> Result<String, DecodeError> {
    fields.field(name).string().map(lossy)
}

fn put_option(text: Option<&str>, out: &mut Vec<u8>) {
    out.put_boolean(text.is_some());
    if let Some(text) = text {
        out.put_string(text.as_bytes());
    }
}

fn option(fields: &mut Decoder<'_>, name: &'static str) -> Result<Option<String>, DecodeError> {
    Ok(match fields.field(name).boolean()? {
        true => Some(text(fields, name)?),
        false => None,
    })
}

/// Seven bits an octet, the least first; the highest bit says that more follow.
fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.put_u8(number as u8 | 0x80);
        number >>= 7;
    }
    out.put_u8(number as u8);
}

fn number(fields: &mut Decoder<'_>, name: &'static str) -> Result<u64, DecodeError> {
    let mut number = 0u64;
    for shift in (0..u64::BITS).step_by(7) {
        let octet = fields.field(name).u8()?;
        number |= u64::from(octet & 0x7f) << shift;
        if octet & 0x80 == 0 {
            break;
        }
    }
    Ok(number)
}

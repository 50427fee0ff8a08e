//! The trace itself: which events, of whom, and their pages as the kernel has them.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use crate::failure::Failure;
use crate::process;
use crate::told::Follower;
use crate::tracefs::Instance;
use crate::without::{EVENT_FORK, Without};

/// Events whose lack means that there is nothing to be followed.
const NEEDED: [&str; 5] = [
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "sched/sched_switch",
    "sched/sched_waking",
];
/// Those that are taken where there are, and what is not told without one.
const WELCOME: [(&str, Option<&str>); 5] = [
    ("task/task_newtask", None),
    ("sock/inet_sock_set_state", Some("connections")),
    ("block/block_rq_issue", Some("disks")),
    ("syscalls/sys_enter_openat", Some("files")),
    ("syscalls/sys_exit_openat", None),
];
/// Tells the kernel's own number of a process whose setting is written back unchanged.
const TELLING: &str = "oom/oom_score_adj_update";
/// What we write into our own instance: the kernel adds its number of who has written.
const OWN_MARK: &str = "sshoal-tracer-begins";
/// Kernel memory for all processors together, and for one, KiB.
const ALL_BUFFERS: usize = 32 * 1024;
const ONE_BUFFER: [usize; 2] = [512, 8 * 1024];
/// What a page of the kernel's ring buffer may have, octets; those of aarch64 have up to 64 KiB.
const MAX_PAGE: usize = 64 * 1024;
/// Its header: a time, and how many octets of the rest are used (events/header_page).
const PAGE_HEADER: usize = 16;
/// The low bits of that number are the octets; others tell of lost records.
const USED: u64 = (1 << 20) - 1;
/// What is kept of a trace until it is sent, octets.
const MAX_KEPT: usize = 48 * 1024 * 1024;
/// O_NONBLOCK of Linux, on both processors.
const NON_BLOCKING: i32 = 0o4000;

/// A trace that goes on.
pub(crate) struct Recording<'a> {
    instance: &'a Instance,
    /// The kernel's number of the process that is followed.
    pub(crate) followed: u32,
    /// Each processor's pages.
    sources: Vec<(u16, File)>,
    kept: VecDeque<(u16, Vec<u8>)>,
    octets: usize,
    /// No more could be kept.
    is_full: bool,
    /// What this kernel does not tell.
    pub(crate) lacks: Vec<&'static str>,
    /// Where the kernel does not follow forks: the process, and the children that it had before.
    before: Option<(u32, Vec<u32>)>,
}

impl<'a> Recording<'a> {
    /// Prepares an instance to follow a process and all that comes of it. Nothing is recorded yet.
    ///
    /// # Errors
    ///
    /// The kernel cannot.
    pub(crate) fn prepare(
        instance: &'a Instance,
        of: u32,
        without: &Without,
    ) -> Result<Recording<'a>, Failure> {
        instance.set("tracing_on", "0")?;
        let followed = number(instance, of)?;
        instance.set("trace_clock", "mono")?;
        // The beginning of a login tells more than its end.
        instance.set("options/overwrite", "0")?;
        let mut lacks = Vec::new();
        // Linux 4.7. Before, all of the host is recorded, and who does not belong here is left out later.
        let follows_forks = !without.has(EVENT_FORK)
            && instance.set("options/event-fork", "1").is_ok()
            && instance.set("set_event_pid", &followed.to_string()).is_ok();
        let before = (!follows_forks).then(|| (of, process::children(of)));
        if !follows_forks {
            lacks.push(EVENT_FORK);
        }
        let processors = processors(instance);
        let [least, most] = ONE_BUFFER;
        let size = (ALL_BUFFERS / processors.len().max(1)).clamp(least, most);
        instance.set("buffer_size_kb", &size.to_string())?;
        for event in NEEDED {
            instance.set(&format!("events/{event}/enable"), "1")?;
        }
        for (event, tells) in WELCOME {
            let is_unwanted = tells.is_some_and(|tells| without.has(tells));
            let enable = format!("events/{event}/enable");
            if is_unwanted || instance.set(&enable, "1").is_err() {
                lacks.extend(tells);
            }
        }
        let mut sources = Vec::new();
        for processor in processors {
            let path = instance
                .folder
                .join(format!("per_cpu/cpu{processor}/trace_pipe_raw"));
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(NON_BLOCKING)
                .open(&path)
                .map_err(|error| Failure::system("cannot read", &path, &error))?;
            sources.push((processor, file));
        }
        Ok(Recording {
            instance,
            followed,
            sources,
            kept: VecDeque::new(),
            octets: 0,
            is_full: false,
            lacks,
            before,
        })
    }

    /// The descriptions of all events that are recorded: "SYSTEM/NAME", then the lines of its `format`.
    pub(crate) fn formats(&self) -> Vec<String> {
        let group = &self.instance.group;
        let probes = fs::read_dir(self.instance.folder.join("events").join(group));
        let probes = probes.into_iter().flatten().flatten().filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            entry.path().is_dir().then(|| format!("{group}/{name}"))
        });
        let welcome = WELCOME.iter().map(|(event, _)| event);
        let events = NEEDED.iter().chain(welcome).map(|it| (*it).to_owned());
        let described = events.chain(probes).filter_map(|event| {
            let format = self.instance.text(&format!("events/{event}/format"));
            // What follows is C.
            let format = format.split("\nprint fmt").next().unwrap_or_default();
            (!format.is_empty()).then(|| format!("{event}\n{format}\n"))
        });
        described.collect()
    }

    /// Begins to record.
    ///
    /// # Errors
    ///
    /// The kernel says no.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        self.instance.set("tracing_on", "1")
    }

    /// Ends it, and gives the pages out, each with its processor.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub(crate) fn end(mut self) -> io::Result<VecDeque<(u16, Vec<u8>)>> {
        // Whatever is written now is none of the login's.
        let _ = self.instance.set("tracing_on", "0");
        self.take()?;
        Ok(self.kept)
    }

    /// How many records each processor has lost, a line each: "CPU OVERRUN DROPPED".
    pub(crate) fn lost(&self) -> String {
        let line = |(processor, _): &(u16, File)| {
            let stats = self.instance.text(&format!("per_cpu/cpu{processor}/stats"));
            let number = |name: &str| {
                let line = stats.lines().find_map(|line| line.strip_prefix(name));
                line.map_or("0", str::trim).to_owned()
            };
            let (overrun, dropped) = (number("overrun:"), number("dropped events:"));
            format!("{processor} {overrun} {dropped}\n")
        };
        self.sources.iter().map(line).collect()
    }
}

impl Follower for Recording<'_> {
    fn take(&mut self) -> io::Result<()> {
        let mut page = vec![0; MAX_PAGE];
        for (processor, file) in &mut self.sources {
            loop {
                let read = match file.read(&mut page) {
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                    Err(error) => return Err(error),
                };
                let Some(used) = used(&page[..read]) else {
                    break;
                };
                if self.octets + used > MAX_KEPT {
                    self.is_full = true;
                    return Ok(());
                }
                self.octets += used;
                self.kept.push_back((*processor, page[..used].to_vec()));
            }
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.is_full
    }

    fn follows_others(&self) -> bool {
        if let Some((followed, before)) = &self.before {
            let now = process::children(*followed);
            return now.iter().any(|pid| !before.contains(pid));
        }
        let followed = self.followed.to_string();
        let all = self.instance.text("set_event_pid");
        all.lines().any(|pid| pid != followed)
    }
}

/// The octets of a page that are used, its header with them; `None` if there is nothing in it.
fn used(page: &[u8]) -> Option<usize> {
    let commit = page.get(8..PAGE_HEADER)?;
    let commit = u64::from_ne_bytes(commit.try_into().ok()?);
    let used = PAGE_HEADER + usize::try_from(commit & USED).ok()?;
    (used > PAGE_HEADER).then_some(used.min(page.len()))
}

fn processors(instance: &Instance) -> Vec<u16> {
    let folders = fs::read_dir(instance.folder.join("per_cpu"));
    let number = |name: String| name.strip_prefix("cpu")?.parse().ok();
    let mut numbers: Vec<u16> = folders
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| number(entry.file_name().to_string_lossy().into_owned()))
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The kernel's own number of a process. In a process namespace ours differ: then its oom_score_adj is written as it is, and
/// the kernel's event of that tells the number.
///
/// # Errors
///
/// It cannot be found out.
fn number(instance: &Instance, pid: u32) -> Result<u32, Failure> {
    if process::numbers_are_the_kernels() {
        return Ok(pid);
    }
    let unknown = || {
        Failure::new(
            "not-permitted",
            "this is a container with processes of its own, whose numbers for the kernel cannot be found out",
        )
    };
    let path = format!("/proc/{pid}/oom_score_adj");
    let setting = fs::read_to_string(&path).map_err(|_| unknown())?;
    let enable = format!("events/{TELLING}/enable");
    instance.set(&enable, "1").map_err(|_| unknown())?;
    instance.set("tracing_on", "1")?;
    let marked = instance.set("trace_marker", OWN_MARK);
    let written = fs::write(&path, setting.trim());
    instance.set("tracing_on", "0")?;
    instance.set(&enable, "0")?;
    marked.map_err(|_| unknown())?;
    written.map_err(|_| unknown())?;
    let found = told(&instance.text("trace")).ok_or_else(unknown)?;
    // Nothing of this belongs to the login.
    instance.set("trace", "\n")?;
    Ok(found)
}

/// The number in the event that we have caused ourselves: sshd's children set theirs as well, and so do other tracers.
fn told(trace: &str) -> Option<u32> {
    // "NAME-NUMBER [PROCESSOR] FLAGS TIME: EVENT: ..."
    let writer = |line: &str| {
        let (who, _) = line.split_once(" [")?;
        let (_, number) = who.trim_end().rsplit_once('-')?;
        number.parse::<u32>().ok()
    };
    let mark = format!(": {OWN_MARK}");
    let own = trace.lines().find(|line| line.ends_with(&mark));
    let own = own.and_then(writer)?;
    let events = trace
        .lines()
        .filter_map(|line| Some((line, line.split_once("oom_score_adj_update: pid=")?.1)));
    let mut ours = events.filter(|(line, _)| writer(line) == Some(own));
    ours.next()?.1.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 writes it.
    const TRACE: &str = "# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
            sshd-4242    [000] ..... 91.000001: oom_score_adj_update: pid=4242 comm=sshd oom_score_adj=0
          tracer-4711    [001] ..... 91.000002: tracing_mark_write: sshoal-tracer-begins
            sshd-4243    [000] ..... 91.000003: oom_score_adj_update: pid=4243 comm=sshd oom_score_adj=0
       <...>-4711    [001] ..... 91.000004: oom_score_adj_update: pid=815 comm=sshd oom_score_adj=-1000
         tra-cer-4712    [000] ..... 91.000005: oom_score_adj_update: pid=816 comm=sshd oom_score_adj=-1000
";

    #[test]
    fn of_several_that_set_theirs_at_once_our_own_event_counts() {
        assert_eq!(told(TRACE), Some(815));
        assert_eq!(told(&TRACE.replace(OWN_MARK, "other")), None);
        assert_eq!(told(&TRACE.replace("-4711", "-4700x")), None);
        assert_eq!(told(""), None);
    }
}

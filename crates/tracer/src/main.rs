//! Follows one login on the host that is logged in to, and tells of it on standard output. Started by `sshoal why
//! --trace` over a login that is there already; whoever reads the output is the crate `sshoal-trace`.
//!
//! ```text
//! first line, then frames:   F formats, H page header, B probes, S samples, A armed
//!   (the login under test is made; each line on standard input is answered by a C with the time)
//! end of standard input, or 30 s:   P pages or R what was told, S samples, N names, L lost, E end
//! instead of any of them:   X why not
//! ```
//!
//! By the kernel's tracing if that is to be had (`tracefs.rs`), else by the proc connector (`connector.rs`), else by looking at /proc
//! (`polling.rs`), which takes no root. `A` says by which, why by no better one, and what is not told.
//!
//! After 90 s, or so many after it follows (`--seconds`), it ends in any case, even if nobody reads what it says.
//!
//! It leaves nothing behind: its file and folder go before anything else is done (`--unlink`), its instance of tracefs and its
//! probes go at its end, by its watcher if it is killed, and by the next tracer if both are.

mod connector;
mod elf;
mod failure;
mod image;
mod kernel;
mod polling;
mod probes;
mod process;
mod recording;
mod samples;
mod stream;
mod told;
mod tracefs;
mod watch;
mod without;

use std::env;
use std::fs;
use std::io::{self, BufRead};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use failure::Failure;
use recording::Recording;
use stream::Stream;
use told::{Follower, Watching};
use tracefs::Tracefs;
use watch::Watcher;
use without::{CONNECTOR, PROC, TRACEFS, Without};

/// How long a login is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the kernel's memory is emptied: seldom, lest the login pays for it.
const EMPTIED_EVERY: Duration = Duration::from_millis(250);
/// How long it lives, at most: the next tracer takes those that are older for dead.
const LONGEST: Duration = Duration::from_secs(90);
/// How long the login's processes are waited for when its end has been told, and how often they are looked for.
const FOR_THE_REST: Duration = Duration::from_secs(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// Longest line of standard input.
const MAX_LINE: usize = 64;
/// Octets of lines that go into a frame.
const MAX_PART: usize = 64 * 1024;

/// What it is told.
#[derive(Default)]
struct Options {
    /// The process that is followed; without one the server above us.
    pid: Option<u32>,
    without: Without,
    /// How long it lives once it follows, if that is to be less than usual.
    longest: Option<Duration>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [watch::WATCH, folder] = words[..] {
        watch::run(Path::new(folder));
        return ExitCode::SUCCESS;
    }
    let mut options = Options::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--unlink" => unlink(),
            // Whether this program runs here at all.
            "--check" => return ExitCode::SUCCESS,
            "--pid" => options.pid = rest.next().and_then(|number| number.parse().ok()),
            "--without" => options.without = Without::of(rest.next().unwrap_or(&"")),
            "--seconds" => {
                let seconds = rest.next().and_then(|number| number.parse().ok());
                options.longest = seconds.map(Duration::from_secs);
            }
            _ => return ExitCode::from(2),
        }
    }
    end_after(LONGEST);
    let Ok(mut stream) = Stream::begin() else {
        return ExitCode::FAILURE;
    };
    match follow(&options, &mut stream) {
        Ok(()) => ExitCode::SUCCESS,
        Err(End::Unheard) => ExitCode::FAILURE,
        Err(End::Failed(failure)) => {
            // Whether it is heard changes nothing.
            let _ = stream.send(b'X', failure.to_string().as_bytes());
            let _ = stream.flush();
            ExitCode::FAILURE
        }
    }
}

/// Why it ends before its time.
enum End {
    /// Nobody reads what it says.
    Unheard,
    Failed(Failure),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> End {
        End::Failed(failure)
    }
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> End {
        End::Unheard
    }
}

/// Ends this process then, whatever it waits for: a client that has stopped reads nothing, and its connection lives. What is left
/// is the watcher's.
fn end_after(longest: Duration) {
    thread::spawn(move || {
        thread::sleep(longest);
        std::process::exit(1);
    });
}

/// Takes our file away, and the folder that was made for it.
fn unlink() {
    let Ok(program) = env::current_exe() else {
        return;
    };
    let _ = fs::remove_file(&program);
    if let Some(folder) = program.parent() {
        let _ = fs::remove_dir(folder);
    }
}

/// Follows a process by something else than tracefs.
type Way = fn(u32) -> Result<Watching, Failure>;

/// The whole of it, for what this process or the server above us starts.
fn follow(options: &Options, stream: &mut Stream) -> Result<(), End> {
    let listener = match options.pid {
        Some(pid) => pid,
        None => process::listener()?,
    };
    let mut refused = Vec::new();
    match by_tracefs(listener, options, stream)? {
        None => return Ok(()),
        Some(failure) => refused.push((TRACEFS, failure)),
    }
    let ways: [(&str, Way); 2] = [(CONNECTOR, connector::follow), (PROC, polling::follow)];
    for (way, follow) in ways {
        let begun = match options.without.has(way) {
            true => Err(Failure::new("not-wanted", "it is not to be used")),
            false => follow(listener),
        };
        match begun {
            Ok(watching) => {
                return by_watching((way, options), listener, watching, &refused, stream);
            }
            Err(failure) => refused.push((way, failure)),
        }
    }
    // The first reason is that of the best way.
    Err(refused.swap_remove(0).1.into())
}

/// By the kernel's own tracing; or why that cannot be.
fn by_tracefs(
    listener: u32,
    options: &Options,
    stream: &mut Stream,
) -> Result<Option<Failure>, End> {
    let instance = Tracefs::find(&options.without).and_then(|tracefs| {
        tracefs.reap();
        tracefs.instance()
    });
    let instance = match instance {
        Ok(instance) => instance,
        Err(failure) => return Ok(Some(failure)),
    };
    let watcher = Watcher::start(&instance)?;
    let traced = match Recording::prepare(&instance, listener, &options.without) {
        Ok(recording) => trace(&instance, recording, listener, options, stream).map(|()| None),
        Err(failure) => Ok(Some(failure)),
    };
    drop(instance);
    watcher.dismiss();
    let refusal = traced?;
    stream.flush()?;
    Ok(refusal)
}

fn trace(
    instance: &tracefs::Instance,
    mut recording: Recording,
    listener: u32,
    options: &Options,
    stream: &mut Stream,
) -> Result<(), End> {
    let probes = probes::add(instance, listener, &options.without);
    for format in recording.formats() {
        stream.send(b'F', format.as_bytes())?;
    }
    let header = instance.text_of_all("events/header_page");
    stream.send(b'H', header.as_bytes())?;
    stream.send(b'B', probes.lines.join("\n").as_bytes())?;
    stream.send(b'S', samples::read().as_bytes())?;
    recording.begin()?;
    let lacks = [&recording.lacks[..], &probes.lacks].concat();
    arm(stream, TRACEFS, recording.followed, &lacks, &[])?;
    options.longest.into_iter().for_each(end_after);
    let reason = wait(&mut recording, stream)?;
    let lost = recording.lost();
    for (processor, page) in recording.end()? {
        let mut content = processor.to_be_bytes().to_vec();
        content.extend(page);
        stream.send(b'P', &content)?;
    }
    stream.send(b'S', samples::read().as_bytes())?;
    let names = instance.text_of_all("saved_cmdlines");
    send_lines(stream, b'N', &names)?;
    stream.send(b'L', lost.as_bytes())?;
    stream.send(b'E', reason.as_bytes())?;
    Ok(())
}

/// By what others are told of processes, or by looking.
fn by_watching(
    (way, options): (&str, &Options),
    listener: u32,
    mut watching: Watching,
    refused: &[(&str, Failure)],
    stream: &mut Stream,
) -> Result<(), End> {
    stream.send(b'S', samples::read().as_bytes())?;
    arm(stream, way, listener, &[], refused)?;
    options.longest.into_iter().for_each(end_after);
    let reason = wait(&mut watching, stream)?;
    let (told, lost) = watching.end();
    send_lines(stream, b'R', &told)?;
    stream.send(b'S', samples::read().as_bytes())?;
    stream.send(b'L', format!("0 0 {lost}\n").as_bytes())?;
    stream.send(b'E', reason.as_bytes())?;
    stream.flush()?;
    Ok(())
}

/// As many frames as it takes: a kernel may keep names of very many processes (saved_cmdlines_size).
fn send_lines(stream: &mut Stream, letter: u8, lines: &str) -> io::Result<()> {
    let mut rest = lines.as_bytes();
    while !rest.is_empty() {
        let (part, others) = rest.split_at(part(rest));
        stream.send(letter, part)?;
        rest = others;
    }
    Ok(())
}

/// How many octets of lines make a frame: whole lines, of which none is as long as a frame.
fn part(lines: &[u8]) -> usize {
    let last = lines
        .iter()
        .take(MAX_PART)
        .rposition(|octet| *octet == b'\n');
    last.map_or(lines.len().min(MAX_PART), |last| last + 1)
}

/// Says that all is recorded from now on.
fn arm(
    stream: &mut Stream,
    by: &str,
    followed: u32,
    lacks: &[&str],
    refused: &[(&str, Failure)],
) -> io::Result<()> {
    let now = kernel::monotonic();
    let mut armed = format!("time {now}\nfollowed {followed}\nby {by}\n");
    for lack in lacks {
        armed.push_str(&format!("lacks {lack}\n"));
    }
    for (way, failure) in refused {
        armed.push_str(&format!("refused {way} {}\n", failure.words));
    }
    stream.send(b'A', armed.as_bytes())?;
    stream.flush()
}

/// Until standard input ends, or it has taken too long. Returns which of them it was.
fn wait(follower: &mut dyn Follower, stream: &mut Stream) -> Result<&'static str, End> {
    let lines = lines();
    let begun = Instant::now();
    loop {
        match lines.recv_timeout(EMPTIED_EVERY) {
            Ok(()) => {
                stream.send(b'C', kernel::monotonic().to_string().as_bytes())?;
                stream.flush()?;
            }
            Err(RecvTimeoutError::Timeout) => follower.take()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if follower.is_full() {
            return Ok("full");
        }
        if begun.elapsed() > PATIENCE {
            return Ok("late");
        }
    }
    // The last that a connection's processes do is to close it, which tells whose it was.
    let asked = Instant::now();
    while follower.follows_others() && asked.elapsed() < FOR_THE_REST {
        thread::sleep(BETWEEN_LOOKS);
        follower.take()?;
    }
    Ok("asked")
}

/// A word for each line of standard input, until that ends.
fn lines() -> Receiver<()> {
    let (said, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = io::Read::take(&mut input, MAX_LINE as u64);
            match limited.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    if said.send(()).is_err() {
                        return;
                    }
                }
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_between_two_where_they_are_longer_than_a_frame() {
        let line = "4194304 a-name-of-15-octe\n";
        let lines = line.repeat(100_000);
        let mut rest = lines.as_bytes();
        let mut frames = 0;
        while !rest.is_empty() {
            let length = part(rest);
            assert!(
                length <= MAX_PART && length.is_multiple_of(line.len()),
                "{length}"
            );
            rest = &rest[length..];
            frames += 1;
        }
        assert_eq!(
            frames,
            lines.len().div_ceil(MAX_PART / line.len() * line.len())
        );
        assert_eq!(part(b"no end"), 6);
        assert_eq!(part(&vec![b'x'; MAX_PART + 1]), MAX_PART);
    }
}

//! Follows one login on the host that is logged in to, and tells of it on standard output. Needs root. Started by `sshoal why
//! --trace` over a login that is there already; whoever reads the output is the crate `sshoal-trace`.
//!
//! ```text
//! first line, then frames:   F formats, H page header, B probes, S samples, A armed
//!   (the login under test is made; each line on standard input is answered by a C with the time)
//! end of standard input, or 30 s:   P pages, S samples, N names, L lost, E end
//! instead of any of them:   X why not
//! ```
//!
//! After 90 s (`--seconds`) it ends in any case, even if nobody reads what it says.
//!
//! It leaves nothing behind: its file and folder go before anything else is done (`--unlink`), its instance of tracefs and its
//! probes go at its end, by its watcher if it is killed, and by the next tracer if both are.

mod elf;
mod failure;
mod kernel;
mod probes;
mod process;
mod recording;
mod samples;
mod stream;
mod tracefs;
mod watch;

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
use tracefs::Tracefs;
use watch::Watcher;

/// How long a login is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the kernel's memory is emptied: seldom, lest the login pays for it.
const EMPTIED_EVERY: Duration = Duration::from_millis(250);
/// How long it lives, at most and if nothing else is said: the next tracer takes those that are older for dead.
const LONGEST: Duration = Duration::from_secs(90);
/// How long the login's processes are waited for when its end has been told, and how often they are looked for.
const FOR_THE_REST: Duration = Duration::from_secs(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// Longest line of standard input.
const MAX_LINE: usize = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [watch::WATCH, folder] = words[..] {
        watch::run(Path::new(folder));
        return ExitCode::SUCCESS;
    }
    let mut pid = None;
    let mut longest = LONGEST;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--unlink" => unlink(),
            // Whether this program runs here at all.
            "--check" => return ExitCode::SUCCESS,
            "--pid" => pid = rest.next().and_then(|number| number.parse().ok()),
            "--seconds" => {
                let seconds = rest.next().and_then(|number| number.parse().ok());
                longest = seconds.map_or(LONGEST, Duration::from_secs).min(LONGEST);
            }
            _ => return ExitCode::from(2),
        }
    }
    end_after(longest);
    let Ok(mut stream) = Stream::begin() else {
        return ExitCode::FAILURE;
    };
    match follow(pid, &mut stream) {
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

/// The whole of it, for what this process or the server above us starts.
fn follow(pid: Option<u32>, stream: &mut Stream) -> Result<(), End> {
    if !kernel::is_root() {
        let words = "tracing is root's alone";
        return Err(Failure::new("not-root", words).into());
    }
    let listener = match pid {
        Some(pid) => pid,
        None => process::listener()?,
    };
    let tracefs = Tracefs::find()?;
    tracefs.reap();
    let instance = tracefs.instance()?;
    let watcher = Watcher::start(&instance)?;
    let traced = trace(&instance, listener, stream);
    drop(instance);
    watcher.dismiss();
    traced?;
    stream.flush()?;
    Ok(())
}

fn trace(instance: &tracefs::Instance, listener: u32, stream: &mut Stream) -> Result<(), End> {
    let mut recording = Recording::prepare(instance, listener)?;
    let probes = probes::add(instance, listener);
    for format in recording.formats() {
        stream.send(b'F', format.as_bytes())?;
    }
    let header = instance.text_of_all("events/header_page");
    stream.send(b'H', header.as_bytes())?;
    stream.send(b'B', probes.join("\n").as_bytes())?;
    stream.send(b'S', samples::read().as_bytes())?;
    recording.begin()?;
    let armed = format!(
        "time {}\nfollowed {}\nby tracefs",
        kernel::monotonic(),
        recording.followed,
    );
    stream.send(b'A', armed.as_bytes())?;
    stream.flush()?;
    let reason = wait(&mut recording, stream)?;
    let lost = recording.lost();
    for (processor, page) in recording.end()? {
        let mut content = processor.to_be_bytes().to_vec();
        content.extend(page);
        stream.send(b'P', &content)?;
    }
    stream.send(b'S', samples::read().as_bytes())?;
    let names = instance.text_of_all("saved_cmdlines");
    stream.send(b'N', names.as_bytes())?;
    stream.send(b'L', lost.as_bytes())?;
    stream.send(b'E', reason.as_bytes())?;
    Ok(())
}

/// Until standard input ends, or it has taken too long. Returns which of them it was.
fn wait(recording: &mut Recording, stream: &mut Stream) -> Result<&'static str, End> {
    let lines = lines();
    let begun = Instant::now();
    loop {
        match lines.recv_timeout(EMPTIED_EVERY) {
            Ok(()) => {
                stream.send(b'C', kernel::monotonic().to_string().as_bytes())?;
                stream.flush()?;
            }
            Err(RecvTimeoutError::Timeout) => recording.take()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if recording.is_full {
            return Ok("full");
        }
        if begun.elapsed() > PATIENCE {
            return Ok("late");
        }
    }
    // The last that a connection's processes do is to close it, which tells whose it was.
    let asked = Instant::now();
    while recording.follows_others() && asked.elapsed() < FOR_THE_REST {
        thread::sleep(BETWEEN_LOOKS);
        recording.take()?;
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

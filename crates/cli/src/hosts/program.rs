//! What a local program prints, within a time.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use super::files::MAX_FILE;

/// Longest a program may take: one that asks a cloud for its machines takes seconds.
const TIME: Duration = Duration::from_secs(60);
/// How much of a program's complaint is kept, octets.
const MAX_COMPLAINT: u64 = 4096;
/// How often a program is looked at that has closed its output and goes on.
const GLANCE: Duration = Duration::from_millis(5);

/// What the program prints, once it has ended with status 0; or why not, as the end of a sentence about it.
///
/// It stays in our process group, so that Ctrl-C ends it, too.
pub(super) fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    output_within(command, TIME)
}

fn output_within(command: &mut Command, time: Duration) -> Result<Vec<u8>, String> {
    let deadline = Instant::now() + time;
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot be started: {error}"))?;
    let stdout = child.stdout.take().map(|pipe| reader(pipe, MAX_FILE));
    let stderr = child.stderr.take().map(|pipe| reader(pipe, MAX_COMPLAINT));
    let result = finish(&mut child, stdout, stderr, deadline);
    if result.is_err() {
        // It may have ended by itself; then there is nothing to kill.
        let _ = child.kill();
        let _ = child.wait();
    }
    result.map_err(|why| match why {
        Why::Late => format!("did not end within {} s", time.as_secs_f32()),
        Why::Said(why) => why,
    })
}

enum Why {
    Late,
    Said(String),
}

/// What a pipe held: the octets that were kept, and how many more there were.
type Held = io::Result<(Vec<u8>, u64)>;

fn reader(mut pipe: impl Read + Send + 'static, keep: u64) -> Receiver<Held> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        let read = pipe.by_ref().take(keep).read_to_end(&mut kept);
        let rest = read.and_then(|_| io::copy(&mut pipe, &mut io::sink()));
        // Nobody waits any more when the time is over.
        let _ = sender.send(rest.map(|more| (kept, more)));
    });
    receiver
}

fn finish(
    child: &mut Child,
    stdout: Option<Receiver<Held>>,
    stderr: Option<Receiver<Held>>,
    deadline: Instant,
) -> Result<Vec<u8>, Why> {
    let (output, more) = held(stdout, deadline)?;
    let (complaint, _) = held(stderr, deadline)?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => thread::sleep(GLANCE),
            Ok(None) => return Err(Why::Late),
            Err(error) => return Err(Why::Said(format!("cannot be waited for: {error}"))),
        }
    };
    match status.success() {
        true if more > 0 => Err(Why::Said(format!("printed more than {MAX_FILE} octets"))),
        true => Ok(output),
        false => Err(Why::Said(format!(
            "ended with {status}{}",
            said(&complaint)
        ))),
    }
}

fn held(pipe: Option<Receiver<Held>>, deadline: Instant) -> Result<(Vec<u8>, u64), Why> {
    let Some(pipe) = pipe else {
        return Ok(Default::default());
    };
    let left = deadline.saturating_duration_since(Instant::now());
    match pipe.recv_timeout(left) {
        Ok(held) => held.map_err(|error| Why::Said(format!("cannot be read from: {error}"))),
        Err(_) => Err(Why::Late),
    }
}

/// The last line of a complaint: where most programs say what is wrong.
fn said(complaint: &[u8]) -> String {
    let text = String::from_utf8_lossy(complaint);
    match text.trim().lines().last() {
        Some(line) => format!(": {}", line.escape_debug()),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str, time: Duration) -> Result<Vec<u8>, String> {
        output_within(Command::new("/bin/sh").args(["-c", line]), time)
    }

    #[test]
    fn what_a_program_prints_counts_only_with_status_0() {
        let hour = Duration::from_secs(3600);
        assert_eq!(shell("echo a; echo b >&2", hour), Ok(b"a\n".to_vec()));
        let failed = shell("echo a; echo one >&2; echo two >&2; exit 3", hour);
        assert_eq!(failed, Err("ended with exit status: 3: two".to_owned()));
        assert!(shell("kill -9 $$", hour).is_err_and(|why| why.contains("signal")));
        let none = output_within(&mut Command::new("/no/such/program"), hour);
        assert!(none.is_err_and(|why| why.starts_with("cannot be started")));
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let late = Err("did not end within 0.1 s".to_owned());
        let time = Duration::from_millis(100);
        assert_eq!(shell("exec sleep 3600", time), late);
        // One that has closed its output goes on all the same.
        assert_eq!(shell("exec sleep 3600 >&- 2>&-", time), late);
    }

    #[test]
    fn a_long_complaint_blocks_nothing() {
        let long = shell(
            "head -c 1000000 /dev/zero >&2; echo a",
            Duration::from_secs(3600),
        );
        assert_eq!(long, Ok(b"a\n".to_vec()));
    }
}

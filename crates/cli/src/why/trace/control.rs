//! The connection that the tracer runs on. Its session is performed in a thread of its own; standard input is a pipe that is
//! written here, and whose end ends the tracer.

use std::env;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use sshoal_fleet::HostResult;
use sshoal_net::{Input, Preparation, RunEnd, RunError, Secret, Transport};
use sshoal_proto::SessionRequest;
use sshoal_report::INTERRUPTED;
use sshoal_targets::Target;
use sshoal_trace::{Frame, Frames, MAX_OCTETS, Recording, RecordingError};
use sshoal_tracer::{Processor, program};

use super::Untraced;
use super::listening::{Listening, Over, Said};
use crate::observer::cut_short;
use crate::prompt::{self, PromptError};
use crate::script::{self, AS_ROOT};
use crate::terminal;
use crate::watch::Watch;
use crate::why::args::WhyArgs;
use crate::why::logins;

/// Runs on the host; see there.
const SCRIPT: &str = include_str!("tracer_script.sh");
/// The part of it that root runs.
const RECEIVE: &str = include_str!("tracer_receive.sh");
/// Names what the tracer is not to use, a comma between: `tracefs`, `uprobes`, and so on (docs/why.md).
const WITHOUT: &str = "SSHOAL_TRACE_WITHOUT";
/// What the script's lines begin with.
const OWN_LINE: &str = "sshoal-tracer: ";
/// Whatever the user's shell is, this it understands. The script comes on standard input, behind its length.
const COMMAND: &str = r#"exec /bin/sh -c 'IFS= read -r n; eval "$(head -c "$n")"'"#;
/// How long each step may take: the tracer itself ends after 30 s.
const PATIENCE: Duration = Duration::from_secs(60);
/// And all of them.
const WHOLE_PATIENCE: Duration = Duration::from_secs(180);
/// How long its end is waited for once all has come: it takes away what it has made.
const FOR_ITS_END: Duration = Duration::from_secs(10);
/// How often the host's clock is asked for; the quickest answer counts.
const CLOCK_QUESTIONS: u32 = 4;
/// Passwords that sudo is given, at most: as many as it asks for by itself (sudoers(5), passwd_tries).
const PASSWORDS: u32 = 3;
/// Octets of standard error that are kept.
const MAX_ERRORS: usize = 4096;
/// Octets that are heard, a trace's and some more: that there were too many is then said by who reads them.
const MAX_HEARD: usize = MAX_OCTETS as usize + 1024 * 1024;

/// The session with the tracer.
pub(super) struct Control {
    heard: Receiver<Said>,
    input: Option<PipeWriter>,
    frames: Frames,
    recording: Recording,
    /// The host's last answer about its clock, and when it came.
    clock: Option<(u64, Instant)>,
    /// Lines of the script's.
    lines: Vec<String>,
    errors: Vec<u8>,
    /// Why the tracer is not root there, if it is not.
    pub(super) no_root: Option<String>,
}

/// All that runs on the host before the tracer does.
fn script() -> String {
    let receive = RECEIVE.replace("@WITHOUT@", &without());
    let receive = String::from_utf8_lossy(&script::quoted(receive.as_bytes())).into_owned();
    // What is put in last has neither of the marks.
    let script = SCRIPT.lines().filter(|line| !line.starts_with('#'));
    let script: String = script.map(|line| format!("{line}\n")).collect();
    script
        .replace("@AS_ROOT@", AS_ROOT)
        .replace("@RECEIVE@", &receive)
}

/// What the tracer is not to use there.
fn without() -> String {
    let words = env::var(WITHOUT).unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_lowercase() || matches!(c, ',' | '-');
    words.chars().filter(is_plain).collect()
}

/// What has come of the run.
fn over(end: Result<RunEnd<Vec<HostResult>>, RunError>) -> Over {
    let end = match end {
        Ok(end) => end,
        Err(error) => return Over::Ended(Some(error.to_string())),
    };
    let Some(results) = end.summary else {
        terminal::take_back();
        return Over::CutShort(INTERRUPTED);
    };
    if let Some(cut) = cut_short(end.interruption) {
        return Over::CutShort(cut.exit_status());
    }
    let failures = results.into_iter().filter_map(logins::failure);
    Over::Ended(failures.map(|failure| failure.detail).next())
}

/// How the host's monotonic clock stands to ours, at the latest.
pub(super) struct Clock {
    ours: Instant,
    host: u64,
}

impl Clock {
    /// The host's time at one of our moments.
    pub(super) fn of_host(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.ours).as_nanos();
        self.host
            .saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }
}

impl Control {
    /// Logs in, and begins the session.
    ///
    /// # Errors
    ///
    /// It cannot be begun; why, in words.
    pub(super) fn start(
        args: &WhyArgs,
        target: &Target,
        label: &str,
        password: Option<&Secret>,
    ) -> Result<Control, Untraced> {
        let words = |error: Box<dyn std::error::Error>| error.to_string();
        let (reader, input) = io::pipe().map_err(|error| error.to_string())?;
        let mut preparation = Preparation::new(&logins::options(args, Transport::Native))
            .map_err(|error| error.to_string())?;
        let request = SessionRequest {
            standard_input: true,
            ..SessionRequest::exec(COMMAND.as_bytes().to_vec())
        };
        let targets = [logins::measured(target)];
        let hosts = preparation
            .hosts(&targets, |_| request.clone())
            .map_err(|error| error.to_string())?;
        let mut plan =
            logins::plan(args, preparation, hosts, 1, password.cloned()).map_err(words)?;
        plan.input = Some(Input::of(File::from(OwnedFd::from(reader))));
        plan.deadlines.command = Some(WHOLE_PATIENCE);
        let (said, heard) = mpsc::channel();
        let watch = Watch::new(format!("{label}: tracer"));
        let observer = Listening::new(watch, said.clone(), MAX_HEARD);
        thread::Builder::new()
            .name("tracer".to_owned())
            .spawn(move || {
                let over = over(sshoal_net::run(plan, observer));
                // Nobody may listen any more.
                let _ = said.send(Said::Over(over));
            })
            .map_err(|error| error.to_string())?;
        Ok(Control {
            heard,
            input: Some(input),
            frames: Frames::default(),
            recording: Recording::default(),
            clock: None,
            lines: Vec::new(),
            errors: Vec::new(),
            no_root: None,
        })
    }

    /// Brings the tracer there and waits until it follows all that the server does.
    ///
    /// # Errors
    ///
    /// It does not; why, in words.
    pub(super) fn arm(&mut self, label: &str) -> Result<(), Untraced> {
        let script = script();
        self.write(format!("{}\n{script}", script.len()).as_bytes());
        let line = self.wait(|it| it.line("machine "))?;
        let (machine, by) = line.split_once(' ').unwrap_or((&line, ""));
        let sudo = match by {
            "root" => None,
            "sudo" => Some(Secret::new(Vec::new())),
            "password" => self.password(label)?,
            _ => {
                self.no_root = Some("there is no sudo".to_owned());
                None
            }
        };
        let processor = Processor::of_machine(machine);
        let tracer = processor.and_then(program).ok_or_else(|| {
            format!("this sshoal has no tracer for the host's processor ({machine})")
        })?;
        if let Some(password) = sudo {
            let lines = Secret::new(script::sudo_input(password.expose()));
            self.write(lines.expose());
        }
        self.wait(|it| it.line("ready"))?;
        self.write(format!("{}\n", tracer.len()).as_bytes());
        self.write(tracer);
        self.wait(|it| it.line("received"))?;
        self.wait(|it| it.recording.armed().map(|_| ()))
    }

    /// That which sudo takes. Where it cannot be had, the tracer does without root.
    fn password(&mut self, label: &str) -> Result<Option<Secret>, Untraced> {
        let mut before = String::new();
        for attempt in 1..=PASSWORDS {
            let question = format!("{before}[sudo] password for {label}: ");
            let password = match prompt::secret(&question, &|| true) {
                Ok(password) => password,
                Err(PromptError::Interrupted) => return Err(Untraced::CutShort(INTERRUPTED)),
                Err(error) => {
                    self.no_root = Some(format!("sudo wants a password there: {error}"));
                    break;
                }
            };
            let lines = Secret::new([b"sudo\n", password.expose(), b"\n"].concat());
            self.write(lines.expose());
            let begin = format!("attempt {attempt} ");
            let verdict = self.wait(|it| it.line(&begin))?;
            let Some(said) = verdict.strip_prefix("wrong") else {
                self.no_root = None;
                return Ok(Some(password));
            };
            before = format!("{}\n", said.trim());
            self.no_root = Some(format!("sudo did not take the password there:{said}"));
        }
        self.write(b"user\n");
        Ok(None)
    }

    /// By what the tracer follows: `tracefs`, `proc-connector`, `proc`.
    pub(super) fn by(&self) -> &str {
        self.recording.armed().map_or("", |armed| armed.by.as_str())
    }

    /// Whether the tracer does not tell this.
    pub(super) fn lacks(&self, what: &str) -> bool {
        let mut lacks = self.recording.armed().into_iter().flat_map(|it| &it.lacks);
        lacks.any(|lack| lack == what)
    }

    /// Asks for the host's clock.
    ///
    /// # Errors
    ///
    /// It does not answer.
    pub(super) fn clock(&mut self) -> Result<Clock, Untraced> {
        let mut best: Option<(Duration, Clock)> = None;
        for _ in 0..CLOCK_QUESTIONS {
            let asked = Instant::now();
            self.clock = None;
            self.write(b"\n");
            let (host, came) = self.wait(|it| it.clock)?;
            let took = came.saturating_duration_since(asked);
            if best.as_ref().is_none_or(|(least, _)| took < *least) {
                // It was not read before it was asked for: what is reckoned by it is never too early.
                best = Some((took, Clock { ours: asked, host }));
            }
        }
        best.map(|(_, clock)| clock)
            .ok_or_else(|| "the tracer tells no time".to_owned().into())
    }

    /// Ends the trace, and takes what it has recorded.
    ///
    /// # Errors
    ///
    /// It has not come.
    pub(super) fn end(mut self) -> Result<Recording, Untraced> {
        drop(self.input.take());
        self.wait(|it| it.recording.end().map(|_| ()))?;
        // Who sees the report finds nothing of the tracer any more. How its session ends changes nothing.
        match self.wait_for(FOR_ITS_END, |_| None::<()>) {
            Err(Untraced::CutShort(status)) => Err(Untraced::CutShort(status)),
            Ok(()) | Err(Untraced::Because(_)) => Ok(self.recording),
        }
    }

    /// Nobody may read it: then the session has ended, and says why.
    fn write(&mut self, octets: &[u8]) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(octets);
        }
    }

    fn wait<T>(&mut self, answer: impl Fn(&Control) -> Option<T>) -> Result<T, Untraced> {
        self.wait_for(PATIENCE, answer)
    }

    /// Hears what is said until that gives an answer.
    fn wait_for<T>(
        &mut self,
        patience: Duration,
        answer: impl Fn(&Control) -> Option<T>,
    ) -> Result<T, Untraced> {
        let begun = Instant::now();
        loop {
            if let Some(answer) = answer(self) {
                return Ok(answer);
            }
            let left = patience.saturating_sub(begun.elapsed());
            match self.heard.recv_timeout(left) {
                Ok(Said::Output(_, at, octets)) => self.hear(at, &octets)?,
                Ok(Said::Error(octets)) => {
                    let room = MAX_ERRORS - self.errors.len().min(MAX_ERRORS);
                    self.errors.extend(octets.into_iter().take(room));
                }
                Ok(Said::Over(Over::CutShort(status))) => return Err(Untraced::CutShort(status)),
                Ok(Said::Over(Over::Ended(failure))) => return Err(self.ended(failure).into()),
                Err(RecvTimeoutError::Timeout) => {
                    return Err("the tracer does not answer".to_owned().into());
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended(None).into()),
            }
        }
    }

    fn hear(&mut self, at: Instant, octets: &[u8]) -> Result<(), String> {
        let words = |error: &dyn std::error::Error| error.to_string();
        self.frames
            .handle_input(octets)
            .map_err(|error| words(&error))?;
        if !self.frames.have_begun() {
            let before = self.frames.before();
            // The last one may not be whole yet.
            let whole = before.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let own = whole.lines().filter_map(|line| line.strip_prefix(OWN_LINE));
            self.lines = own.map(str::to_owned).collect();
            if self.line("no-room").is_some() {
                return Err(
                    "there is no folder there with room for the tracer from which it may be run"
                        .to_owned(),
                );
            }
            if self.line("cut").is_some() {
                return Err("the tracer did not arrive whole".to_owned());
            }
        }
        while let Some(frame) = self.frames.poll_frame().map_err(|error| words(&error))? {
            if let Frame::Clock(host) = frame {
                self.clock = Some((host, at));
            }
            match self.recording.take(frame) {
                Err(RecordingError::Refused(_, why)) => return Err(why),
                other => other.map_err(|error| words(&error))?,
            }
        }
        Ok(())
    }

    /// What follows this in a line of the script's.
    fn line(&self, begin: &str) -> Option<String> {
        let mut rests = self
            .lines
            .iter()
            .filter_map(|line| line.strip_prefix(begin));
        rests.next().map(str::to_owned)
    }

    /// Why the session is over before its time.
    fn ended(&self, failure: Option<String>) -> String {
        let errors = String::from_utf8_lossy(&self.errors);
        let last = errors.lines().map(str::trim).rfind(|line| !line.is_empty());
        let what = match self.frames.have_begun() {
            true => "the tracer ended before its time",
            false => "the tracer could not be run",
        };
        match (failure, last) {
            (Some(failure), _) => failure,
            (None, Some(line)) => format!("{what}: {line}"),
            (None, None) => what.to_owned(),
        }
    }
}

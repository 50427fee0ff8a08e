//! The signals that end a run.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals after which nobody waits for hosts any more, unless there is something to be cleared up.
const STOPS: [SignalKind; 3] = [
    SignalKind::hangup(),
    SignalKind::quit(),
    SignalKind::terminate(),
];

/// What the user or the system wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// SIGINT for the first time: start no more hosts, and signal the running. So do SIGHUP and SIGTERM where they leave
    /// something to be cleared up.
    Interrupt,
    /// SIGINT again, or a signal that ends a program: leave at once.
    Stop,
}

/// What signals did to a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interruption {
    /// How often the user pressed Ctrl-C.
    pub interrupts: u32,
    /// The number of the signal that ended the run, if one did: SIGHUP, SIGQUIT or SIGTERM.
    pub stopped_by: Option<i32>,
}

/// Listens for them from its making on. Signals that were ignored when the program was started, as nohup(1) and
/// a shell's `&` have it, stay ignored.
pub struct Signals {
    interrupts: Option<Signal>,
    stops: [(i32, Option<Signal>); STOPS.len()],
    /// Whether hosts have a moment to clear up after SIGHUP and SIGTERM. A shell and the kernel may send several of them: only
    /// SIGQUIT, and whoever presses Ctrl-C twice, does not wait.
    clears_up: bool,
    /// What has come.
    interruption: Interruption,
}

impl Signals {
    /// A signal that cannot be listened for ends the program, as it does by default. `clears_up`: until
    /// `hosts_have_ended`, SIGHUP and SIGTERM interrupt as SIGINT does.
    pub fn listen(clears_up: bool) -> Self {
        let ignored = ignored();
        let listen = |kind: SignalKind| {
            let is_ignored = ignored & (1 << (kind.as_raw_value() - 1)) != 0;
            (!is_ignored).then(|| signal(kind).ok()).flatten()
        };
        Signals {
            interrupts: listen(SignalKind::interrupt()),
            stops: STOPS.map(|kind| (kind.as_raw_value(), listen(kind))),
            clears_up,
            interruption: Interruption::default(),
        }
    }

    /// There is nothing to be cleared up any more.
    pub(crate) fn hosts_have_ended(&mut self) {
        self.clears_up = false;
    }

    /// What has come so far.
    pub fn interruption(&self) -> Interruption {
        self.interruption
    }

    /// Whether a signal came after which nobody waits.
    pub(crate) fn stopped(&self) -> bool {
        self.interruption.interrupts > 1 || self.interruption.stopped_by.is_some()
    }

    /// Waits for the next.
    pub async fn next(&mut self) -> Wanted {
        let [hangup, quit, terminate] = &mut self.stops;
        let stopped_by = tokio::select! {
            () = received(&mut self.interrupts) => {
                self.interruption.interrupts += 1;
                return match self.interruption.interrupts {
                    1 => Wanted::Interrupt,
                    _ => Wanted::Stop,
                };
            }
            () = received(&mut hangup.1) => hangup.0,
            () = received(&mut quit.1) => quit.0,
            () = received(&mut terminate.1) => terminate.0,
        };
        self.interruption.stopped_by = Some(stopped_by);
        match self.clears_up && stopped_by != SignalKind::quit().as_raw_value() {
            true => Wanted::Interrupt,
            false => Wanted::Stop,
        }
    }
}

/// Ctrl-C while none of several runs listens, which one after the other make up one measurement: what has come between two of them ends it, too.
#[derive(Debug, Default)]
pub struct BetweenRuns {
    interrupted: Arc<AtomicBool>,
}

impl BetweenRuns {
    /// Notes SIGINT from now on, unless it was ignored when the program was started. Where that is not possible it is noted by the runs alone.
    pub fn listen() -> Self {
        let between = BetweenRuns::default();
        let kind = SignalKind::interrupt();
        let is_ignored = ignored() & (1 << (kind.as_raw_value() - 1)) != 0;
        let runtime = runtime::Builder::new_current_thread().enable_io().build();
        let Some(runtime) = runtime.ok().filter(|_| !is_ignored) else {
            return between;
        };
        let listening = {
            let _context = runtime.enter();
            signal(kind)
        };
        if let Ok(mut interrupts) = listening {
            let interrupted = between.interrupted.clone();
            thread::spawn(move || {
                runtime.block_on(async {
                    while interrupts.recv().await.is_some() {
                        interrupted.store(true, Ordering::Relaxed);
                    }
                });
            });
        }
        between
    }

    /// Whether one has come.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// A bit for each ignored signal, 1 for signal 1: SigIgn of proc_pid_status(5).
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

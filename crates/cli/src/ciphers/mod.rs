//! `sshoal ciphers`: what each cipher, MAC and key exchange gives between this machine and a host, and which to use.
//!
//! `pairs` says what there is to measure, `trials` measures it, `figures` makes medians of it, `advice` draws the
//! conclusion from it and from `finals`, where the fastest are measured once more, and `confirming` puts it to the test; `kex` does so for key exchanges; `table`, `json` and `picture` show all that, and the server cache remembers it for the other commands.

mod advice;
mod args;
mod confirming;
mod figures;
mod finals;
mod installed;
mod json;
mod kex;
mod pairs;
mod picture;
mod table;
mod trials;
mod weak;

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use sshoal_crypto::{Cipher, Mac};
use sshoal_net::{
    BetweenRuns, ServerFacts, Transport, TrialPlan, TrialWay, remember_fastest, server_cache_path,
};
use sshoal_proto::ServerLists;
use sshoal_report::OUTPUT_FAILED;
use sshoal_targets::Target;

use crate::args::HostArgs;
use crate::say::say;
use crate::watch::Watch;
use crate::{hosts, manual, run};

use advice::{Advice, advice};
pub(crate) use args::CiphersArgs;
use figures::{Row, Ways, failure, rate};
use installed::Installed;
use kex::{Kex, KexAdvice, Logins};
use pairs::{By, Pair, Wanted, combinations, key_exchanges, negotiated};
use trials::{Done, Performed, Trial, Trials, ssh_program};
use weak::Weakness;

/// Blocks of 64 KiB in the first measurement, which finds out how many the others need.
const FIRST_BLOCKS: u64 = 8;
/// The next one has so many times as many, until it takes [`LONG_ENOUGH`].
const MORE: u64 = 16;
const LONG_ENOUGH: Duration = Duration::from_millis(50);
/// Most blocks of a measurement: 1 GiB.
const MOST_BLOCKS: u64 = 16 * 1024;
/// How long the first measurement by commands may take: some servers run SFTP in place of any command, and say nothing.
const FIRST_PATIENCE: Duration = Duration::from_secs(15);
/// How long any other may.
const PATIENCE: Duration = Duration::from_secs(120);
/// A host that failed: as in a run (docs/exit-status.md).
const FAILED: u8 = 3;

/// All that is known in the end.
struct Report {
    /// What the user calls it.
    host: String,
    /// The same without user and port.
    name: String,
    server: ServerFacts,
    lists: ServerLists,
    way: TrialWay,
    /// Octets of a measurement, either way.
    octets: u64,
    rounds: u32,
    rows: Vec<Row>,
    kex: Vec<Kex>,
    weak: Vec<Weakness>,
    /// For ssh, whose ssh_config it is, if it is there; and for sshoal.
    advice: Vec<Advice>,
    /// For the client whose lines are told.
    kex_advice: Option<KexAdvice>,
    remembered: bool,
}

/// A list of ciphers or MACs in which nothing is left to measure.
#[derive(Debug, thiserror::Error)]
#[error(
    "{host}: nothing to measure: the server and this side have none of these in common; the server has {ciphers} and {macs}"
)]
struct NothingToMeasure {
    host: String,
    ciphers: String,
    macs: String,
}

/// Measures; returns the exit status.
pub(crate) fn run(args: &CiphersArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let target = target(args)?;
    if let Some(unknown) = unknown(args) {
        return Err(unknown.into());
    }
    let picture = args.svg.as_deref().map(Place::of).transpose()?;
    let mut trials = Trials {
        args,
        target: &target,
        password: run::password(&args.login, 1)?,
        way: TrialWay::Exec,
        patience: FIRST_PATIENCE,
        between: BetweenRuns::listen(),
    };
    let host = target.to_string();
    let Scale {
        server,
        by,
        ways,
        blocks,
    } = match calibrated(&mut trials, &host)? {
        Calibrated::For(scale) => scale,
        Calibrated::Ended(status) => return Ok(status),
    };
    let lists = server.lists.clone().unwrap_or_default();
    let ssh = installed(args, trials.way);
    let wanted = wanted(args);
    let has_native = by == By::Native;
    let pairs = combinations(&lists, has_native, ssh.as_ref(), &wanted);
    if pairs.is_empty() {
        let nothing = NothingToMeasure {
            host,
            ciphers: lists.ciphers.join(", "),
            macs: lists.macs.join(", "),
        };
        say(nothing.to_string());
        return Ok(FAILED);
    }
    let kex = match args.no_kex {
        true => Vec::new(),
        false => key_exchanges(&lists, has_native, ssh.as_ref()),
    };
    let logins = Logins::new(&lists, ssh.as_ref(), &pairs);
    trials.patience = PATIENCE.max(args.seconds * 20);
    let watch = Watch::new(format!("{host}: {}", table::rounds(args.rounds)));
    let (rows, kex) = match measured(&trials, &pairs, (&kex, &logins), (blocks, ways), watch)? {
        Ok(figures) => figures,
        Err(status) => return Ok(status),
    };
    let usual = |by| usual(&lists, ssh.as_ref(), by);
    let scale = confirming::Scale { blocks, ways };
    // A single round says so little that nothing is to be tried again, and a part says nothing of the rest: neither is to replace
    // what a whole measurement has left.
    let is_single = args.rounds == 1;
    let is_decisive = !is_single && wanted.ciphers.is_empty() && wanted.macs.is_empty();
    let mut found = Vec::new();
    for by in [By::Ssh, By::Native] {
        let finals = match is_single {
            true => Vec::new(),
            false => match finals::measured(&trials, &host, &scale, (&rows, by), &lists)? {
                Ok(finals) => finals,
                Err(status) => return Ok(status),
            },
        };
        let usual = usual(by);
        let (judged, others) = finals::judged(&rows, &finals, usual.as_ref());
        let Some(advice) = advice((&judged, &others), by, usual, &lists) else {
            continue;
        };
        if is_single {
            found.push(advice);
            continue;
        }
        match confirming::decided(&trials, &host, &scale, advice)? {
            Ok(advice) => found.push(advice),
            Err(status) => return Ok(status),
        }
    }
    let defaults = match &ssh {
        Some(ssh) => (By::Ssh, ssh.default_kex.clone()),
        None => (By::Native, own_key_exchanges()),
    };
    let defaults = (defaults.0, defaults.1.as_slice());
    let kex_advice = match kex::advice(&trials, &host, (&kex, &logins), defaults, &lists)? {
        Ok(advice) => advice,
        Err(status) => return Ok(status),
    };
    let report = Report {
        remembered: is_decisive && remember(&server, &found),
        weak: weak::offered(&lists),
        octets: TrialPlan::octets(blocks),
        rounds: args.rounds,
        way: trials.way,
        name: target.name.clone(),
        host,
        server,
        lists,
        rows,
        kex,
        advice: found,
        kex_advice,
    };
    show(args, picture, &report)
}

/// A name in `--cipher` or `--mac` that neither client knows: that it is not measured is not to go unsaid.
fn unknown(args: &CiphersArgs) -> Option<String> {
    let ssh = installed(args, TrialWay::Exec);
    let knows_cipher = |name: &str| {
        let by_ssh = ssh
            .as_ref()
            .is_some_and(|ssh| ssh.ciphers.iter().any(|it| it == name));
        by_ssh || Cipher::ALL.iter().any(|it| it.name() == name)
    };
    let knows_mac = |name: &str| {
        let by_ssh = ssh
            .as_ref()
            .is_some_and(|ssh| ssh.macs.iter().any(|it| it == name));
        by_ssh || Mac::ALL.iter().any(|it| it.name() == name)
    };
    let cipher = args.cipher.iter().find(|name| !knows_cipher(name));
    let mac = args.mac.iter().find(|name| !knows_mac(name));
    let said = |(kind, name): (&str, &String)| {
        format!(
            "no {kind} is called {name:?}, by sshoal or the installed ssh; `ssh -Q {kind}` lists those of ssh"
        )
    };
    let cipher = cipher.map(|name| ("cipher", name));
    cipher.or_else(|| mac.map(|name| ("mac", name))).map(said)
}

/// The one host.
fn target(args: &CiphersArgs) -> Result<Target, Box<dyn std::error::Error>> {
    let named = HostArgs {
        list: vec![args.host.clone()],
        ..HostArgs::default()
    };
    let mut targets = hosts::targets(&named)?;
    match targets.len() {
        1 => Ok(targets.remove(0)),
        number => Err(format!(
            "{}: these are {number} hosts; each pair of machines is measured for itself: name one",
            args.host
        )
        .into()),
    }
}

/// What comes of the first measurements.
enum Calibrated {
    For(Scale),
    Ended(u8),
}

/// What the others go by.
struct Scale {
    server: ServerFacts,
    /// The client that has logged in: native, or ssh where native has no algorithm in common with the server.
    by: By,
    ways: Ways,
    /// Blocks of a measurement.
    blocks: u64,
}

/// Finds out what the server is, whether it runs commands, who can log in, and how much a measurement must move.
fn calibrated(
    trials: &mut Trials<'_>,
    host: &str,
) -> Result<Calibrated, Box<dyn std::error::Error>> {
    let mut trial = Trial {
        by: By::Native,
        options: Vec::new(),
        blocks: FIRST_BLOCKS,
    };
    let mut server = None;
    // What did not work before.
    let mut before = None;
    loop {
        let watch = Watch::new(format!("{host}: first look"));
        let done = match trials.perform(std::slice::from_ref(&trial), watch)? {
            Performed::Done(mut done) => done.pop(),
            Performed::CutShort(status) => return Ok(Calibrated::Ended(status)),
        };
        let Some(done) = done else {
            return Ok(Calibrated::Ended(FAILED));
        };
        server = done.measured.server.clone().or(server);
        if let (Some(server), Some(up)) = (&server, &done.measured.up) {
            let down = done.measured.down.as_ref();
            let slowest = [down, Some(up)].into_iter().flatten();
            let slowest = slowest.max_by_key(|leg| leg.elapsed).unwrap_or(up);
            if slowest.elapsed >= LONG_ENOUGH || trial.blocks * MORE > MOST_BLOCKS {
                let seconds = trials.args.seconds.as_secs_f64();
                let octets = rate(slowest) * seconds;
                let blocks = (octets / TrialPlan::octets(1) as f64) as u64;
                return Ok(Calibrated::For(Scale {
                    server: server.clone(),
                    by: trial.by,
                    ways: match down {
                        Some(_) => Ways::Both,
                        None => Ways::Up,
                    },
                    blocks: blocks.clamp(FIRST_BLOCKS, MOST_BLOCKS),
                }));
            }
            trial.blocks *= MORE;
            trials.patience = PATIENCE;
            continue;
        }
        let why = words(&done);
        if before.is_none()
            && let Some(server) = &server
        {
            match server.fingerprint {
                // Who has logged in and got no further may still have SFTP.
                Some(_) => {
                    before = Some(format!("it runs no command ({why}), and by SFTP"));
                    trials.way = TrialWay::Sftp;
                    trials.patience = PATIENCE;
                    continue;
                }
                None => {
                    if let Some(options) = common_with_ssh(trials, server) {
                        before = Some(format!("{why}; and by ssh"));
                        (trial.by, trial.options) = (By::Ssh, options);
                        continue;
                    }
                }
            }
        }
        match before {
            Some(before) => say(format!("{host}: nothing can be measured: {before}: {why}")),
            None => say(format!("{host}: {why}")),
        }
        return Ok(Calibrated::Ended(FAILED));
    }
}

/// What the installed ssh is to be told to log in to a server with which native has nothing in common.
fn common_with_ssh(trials: &Trials<'_>, server: &ServerFacts) -> Option<Vec<(String, String)>> {
    let ssh = installed(trials.args, trials.way)?;
    let lists = server.lists.as_ref()?;
    let pairs = combinations(lists, false, Some(&ssh), &wanted(trials.args));
    pairs.first().map(|(pair, _)| pair.options())
}

fn wanted(args: &CiphersArgs) -> Wanted<'_> {
    Wanted {
        ciphers: &args.cipher,
        macs: &args.mac,
    }
}

fn words(done: &Done) -> String {
    failure(done).unwrap_or_else(|| "the commands did not do what they should".to_owned())
}

/// The ssh for what native lacks; it has no part where only SFTP is.
fn installed(args: &CiphersArgs, way: TrialWay) -> Option<Installed> {
    let is_wanted = Transport::from(args.login.transport) != Transport::Native;
    (is_wanted && way == TrialWay::Exec).then(|| Installed::ask(&ssh_program(args)))?
}

type Figures = (Vec<Row>, Vec<Kex>);

/// All rounds, each over all combinations and key exchanges; or the exit status if a signal has ended them.
fn measured(
    trials: &Trials<'_>,
    pairs: &[(Pair, By)],
    (kex, logins): (&[(String, By)], &Logins),
    (blocks, ways): (u64, Ways),
    watch: Watch,
) -> Result<Result<Figures, u8>, Box<dyn std::error::Error>> {
    let of_pairs = pairs.iter().map(|(pair, by)| Trial {
        by: *by,
        options: pair.options(),
        blocks,
    });
    let of_kex = kex.iter().map(|(name, by)| logins.trial(name, *by));
    let round: Vec<Trial> = of_pairs.chain(of_kex).collect();
    let rounds = vec![round.as_slice(); trials.args.rounds as usize].concat();
    let done = match trials.perform(&rounds, watch)? {
        Performed::Done(done) => done,
        Performed::CutShort(status) => return Ok(Err(status)),
    };
    let of =
        |number: usize| -> Vec<&Done> { done.iter().skip(number).step_by(round.len()).collect() };
    let rows = pairs.iter().enumerate();
    let rows = rows.map(|(number, (pair, by))| Row::new(pair.clone(), *by, ways, &of(number)));
    let found = kex.iter().enumerate();
    let found =
        found.map(|(number, (name, by))| Kex::new(name.clone(), *by, &of(pairs.len() + number)));
    Ok(Ok((rows.collect(), found.collect())))
}

/// What a client takes where nothing is configured.
fn usual(lists: &ServerLists, ssh: Option<&Installed>, by: By) -> Option<Pair> {
    match by {
        By::Ssh => ssh.and_then(|ssh| negotiated(lists, &ssh.default_ciphers, &ssh.default_macs)),
        By::Native => {
            let ciphers = Cipher::preferred().iter().map(|it| it.name().to_owned());
            let macs = Mac::ALL.iter().map(|mac| mac.name().to_owned());
            negotiated(
                lists,
                &ciphers.collect::<Vec<_>>(),
                &macs.collect::<Vec<_>>(),
            )
        }
    }
}

/// What sshoal's own client offers where nothing is configured.
fn own_key_exchanges() -> Vec<String> {
    let own = sshoal_crypto::kex::ALGORITHMS.iter();
    own.map(|algorithm| algorithm.name.to_owned()).collect()
}

/// Leaves it in the server cache for run, put and get.
fn remember(server: &ServerFacts, advice: &[Advice]) -> bool {
    let native = advice.iter().find(|advice| advice.by == By::Native);
    let known = server.fingerprint.as_deref();
    let (Some(native), Some(path), Some(fingerprint)) = (native, server_cache_path(), known) else {
        return false;
    };
    match remember_fastest(&path, fingerprint, &native.protections()) {
        Ok(()) => true,
        Err(error) => {
            say(format!(
                "{}: what was measured cannot be remembered: {error}",
                path.display()
            ));
            false
        }
    }
}

fn no_picture(path: &Path, error: &io::Error) -> String {
    format!("cannot write the picture {}: {error}", path.display())
}

/// Where the picture goes. What is there stays until there is a picture; if none comes, there is nothing that was not there.
struct Place<'a> {
    path: &'a Path,
    is_new: bool,
}

impl<'a> Place<'a> {
    /// Before minutes are spent on what goes into it.
    fn of(path: &'a Path) -> Result<Place<'a>, String> {
        let mut there = fs::OpenOptions::new();
        let made = there.write(true).create_new(true).open(path);
        let is_new = made.is_ok();
        let opened = made.or_else(|_| there.create_new(false).open(path));
        opened.map_err(|error| no_picture(path, &error))?;
        Ok(Place { path, is_new })
    }

    fn fill(mut self, picture: &str) -> io::Result<()> {
        fs::write(self.path, picture)?;
        self.is_new = false;
        Ok(())
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.is_new {
            // Whoever has taken it away meanwhile has done what was to be done.
            let _ = fs::remove_file(self.path);
        }
    }
}

fn show(
    args: &CiphersArgs,
    picture: Option<Place<'_>>,
    report: &Report,
) -> Result<u8, Box<dyn std::error::Error>> {
    let path = args.svg.as_deref().unwrap_or(Path::new(""));
    let filled = picture.map(|place| place.fill(&picture::svg(report)));
    if let Some(Err(error)) = filled {
        say(no_picture(path, &error));
        return Ok(OUTPUT_FAILED);
    }
    let text = match args.json {
        true => json::line(report)?,
        false => table::text(report),
    };
    let status = manual::print(text.as_bytes());
    let has_measured = report.rows.iter().any(|row| row.rate().is_some());
    Ok(match (status, has_measured) {
        (0, false) => FAILED,
        (status, _) => status,
    })
}

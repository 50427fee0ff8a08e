//! `sshoal ciphers`: what each cipher, MAC and key exchange gives between this machine and a host, and which to use.
//!
//! `pairs` says what there is to measure, `trials` measures it, `figures` makes medians of it, `advice` draws the
//! conclusion; `table`, `json` and `picture` show all that, and the server cache remembers it for the other commands.

mod advice;
mod args;
mod figures;
mod installed;
mod json;
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
    Measured, ServerFacts, Transport, TrialPlan, TrialWay, remember_fastest, server_cache_path,
};
use sshoal_proto::ServerLists;
use sshoal_targets::Target;

use crate::args::HostArgs;
use crate::say::say;
use crate::watch::Watch;
use crate::{hosts, manual, run};

use advice::{Advice, advice};
pub(crate) use args::CiphersArgs;
use figures::{Kex, Row, failure, rate};
use installed::Installed;
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
    if let Some(path) = &args.svg {
        // Before minutes are spent on what goes into it. What is there stays until there is a picture.
        let mut there = fs::OpenOptions::new();
        let opened = there.write(true).create(true).truncate(false).open(path);
        opened.map_err(|error| no_picture(path, &error))?;
    }
    let mut trials = Trials {
        args,
        target: &target,
        password: run::password(&args.login, 1)?,
        way: TrialWay::Exec,
        patience: FIRST_PATIENCE,
    };
    let host = target.to_string();
    let (server, blocks) = match calibrated(&mut trials, &host)? {
        Calibrated::For(server, blocks) => (server, blocks),
        Calibrated::Ended(status) => return Ok(status),
    };
    let lists = server.lists.clone().unwrap_or_default();
    let ssh = installed(args, trials.way);
    let wanted = Wanted {
        ciphers: &args.cipher,
        macs: &args.mac,
    };
    let pairs = combinations(&lists, ssh.as_ref(), &wanted);
    if pairs.is_empty() {
        return Err(NothingToMeasure {
            host,
            ciphers: lists.ciphers.join(", "),
            macs: lists.macs.join(", "),
        }
        .into());
    }
    let kex = match args.no_kex {
        true => Vec::new(),
        false => key_exchanges(&lists),
    };
    trials.patience = PATIENCE.max(args.seconds * 20);
    let watch = Watch::new(format!("{host}: {}", table::rounds(args.rounds)));
    let (rows, kex) = match measured(&trials, &pairs, &kex, blocks, watch)? {
        Ok(figures) => figures,
        Err(status) => return Ok(status),
    };
    let usual = |by| usual(&lists, ssh.as_ref(), by);
    let advice: Vec<Advice> = [By::Ssh, By::Native]
        .into_iter()
        .filter_map(|by| advice(&rows, by, usual(by), &lists))
        .collect();
    let report = Report {
        remembered: remember(&server, &advice, &wanted),
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
        advice,
    };
    show(args, &report)
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
    /// The server, and how many blocks a measurement has.
    For(ServerFacts, u64),
    Ended(u8),
}

/// Finds out what the server is, whether it runs commands, and how much a measurement must move.
fn calibrated(
    trials: &mut Trials<'_>,
    host: &str,
) -> Result<Calibrated, Box<dyn std::error::Error>> {
    let mut blocks = FIRST_BLOCKS;
    let mut no_commands = None;
    loop {
        let trial = Trial {
            by: By::Native,
            options: Vec::new(),
            blocks,
        };
        let watch = Watch::new(format!("{host}: first look"));
        let done = match trials.perform(&[trial], watch)? {
            Performed::Done(mut done) => done.pop(),
            Performed::CutShort(status) => return Ok(Calibrated::Ended(status)),
        };
        let Some(done) = done else {
            return Ok(Calibrated::Ended(FAILED));
        };
        let Measured {
            down, up, server, ..
        } = &done.measured;
        if let (Some(server), Some(up)) = (server, up) {
            let slowest = [down.as_ref(), Some(up)].into_iter().flatten();
            let slowest = slowest.max_by_key(|leg| leg.elapsed).unwrap_or(up);
            if slowest.elapsed >= LONG_ENOUGH || blocks * MORE > MOST_BLOCKS {
                let seconds = trials.args.seconds.as_secs_f64();
                let octets = rate(slowest) * seconds;
                let blocks = (octets / TrialPlan::octets(1) as f64) as u64;
                let blocks = blocks.clamp(FIRST_BLOCKS, MOST_BLOCKS);
                return Ok(Calibrated::For(server.clone(), blocks));
            }
            blocks *= MORE;
            trials.patience = PATIENCE;
            continue;
        }
        // Who has logged in and got no further may still have SFTP.
        if server.is_some() && trials.way == TrialWay::Exec && no_commands.is_none() {
            no_commands = Some(words(&done));
            trials.way = TrialWay::Sftp;
            trials.patience = PATIENCE;
            continue;
        }
        match no_commands {
            Some(why) => say(format!(
                "{host}: nothing can be measured: it runs no command ({why}), and by SFTP: {}",
                words(&done)
            )),
            None => say(format!("{host}: {}", words(&done))),
        }
        return Ok(Calibrated::Ended(FAILED));
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
    kex: &[String],
    blocks: u64,
    watch: Watch,
) -> Result<Result<Figures, u8>, Box<dyn std::error::Error>> {
    let of_pairs = pairs.iter().map(|(pair, by)| Trial {
        by: *by,
        options: pair.options(),
        blocks,
    });
    let of_kex = kex.iter().map(|name| Trial {
        by: By::Native,
        options: vec![("KexAlgorithms".to_owned(), name.clone())],
        blocks: 0,
    });
    let round: Vec<Trial> = of_pairs.chain(of_kex).collect();
    let rounds = vec![round.as_slice(); trials.args.rounds as usize].concat();
    let done = match trials.perform(&rounds, watch)? {
        Performed::Done(done) => done,
        Performed::CutShort(status) => return Ok(Err(status)),
    };
    let of =
        |number: usize| -> Vec<&Done> { done.iter().skip(number).step_by(round.len()).collect() };
    let rows = pairs.iter().enumerate();
    let rows = rows.map(|(number, (pair, by))| Row::new(pair.clone(), *by, &of(number)));
    let found = kex.iter().enumerate();
    let found = found.map(|(number, name)| Kex::new(name.clone(), &of(pairs.len() + number)));
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

/// Leaves it in the server cache for run, put and get; unless only a part was measured.
fn remember(server: &ServerFacts, advice: &[Advice], wanted: &Wanted<'_>) -> bool {
    let native = advice.iter().find(|advice| advice.by == By::Native);
    let is_all = wanted.ciphers.is_empty() && wanted.macs.is_empty();
    let (Some(native), Some(path), true) = (native, server_cache_path(), is_all) else {
        return false;
    };
    match remember_fastest(&path, &server.fingerprint, &native.protections()) {
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

fn show(args: &CiphersArgs, report: &Report) -> Result<u8, Box<dyn std::error::Error>> {
    if let Some(path) = &args.svg {
        fs::write(path, picture::svg(report)).map_err(|error| no_picture(path, &error))?;
    }
    let text = match args.json {
        true => json::line(report)?,
        false => table::text(report),
    };
    let status = manual::print(text.as_bytes())?;
    let has_measured = report.rows.iter().any(|row| row.rate().is_some());
    Ok(match (status, has_measured) {
        (0, false) => FAILED,
        (status, _) => status,
    })
}

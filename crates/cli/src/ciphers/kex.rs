//! Key exchanges: what each takes of a login, and which to use.
//!
//! What is recommended is never less safe than what the client takes anyhow: in place of one that a quantum computer could not
//! undo there is only another such.

use std::time::Duration;

use sshoal_proto::ServerLists;

use super::advice::WINS;
use super::confirming::in_turn;
use super::figures::{failure, median};
use super::installed::Installed;
use super::pairs::{By, Pair, negotiated};
use super::trials::{Done, Trial, Trials};
use super::weak;

/// A saving below this part of it is none.
const SAME: f64 = 0.05;

/// A key exchange, and what was measured of it by one client: medians.
pub(super) struct Kex {
    pub(super) name: String,
    pub(super) by: By,
    pub(super) time: Option<Duration>,
    /// This side's CPU time for the whole login; not by ssh.
    pub(super) login_cpu: Option<Duration>,
    pub(super) failure: Option<String>,
}

/// What is recommended for the client whose lines of ssh_config are told.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KexAdvice {
    pub(super) by: By,
    /// What it takes where nothing is configured.
    pub(super) usual: String,
    /// What is better.
    pub(super) better: Option<Better>,
}

/// One that has won, and what it saves of each login.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Better {
    pub(super) name: String,
    pub(super) saved: Duration,
    /// All that the client offers by itself and this one, before all others; but what a quantum computer could not undo stays before
    /// what it could, for the day when the server has it.
    pub(super) list: Vec<String>,
}

impl Kex {
    pub(super) fn new(name: String, by: By, rounds: &[&Done]) -> Kex {
        Kex {
            name,
            by,
            time: median_of(rounds.iter().map(|done| time(done))),
            login_cpu: median_of(rounds.iter().map(|done| done.measured.login_cpu)),
            failure: rounds.iter().find_map(|done| failure(done)),
        }
    }
}

/// How logins are had that measure a key exchange.
pub(super) struct Logins {
    /// What ssh has to be told of a server with which it has nothing in common by itself.
    of_ssh: Vec<(String, String)>,
}

impl Logins {
    /// `pairs`: what is measured, of which any will do.
    pub(super) fn new(
        server: &ServerLists,
        ssh: Option<&Installed>,
        pairs: &[(Pair, By)],
    ) -> Logins {
        let usual = ssh.and_then(|ssh| negotiated(server, &ssh.default_ciphers, &ssh.default_macs));
        let any = pairs.iter().find(|(_, by)| *by == By::Ssh);
        let any = any.filter(|_| usual.is_none());
        Logins {
            of_ssh: any.map(|(pair, _)| pair.options()).unwrap_or_default(),
        }
    }

    /// One that negotiates this key exchange, and moves nothing.
    pub(super) fn trial(&self, name: &str, by: By) -> Trial {
        let mut options = vec![("KexAlgorithms".to_owned(), name.to_owned())];
        if by == By::Ssh {
            options.extend(self.of_ssh.iter().cloned());
        }
        Trial {
            by,
            options,
            blocks: 0,
        }
    }
}

fn time(done: &Done) -> Option<Duration> {
    done.result.times.key_exchange
}

fn median_of(times: impl Iterator<Item = Option<Duration>>) -> Option<Duration> {
    let seconds = times.flatten().map(|time| time.as_secs_f64());
    median(seconds.collect()).map(Duration::from_secs_f64)
}

/// Whether a quantum computer could not undo it either: a hybrid with a key encapsulation.
fn is_hybrid(name: &str) -> bool {
    name.starts_with("mlkem") || name.starts_with("sntrup")
}

/// What a client with these defaults takes; and what was measured to be faster, of what may take its place.
fn contender<'a>(
    found: &'a [Kex],
    by: By,
    defaults: &[String],
    server: &ServerLists,
) -> Option<(&'a str, Option<&'a str>)> {
    let usual = defaults.iter().find(|name| server.kex.contains(name))?;
    let is_of_client = |kex: &&Kex| kex.by == by && kex.time.is_some();
    let measured = || found.iter().filter(is_of_client);
    let usual = measured().find(|kex| kex.name == *usual)?;
    let may_be = |kex: &&Kex| {
        let is_as_safe = is_hybrid(&kex.name) || !is_hybrid(&usual.name);
        is_as_safe && weak::key_exchange(&kex.name).is_none()
    };
    let fastest = measured().filter(may_be).min_by_key(|kex| kex.time);
    let is_faster = |kex: &&Kex| is_saving(kex.time, usual.time);
    let fastest = fastest.filter(is_faster).map(|kex| kex.name.as_str());
    Some((&usual.name, fastest))
}

fn is_saving(time: Option<Duration>, usual: Option<Duration>) -> bool {
    let both = time.zip(usual);
    both.is_some_and(|(time, usual)| time < usual.mul_f64(1.0 - SAME))
}

/// What one saves of a login where it and the usual one were used in turn: in [`WINS`] rounds at the least.
fn saved(turns: &[(Option<Duration>, Option<Duration>)]) -> Option<Duration> {
    let won = turns.iter().filter(|(time, usual)| match (time, usual) {
        (Some(time), Some(usual)) => time < usual,
        _ => false,
    });
    let time = median_of(turns.iter().map(|(time, _)| *time));
    let usual = median_of(turns.iter().map(|(_, usual)| *usual));
    let is_sure = won.count() >= WINS && is_saving(time, usual);
    let (time, usual) = time.zip(usual).filter(|_| is_sure)?;
    Some(usual - time)
}

/// The advice for a client with these defaults, if what it takes was measured: what seems faster is tried again, beside it. Or the
/// exit status if a signal has ended that.
pub(super) fn advice(
    trials: &Trials<'_>,
    host: &str,
    (found, logins): (&[Kex], &Logins),
    (by, defaults): (By, &[String]),
    server: &ServerLists,
) -> Result<Result<Option<KexAdvice>, u8>, Box<dyn std::error::Error>> {
    let Some((usual, contender)) = contender(found, by, defaults, server) else {
        return Ok(Ok(None));
    };
    let mut advice = KexAdvice {
        by,
        usual: usual.to_owned(),
        better: None,
    };
    let is_single = trials.args.rounds == 1;
    let Some(contender) = contender.filter(|_| !is_single) else {
        return Ok(Ok(Some(advice)));
    };
    let both = [logins.trial(contender, by), logins.trial(usual, by)];
    let name = format!("{contender} by {}", by.name());
    let turns = match in_turn(trials, host, &name, both)? {
        Ok(turns) => turns,
        Err(status) => return Ok(Err(status)),
    };
    let turns = turns.iter().map(|(one, usual)| (time(one), time(usual)));
    let saved = saved(&turns.collect::<Vec<_>>());
    advice.better = saved.map(|saved| Better {
        name: contender.to_owned(),
        saved,
        list: with_first(contender, defaults),
    });
    Ok(Ok(Some(advice)))
}

/// See [`Better::list`].
fn with_first(name: &str, defaults: &[String]) -> Vec<String> {
    let others = || defaults.iter().filter(|other| *other != name);
    let stays_first = |other: &&String| is_hybrid(other) && !is_hybrid(name);
    let before = others().filter(stays_first).cloned();
    let behind = others().filter(|other| !stays_first(other)).cloned();
    before.chain([name.to_owned()]).chain(behind).collect()
}

impl KexAdvice {
    /// The lines of ssh_config; none where nothing is better, nor of sshoal's own client: an ssh that reads them, too, refuses them if
    /// it lacks a name.
    pub(super) fn lines(&self, host: &str) -> Vec<String> {
        let lines = |better: &Better| {
            vec![
                format!("Host {host}"),
                format!("    KexAlgorithms {}", better.list.join(",")),
            ]
        };
        let of_ssh = self.better.as_ref().filter(|_| self.by == By::Ssh);
        of_ssh.map(lines).unwrap_or_default()
    }

    /// Whether what is taken anyhow is more than others are.
    pub(super) fn is_hybrid(&self) -> bool {
        is_hybrid(&self.usual)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SNTRUP: &str = "sntrup761x25519-sha512@openssh.com";
    const MLKEM: &str = "mlkem768x25519-sha256";
    const CURVE: &str = "curve25519-sha256";
    const GROUP1: &str = "diffie-hellman-group1-sha1";

    fn kex(name: &str, by: By, milliseconds: u64) -> Kex {
        Kex {
            name: name.to_owned(),
            by,
            time: Some(Duration::from_millis(milliseconds)),
            login_cpu: None,
            failure: None,
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn found(times: &[(&str, u64)], defaults: &[&str]) -> Option<(String, Option<String>)> {
        let kexes: Vec<Kex> = times
            .iter()
            .map(|&(name, time)| kex(name, By::Ssh, time))
            .chain([kex(CURVE, By::Native, 1)])
            .collect();
        let server = ServerLists {
            kex: kexes.iter().map(|kex| kex.name.clone()).collect(),
            ..ServerLists::default()
        };
        let found = contender(&kexes, By::Ssh, &names(defaults), &server)?;
        Some((found.0.to_owned(), found.1.map(str::to_owned)))
    }

    #[test]
    fn what_is_faster_may_not_be_less_safe() {
        let both = [("x", 5), (SNTRUP, 20), (CURVE, 10), (GROUP1, 1)];
        let of =
            |usual: &str, other: Option<&str>| Some((usual.to_owned(), other.map(str::to_owned)));
        assert_eq!(found(&both[1..], &[SNTRUP, CURVE]), of(SNTRUP, None));
        assert_eq!(found(&both, &[CURVE]), of(CURVE, Some("x")));
        let three = [(SNTRUP, 20), (MLKEM, 12), (CURVE, 10)];
        assert_eq!(found(&three, &[SNTRUP]), of(SNTRUP, Some(MLKEM)));
        assert_eq!(found(&three, &[CURVE, SNTRUP]), of(CURVE, None));
        // The client's order decides, of what the server has.
        assert_eq!(found(&three, &["none", MLKEM]), of(MLKEM, None));
        assert_eq!(found(&[(CURVE, 9)], &["none"]), None);
        assert_eq!(found(&[(CURVE, 100), ("x", 96)], &[CURVE]), of(CURVE, None));
    }

    #[test]
    fn seven_of_eight_rounds_must_be_won() {
        let milliseconds = |time: u64| Some(Duration::from_millis(time));
        let mut turns = vec![(milliseconds(10), milliseconds(14)); 8];
        assert_eq!(saved(&turns), milliseconds(4));
        turns[2] = (milliseconds(90), milliseconds(14));
        assert_eq!(saved(&turns), milliseconds(4));
        turns[3] = (None, milliseconds(14));
        assert_eq!(saved(&turns), None);
        assert_eq!(saved(&[(milliseconds(100), milliseconds(101)); 8]), None);
        assert_eq!(saved(&[]), None);
    }

    #[test]
    fn the_lines_leave_nothing_out_that_the_client_offers() {
        let advice = |better| KexAdvice {
            by: By::Ssh,
            usual: SNTRUP.to_owned(),
            better,
        };
        let better = Better {
            name: MLKEM.to_owned(),
            saved: Duration::from_millis(8),
            list: with_first(MLKEM, &names(&[SNTRUP, MLKEM, CURVE])),
        };
        assert_eq!(
            advice(Some(better)).lines("web1"),
            [
                "Host web1".to_owned(),
                format!("    KexAlgorithms {MLKEM},{SNTRUP},{CURVE}"),
            ]
        );
        assert_eq!(advice(None).lines("web1"), Vec::<String>::new());
        // The server may have a better one some day.
        assert_eq!(
            with_first("ecdh", &names(&[MLKEM, CURVE, SNTRUP, "ecdh"])),
            [MLKEM, SNTRUP, "ecdh", CURVE]
        );
    }
}

//! `sshoal ciphers --json` (docs/json.md).

use serde::Serialize;
use sshoal_net::TrialWay;

use super::Report;
use super::advice::{Advice, Verdict};
use super::figures::{Direction, Row};
use super::kex::{Kex, KexAdvice};
use super::pairs::Pair;
use super::weak::Weakness;

#[derive(Serialize)]
struct Record<'a> {
    r#type: &'static str,
    version: u32,
    host: &'a str,
    server: &'a str,
    fingerprint: Option<&'a str>,
    way: &'static str,
    rounds: u32,
    octets: u64,
    offered: Offered<'a>,
    combinations: Vec<Combination<'a>>,
    key_exchanges: Vec<KeyExchange<'a>>,
    recommended: Vec<Recommended<'a>>,
    recommended_key_exchange: Option<RecommendedKex<'a>>,
    remembered: bool,
    weak: Vec<Weak<'a>>,
}

#[derive(Serialize)]
struct Offered<'a> {
    key_exchanges: &'a [String],
    host_keys: &'a [String],
    ciphers: &'a [String],
    macs: &'a [String],
}

#[derive(Serialize)]
struct Combination<'a> {
    cipher: &'a str,
    mac: Option<&'a str>,
    by: &'static str,
    down: Option<OneWay<'a>>,
    up: Option<OneWay<'a>>,
    weakness: Option<&'static str>,
    failure: Option<&'a str>,
}

#[derive(Serialize)]
struct OneWay<'a> {
    octets_a_second: f64,
    rounds: &'a [f64],
    client_cpu_seconds_a_gigaoctet: Option<f64>,
    server_cpu_seconds_a_gigaoctet: Option<f64>,
}

#[derive(Serialize)]
struct KeyExchange<'a> {
    name: &'a str,
    by: &'static str,
    seconds: Option<f64>,
    login_cpu_seconds: Option<f64>,
    weakness: Option<&'static str>,
    failure: Option<&'a str>,
}

#[derive(Serialize)]
struct Recommended<'a> {
    by: &'static str,
    cipher: &'a str,
    mac: Option<&'a str>,
    usual: Option<Named<'a>>,
    gain: Option<f64>,
    unsure: Option<Unsure<'a>>,
    ssh_config: Vec<String>,
}

#[derive(Serialize)]
struct RecommendedKex<'a> {
    by: &'static str,
    name: &'a str,
    usual: &'a str,
    saved_seconds: f64,
    ssh_config: Vec<String>,
}

/// What was faster by no more than rounds differ.
#[derive(Serialize)]
struct Unsure<'a> {
    cipher: &'a str,
    mac: Option<&'a str>,
    gain: f64,
}

#[derive(Serialize)]
struct Named<'a> {
    cipher: &'a str,
    mac: Option<&'a str>,
}

#[derive(Serialize)]
struct Weak<'a> {
    kind: &'static str,
    name: &'a str,
    why: &'static str,
    keyword: &'static str,
}

/// The object and a line feed.
pub(super) fn line(report: &Report) -> serde_json::Result<String> {
    let lists = &report.lists;
    let record = Record {
        r#type: "ciphers",
        version: sshoal_report::SCHEMA_VERSION,
        host: &report.host,
        server: &report.server.identification,
        fingerprint: report.server.fingerprint.as_deref(),
        way: match report.way {
            TrialWay::Exec => "exec",
            TrialWay::Sftp => "sftp",
        },
        rounds: report.rounds,
        octets: report.octets,
        offered: Offered {
            key_exchanges: &lists.kex,
            host_keys: &lists.host_keys,
            ciphers: &lists.ciphers,
            macs: &lists.macs,
        },
        combinations: report.rows.iter().map(combination).collect(),
        key_exchanges: report.kex.iter().map(key_exchange).collect(),
        recommended: report
            .advice
            .iter()
            .map(|advice| recommended(report, advice))
            .collect(),
        recommended_key_exchange: report
            .kex_advice
            .as_ref()
            .map(|advice| recommended_kex(report, advice)),
        remembered: report.remembered,
        weak: report.weak.iter().map(weak).collect(),
    };
    Ok(serde_json::to_string(&record)? + "\n")
}

fn combination(row: &Row) -> Combination<'_> {
    Combination {
        cipher: &row.pair.cipher,
        mac: row.pair.mac.as_deref(),
        by: row.by.name(),
        down: row.down.as_ref().map(one_way),
        up: row.up.as_ref().map(one_way),
        weakness: row.pair.weakness(),
        failure: row.failure.as_deref(),
    }
}

fn one_way(direction: &Direction) -> OneWay<'_> {
    OneWay {
        octets_a_second: direction.rate,
        rounds: &direction.rates,
        client_cpu_seconds_a_gigaoctet: direction.client_cpu,
        server_cpu_seconds_a_gigaoctet: direction.server_cpu,
    }
}

fn key_exchange(kex: &Kex) -> KeyExchange<'_> {
    KeyExchange {
        name: &kex.name,
        by: kex.by.name(),
        seconds: kex.time.map(|time| time.as_secs_f64()),
        login_cpu_seconds: kex.login_cpu.map(|time| time.as_secs_f64()),
        weakness: super::weak::key_exchange(&kex.name),
        failure: kex.failure.as_deref(),
    }
}

fn named(pair: &Pair) -> Named<'_> {
    Named {
        cipher: &pair.cipher,
        mac: pair.mac.as_deref(),
    }
}

fn recommended<'a>(report: &Report, advice: &'a Advice) -> Recommended<'a> {
    let Named { cipher, mac } = named(advice.best());
    Recommended {
        by: advice.by.name(),
        cipher,
        mac,
        usual: advice.usual.as_ref().map(named),
        gain: advice.gain,
        unsure: match &advice.verdict {
            Verdict::Unsure(pair, gain) => Some(Unsure {
                cipher: &pair.cipher,
                mac: pair.mac.as_deref(),
                gain: *gain,
            }),
            _ => None,
        },
        ssh_config: match advice.is_change() {
            true => advice.lines(&report.name),
            false => Vec::new(),
        },
    }
}

fn recommended_kex<'a>(report: &Report, advice: &'a KexAdvice) -> RecommendedKex<'a> {
    let better = advice.better.as_ref();
    RecommendedKex {
        by: advice.by.name(),
        name: better.map_or(&advice.usual, |better| &better.name),
        usual: &advice.usual,
        saved_seconds: better.map_or(0.0, |better| better.saved.as_secs_f64()),
        ssh_config: advice.lines(&report.name),
    }
}

fn weak(weakness: &Weakness) -> Weak<'_> {
    Weak {
        kind: weakness.kind,
        name: &weakness.name,
        why: weakness.why,
        keyword: weakness.keyword,
    }
}

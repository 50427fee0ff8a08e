//! `sshoal ciphers` against real sshd: what is measured, recommended, remembered and refused. No figure is judged but
//! against the others of the same table.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::{Ended, Running};
use support::{Shoal, User, shared_folder, wait_until};

/// Few MACs, so that there is not much to measure.
const MACS: &str = "MACs umac-64-etm@openssh.com,hmac-sha2-256-etm@openssh.com,hmac-sha1";
/// A round as short as may be.
const QUICK: [&str; 4] = ["--seconds", "0.01", "--rounds", "1"];

fn command(shoal: &Shoal<RealSshd>, words: &[&str]) -> Command {
    let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    command
        .arg("ciphers")
        .args(["-F", &shoal.file("ssh_config")]);
    command.arg(shoal.name(0)).args(words);
    command
}

/// `sshoal ciphers` on the first host, to its end.
fn ciphers(shoal: &Shoal<RealSshd>, words: &[&str]) -> Ended {
    Running::start(&mut command(shoal, words)).wait()
}

/// What `--json` says of a single round.
fn measured(shoal: &Shoal<RealSshd>, words: &[&str]) -> Value {
    measured_in("1", shoal, words)
}

/// What it says of so many.
fn measured_in(rounds: &str, shoal: &Shoal<RealSshd>, words: &[&str]) -> Value {
    let words = [words, &QUICK[..3], &[rounds, "--json"]].concat();
    let ended = ciphers(shoal, &words).expect(0);
    serde_json::from_str(&ended.stdout()).unwrap()
}

fn list(value: &Value) -> Vec<&str> {
    let all = value.as_array().unwrap().iter();
    all.map(|name| name.as_str().unwrap()).collect()
}

/// As much down as up, as docs/ciphers.md has it; up alone where nothing comes down at all.
fn rate(row: &Value) -> Option<f64> {
    let rate = |way: &str| row[way]["octets_a_second"].as_f64();
    match (rate("down"), rate("up")) {
        (Some(down), Some(up)) => Some(2.0 / (1.0 / down + 1.0 / up)),
        (_, up) => up,
    }
}

/// Whether they name the same cipher and MAC.
fn is_same(one: &Value, other: &Value) -> bool {
    one["cipher"] == other["cipher"] && one["mac"] == other["mac"]
}

/// Holds what is recommended against what the server offers and against the table. Of one round, which tells nothing of
/// how much it might differ from another, nothing follows but what the client takes anyhow.
fn check_advice(found: &Value, clients: &[&str]) {
    let offered = |kind: &str| list(&found["offered"][kind]);
    let rows = found["combinations"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row["failure"].is_null(), "{row}");
        assert!(offered("ciphers").contains(&row["cipher"].as_str().unwrap()));
        assert!(rate(row).unwrap() > 0.0, "{row}");
    }
    let advice = found["recommended"].as_array().unwrap();
    let by: Vec<&str> = advice.iter().map(|it| it["by"].as_str().unwrap()).collect();
    assert_eq!(by, clients, "{found}");
    for advice in advice {
        let is_of_client = |row: &&Value| row["by"] == advice["by"];
        let fastest = match &advice["unsure"] {
            Value::Null => advice,
            unsure => unsure,
        };
        let rows = || rows.iter().filter(is_of_client);
        let best = rows().find(|row| is_same(row, fastest));
        let best = rate(best.unwrap()).unwrap();
        let may_be = |row: &&Value| {
            let mac = row["mac"].as_str();
            row["weakness"].is_null() && mac.is_none_or(|mac| mac.contains("-etm@"))
        };
        for row in rows().filter(may_be) {
            // Within that the rounds decide, and then CPU.
            assert!(rate(row).unwrap() * 0.85 <= best, "{row} beats {advice}");
        }
        let usual = &advice["usual"];
        if rows().any(|row| is_same(row, usual) && may_be(&row)) {
            assert!(is_same(advice, usual), "{advice}");
            assert_eq!(advice["ssh_config"], Value::Array(Vec::new()));
        }
    }
}

#[test]
fn without_gcm_the_recommendation_is_among_what_is_offered_and_fits_the_table() {
    let spec = SshdSpec::new(1)
        .line("Ciphers -aes*-gcm@openssh.com")
        .line(MACS);
    let found = measured(&Shoal::real(&spec), &["--no-kex"]);
    check_advice(&found, &["ssh", "native"]);
    assert_eq!(found["way"], "exec");
    let rows = found["combinations"].as_array().unwrap();
    let has = |cipher: &str, mac: Option<&str>, by: &str| {
        let mut rows = rows.iter();
        rows.any(|row| row["cipher"] == cipher && row["mac"].as_str() == mac && row["by"] == by)
    };
    assert!(
        !rows
            .iter()
            .any(|row| row["cipher"].as_str().unwrap().contains("gcm"))
    );
    for cipher in ["aes128-ctr", "aes192-ctr", "aes256-ctr"] {
        // What native lacks goes by ssh, and what nobody is to use is measured all the same.
        assert!(has(cipher, Some("umac-64-etm@openssh.com"), "ssh"));
        assert!(!has(cipher, Some("umac-64-etm@openssh.com"), "native"));
        assert!(has(cipher, Some("hmac-sha1"), "native"));
    }
    assert!(has("chacha20-poly1305@openssh.com", None, "native"));
    // Processes of the same account on the same machine: their accounts can be read.
    let down = &rows[0]["down"];
    assert!(
        down["server_cpu_seconds_a_gigaoctet"].as_f64().is_some(),
        "{down}"
    );
    assert!(
        down["client_cpu_seconds_a_gigaoctet"].as_f64().is_some(),
        "{down}"
    );
}

#[test]
fn with_chacha20_and_one_ctr_alone_each_of_them_and_each_key_exchange_is_measured() {
    let spec = SshdSpec::new(1)
        .line("Ciphers chacha20-poly1305@openssh.com,aes256-ctr")
        .line("KexAlgorithms curve25519-sha256,ecdh-sha2-nistp256,diffie-hellman-group14-sha1")
        .line(MACS);
    let shoal = Shoal::real(&spec);
    let svg = shoal.user.home().join("picture.svg");
    let found = measured(
        &shoal,
        &["--transport", "native", "--svg", svg.to_str().unwrap()],
    );
    check_advice(&found, &["native"]);
    assert_eq!(found["combinations"].as_array().unwrap().len(), 3);
    let kex = found["key_exchanges"].as_array().unwrap();
    let names: Vec<&str> = kex.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["curve25519-sha256", "ecdh-sha2-nistp256"]);
    assert!(
        kex.iter().all(|it| it["seconds"].as_f64().is_some()),
        "{kex:?}"
    );
    let weak = found["weak"].as_array().unwrap();
    let weak: Vec<&str> = weak.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(weak, ["hmac-sha1", "diffie-hellman-group14-sha1"]);
    let picture = fs::read_to_string(svg).unwrap();
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert!(
        picture.contains("aes256-ctr hmac-sha2-256-etm@openssh.com (native)"),
        "{picture}"
    );
}

#[test]
fn each_key_exchange_is_measured_by_who_has_it_and_one_may_be_recommended() {
    let spec = SshdSpec::new(1)
        .line("Ciphers aes128-gcm@openssh.com")
        .line("KexAlgorithms diffie-hellman-group16-sha512,curve25519-sha256,diffie-hellman-group14-sha1");
    let shoal = Shoal::real(&spec);
    let found = measured_in("2", &shoal, &[]);
    let kex = found["key_exchanges"].as_array().unwrap();
    let said = |it: &Value, member: &str| it[member].as_str().unwrap().to_owned();
    let names: Vec<String> = kex
        .iter()
        .map(|it| format!("{} {}", said(it, "name"), said(it, "by")))
        .collect();
    assert_eq!(
        names,
        [
            "diffie-hellman-group16-sha512 native",
            "diffie-hellman-group16-sha512 ssh",
            "curve25519-sha256 native",
            "curve25519-sha256 ssh",
            // What native lacks, and nobody should use.
            "diffie-hellman-group14-sha1 ssh",
        ]
    );
    for it in kex {
        assert!(it["seconds"].as_f64().unwrap() > 0.0, "{it}");
        assert!(it["failure"].is_null(), "{it}");
    }
    // Debian's ssh has this one before the group.
    let advice = &found["recommended_key_exchange"];
    assert_eq!(advice["by"], "ssh");
    assert_eq!(advice["usual"], "curve25519-sha256");
    let lines = advice["ssh_config"].as_array().unwrap();
    match advice["name"] == advice["usual"] {
        true => assert!(lines.is_empty() && advice["saved_seconds"] == 0.0),
        false => {
            let first = lines[1].as_str().unwrap();
            let named = first.strip_prefix("    KexAlgorithms ").unwrap();
            let mut named = named.split(',').skip_while(|it| it.starts_with("sntrup"));
            assert_eq!(named.next().unwrap(), advice["name"], "{advice}");
            assert!(advice["saved_seconds"].as_f64().unwrap() > 0.0);
        }
    }
    let text = ciphers(&shoal, &QUICK).expect(0).stdout();
    assert!(
        text.contains("One round does not tell which key exchange"),
        "{text}"
    );
    let native = ["--transport", "native"];
    let found = measured_in("2", &shoal, &native);
    assert_eq!(found["recommended_key_exchange"]["by"], "native");
}

#[test]
fn weak_ciphers_are_measured_by_ssh_named_and_never_recommended() {
    let spec = SshdSpec::new(1)
        .line("Ciphers aes128-cbc,aes128-ctr,aes256-ctr")
        .line("MACs hmac-sha2-256-etm@openssh.com");
    let shoal = Shoal::real(&spec);
    let said = |words: &[&str], expected: &[&str]| {
        let words = [&QUICK[..], &["--no-kex"], words].concat();
        let said = ciphers(&shoal, &words).expect(0).stdout();
        for words in expected {
            assert!(said.contains(words), "{words:?} is missing: {said}");
        }
    };
    let weak = [
        "aes128-cbc  hmac-sha2-256-etm@openssh.com  ssh ",
        "cipher aes128-cbc: CBC mode lets an attacker guess plaintext (Ciphers in its sshd_config)",
    ];
    said(&[], &weak);
    let native = ["2", "--no-kex", "--transport", "native"];
    let twice = [&QUICK[..3], &native].concat();
    let twice = ciphers(&shoal, &twice).expect(0).stdout();
    assert!(twice.contains("Remembered: "), "{twice}");
    // What ssh would take by itself is left out.
    let host = format!("Host {}\n", shoal.name(0));
    let recommended = [
        &weak[..],
        &[
            "Recommended for ssh: aes256-ctr hmac-sha2-256-etm@openssh.com, what it would take by itself was not measured",
            "Ciphers aes256-ctr\n",
            "MACs hmac-sha2-256-etm@openssh.com\n",
            host.as_str(),
        ],
    ];
    said(
        &["--cipher", "aes128-cbc,aes256-ctr"],
        &recommended.concat(),
    );
}

#[test]
fn a_server_that_native_has_nothing_in_common_with_is_measured_by_ssh() {
    let spec = SshdSpec::new(1)
        .line("Ciphers aes128-cbc,aes256-cbc")
        .line("MACs hmac-sha2-256");
    let shoal = Shoal::real(&spec);
    let found = measured(&shoal, &[]);
    let rows = found["combinations"].as_array().unwrap();
    let ciphers_of = |rows: &[Value]| -> Vec<String> {
        let names = rows.iter().map(|row| row["cipher"].as_str().unwrap());
        names.map(str::to_owned).collect()
    };
    assert_eq!(ciphers_of(rows), ["aes128-cbc", "aes256-cbc"]);
    for row in rows {
        assert_eq!(row["by"], "ssh");
        assert!(row["failure"].is_null() && rate(row).is_some(), "{row}");
        assert!(row["weakness"].as_str().unwrap().contains("CBC"));
    }
    let weak = found["weak"].as_array().unwrap();
    assert_eq!(weak.len(), 2, "{weak:?}");
    assert_eq!(found["recommended"], Value::Array(Vec::new()));
    let kex = found["key_exchanges"].as_array().unwrap();
    assert!(kex.iter().all(|it| it["by"] == "ssh"), "{kex:?}");
    assert!(!kex.is_empty());
    assert!(found["fingerprint"].is_null() && found["remembered"] == false);
    let said = ciphers(&shoal, &QUICK).expect(0).stdout();
    assert!(said.contains("Nothing is recommended"), "{said}");
    // Without it there is nothing to measure with.
    let native = [&QUICK[..], &["--transport", "native"]].concat();
    ciphers(&shoal, &native)
        .expect(3)
        .says(&["no-common-algorithm", "aes128-cbc"]);
}

#[test]
fn that_a_picture_cannot_be_written_is_said_before_anything_is_measured() {
    let shoal = Shoal::real(&SshdSpec::new(1).line(MACS));
    let svg = shoal.user.home().join("no/such/folder/picture.svg");
    let words = [&QUICK[..], &["--svg", svg.to_str().unwrap()]].concat();
    let ended = ciphers(&shoal, &words).expect(2);
    ended.says(&["cannot write the picture", "no/such/folder/picture.svg"]);
    assert_eq!(shoal.hosts.logins(), 0);
}

#[test]
fn a_host_that_runs_no_commands_is_measured_by_sftp() {
    for line in [
        "ForceCommand internal-sftp",
        "ForceCommand /usr/sbin/nologin",
    ] {
        let spec = SshdSpec::new(1)
            .line("Subsystem sftp internal-sftp")
            .line("Ciphers aes128-ctr")
            .line(MACS)
            .line(line);
        let shoal = Shoal::real(&spec);
        if line.contains("nologin") {
            let words = [&QUICK[..], &["--no-kex"]].concat();
            ciphers(&shoal, &words).expect(3).says(&[
                &shoal.name(0),
                "nothing can be measured: it runs no command",
            ]);
            continue;
        }
        let found = measured(&shoal, &["--no-kex"]);
        assert_eq!(found["way"], "sftp");
        check_advice(&found, &["native"]);
    }
}

/// Ciphers and MACs of all connections so far, as the server negotiated them.
fn negotiated(shoal: &Shoal<RealSshd>) -> Vec<String> {
    let log = shoal.hosts.log(0);
    let lines = log.lines().filter_map(|line| {
        let (_, behind) = line.split_once("kex: client->server cipher: ")?;
        behind
            .split_once(" compression")
            .map(|(names, _)| names.to_owned())
    });
    lines.collect()
}

#[test]
fn run_put_and_get_offer_what_was_measured_first_unless_the_user_chose() {
    let shoal = Shoal::real(&SshdSpec::new(1).line("LogLevel DEBUG1").line(MACS));
    let whole = ["--no-kex", "--transport", "native"];
    let found = measured_in("2", &shoal, &whole);
    assert_eq!(found["remembered"], true);
    // What is fastest here differs from day to day; what is remembered is made certain.
    let cache = shoal.user.home().join(".cache/sshoal/servers");
    let text = fs::read_to_string(&cache).unwrap();
    let line = text.lines().nth(1).unwrap();
    let fields: Vec<&str> = line.split('\t').collect();
    assert_eq!(fields.len(), 6, "{line}");
    let best = &found["recommended"][0];
    let name = match best["mac"].as_str() {
        None => best["cipher"].as_str().unwrap().to_owned(),
        Some(mac) => format!("{}+{mac}", best["cipher"].as_str().unwrap()),
    };
    assert_eq!(fields[5].split(',').next().unwrap(), name);
    let own = text.replace(fields[5], "aes192-ctr+hmac-sha1,aes128-gcm@openssh.com");
    fs::write(&cache, own).unwrap();

    let folder = shared_folder();
    let target = folder.path().join("motd");
    let (target, got) = (target.to_str().unwrap(), shoal.user.home().join("got"));
    let source = shoal.user.home().join("motd");
    fs::write(&source, "Hello.\n").unwrap();
    let (source, got) = (source.to_str().unwrap(), got.to_str().unwrap());
    let with = |words: &[&str]| {
        let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        let (config, hosts) = (shoal.file("ssh_config"), shoal.file("hosts"));
        command
            .arg(words[0])
            .args(["-F", &config, "-f", &hosts])
            .args(&words[1..]);
        Running::start(&mut command).wait().expect(0);
        negotiated(&shoal).pop().unwrap()
    };
    let remembered = "aes192-ctr MAC: hmac-sha1";
    assert_eq!(with(&["run", "true"]), remembered);
    assert_eq!(with(&["put", source, target]), remembered);
    assert_eq!(with(&["get", target, got]), remembered);
    for (option, chosen) in [
        (
            "Ciphers=aes256-ctr",
            "aes256-ctr MAC: hmac-sha2-256-etm@openssh.com",
        ),
        (
            "MACs=hmac-sha2-256-etm@openssh.com",
            "aes128-gcm@openssh.com MAC: <implicit>",
        ),
    ] {
        assert_eq!(with(&["run", "-o", option, "true"]), chosen);
        assert_eq!(with(&["put", "-o", option, source, target]), chosen);
    }
    // A part of it says nothing of the rest, and a single round little: neither is remembered.
    let part = ["--no-kex", "--cipher", "aes256-ctr"];
    for (rounds, words) in [("2", &part), ("1", &whole)] {
        assert_eq!(measured_in(rounds, &shoal, words)["remembered"], false);
        assert_eq!(with(&["run", "true"]), remembered);
    }
}

#[test]
fn what_cannot_be_measured_is_told_with_host_phase_and_remedy() {
    let user = User::new();
    let ends = |words: &[&str], status: i32, says: &[&str]| {
        let mut command = user.command(env!("CARGO_BIN_EXE_sshoal"));
        command.arg("ciphers").args(["-F", "none"]).args(words);
        Running::start(&mut command)
            .wait()
            .expect(status)
            .says(says);
    };
    ends(&["web[1-2]"], 2, &["2 hosts", "name one"]);
    ends(&["web1", "--seconds", "0"], 2, &["from 0.01 to 60"]);
    ends(
        &["web1", "--transport", "openssh"],
        2,
        &["goes by ssh", "--transport native"],
    );
    ends(&["127.0.0.1:1"], 3, &["127.0.0.1:1: refused", "; "]);
    let shoal = Shoal::real(&SshdSpec::new(1).line(MACS));
    let svg = shoal.user.home().join("picture.svg");
    let words = ["--cipher", "3des-cbc", "--svg", svg.to_str().unwrap()];
    let nothing = ciphers(&shoal, &words).expect(3);
    nothing.says(&["nothing to measure", "aes128-ctr", "hmac-sha1"]);
    assert!(!svg.exists(), "a picture of nothing is left");
    let logins = shoal.hosts.logins();
    let unknown = ciphers(&shoal, &["--mac", "hmac-sha1,hmac-rot13"]).expect(2);
    unknown.says(&["no mac is called \"hmac-rot13\"", "ssh -Q mac"]);
    assert_eq!(shoal.hosts.logins(), logins);
}

#[test]
fn an_interrupted_measurement_ends_at_once_and_is_not_remembered() {
    let shoal = Shoal::real(&SshdSpec::new(1).line(MACS));
    let words = ["--rounds", "100", "--seconds", "0.01"];
    let running = Running::start(&mut command(&shoal, &words));
    wait_until("some rounds have begun", || shoal.hosts.logins() > 10);
    running.interrupt();
    assert_eq!(running.wait().expect(130).stdout(), "");
    let cache = shoal.user.home().join(".cache/sshoal/servers");
    let text = fs::read_to_string(cache).unwrap_or_default();
    assert!(!text.contains("aes"), "{text}");
}

#[test]
fn every_member_of_the_json_is_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let text = fs::read_to_string(path).unwrap();
    let section = text.split("\n## `ciphers`\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let spec = SshdSpec::new(1).line("Ciphers aes128-ctr").line(MACS);
    let found = measured(&Shoal::real(&spec), &[]);
    let mut values = vec![&found];
    while let Some(value) = values.pop() {
        values.extend(value.as_array().into_iter().flatten());
        for (name, value) in value.as_object().into_iter().flatten() {
            assert!(
                section.contains(&format!("`{name}`")),
                "{name} is not in docs/json.md"
            );
            values.push(value);
        }
    }
}

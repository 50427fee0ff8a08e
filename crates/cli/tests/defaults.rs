//! `~/.config/sshoal/config.toml`.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use sshoal_testbed::simulated::Simulation;
use support::Shoal;
use support::program::{Ended, Running};

fn configure(folder: &Path, text: &str) {
    fs::create_dir_all(folder.join("sshoal")).unwrap();
    fs::write(folder.join("sshoal/config.toml"), text).unwrap();
}

/// Two hosts, and a user with these defaults.
fn with_defaults(text: &str) -> Shoal<Simulation> {
    let shoal = Shoal::simulated(2, &[]);
    configure(&shoal.user.home().join(".config"), text);
    shoal
}

#[test]
fn defaults_are_used_as_if_they_had_been_typed() {
    let shoal = with_defaults("[run]\ngather = true\nexclude = \"127.1.0.2\"\nquiet = true\n");
    let ended = shoal.run(&["hostname"]).expect(0);
    let rule = "-".repeat(15);
    assert_eq!(
        ended.stdout(),
        format!("{rule}\n{}\n{rule}\nsim0\n", shoal.name(0))
    );
}

#[test]
fn what_is_typed_wins() {
    let shoal = with_defaults(
        "[run]\ngather = true\nlogin = \"nobody\"\noption = [\"Port=1\"]\ntimeout = 0.1\n",
    );
    let port = format!("Port={}", shoal.hosts.addresses()[0].port());
    let typed = ["-l", "root", "-o", &port, "-u", "30", "--json", "sleep 1"];
    let ended = shoal.run_on(&shoal.name(0), &typed).expect(0);
    assert!(
        ended.stdout().contains("\"user\":\"root\""),
        "{}",
        ended.stdout()
    );
    // The same without: nobody listens on port 1.
    shoal
        .run_on(&shoal.name(0), &["true"])
        .expect(3)
        .says(&["refused", ":1"]);
}

#[test]
fn each_command_has_its_own() {
    let shoal = with_defaults("[each]\njson = true\n[run]\nverbose = true\n");
    assert!(shoal.run(&["hostname"]).expect(0).stderr().contains(": ok"));
    let mut each = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    let ended = Running::start(each.args(["each", "-w", "a", "true"]))
        .wait()
        .expect(0);
    assert_eq!(ended.records().summary.ok, 1);
}

#[test]
fn the_folder_is_the_one_that_xdg_names() {
    let shoal = with_defaults("broken");
    let elsewhere = shoal.dir.path().join("elsewhere");
    configure(&elsewhere, "[run]\njson = true\n");
    let mut command = shoal.command(&["hostname"]);
    let ended = Running::start(command.env("XDG_CONFIG_HOME", &elsewhere))
        .wait()
        .expect(0);
    assert_eq!(ended.records().summary.ok, 2);
}

/// What is said of these defaults, and that nothing was run.
fn refused(text: &str) -> Ended {
    let shoal = with_defaults(text);
    let ended = shoal.run(&["hostname"]).expect(2);
    assert_eq!(
        (ended.stdout().as_str(), shoal.hosts.totals().connections),
        ("", 0)
    );
    ended
}

#[test]
fn errors_name_the_file_the_key_and_what_is_wrong() {
    for (text, words) in [
        ("[run\n", &["line 1"][..]),
        ("parallel = 5\n", &["parallel: there is no such table"]),
        ("[rum]\n", &["rum: there is no such table"]),
        (
            "[run]\nparalel = 5\n",
            &["[run] paralel: sshoal run has no flag --paralel"],
        ),
        (
            "[run]\nparallel = 0\n",
            &["[run] parallel: invalid value '0'"],
        ),
        (
            "[run]\nparallel = 2020-01-01\n",
            &["[run] parallel: a date is no value"],
        ),
        (
            "[run]\nhosts = \"a\"\n",
            &["[run] hosts: no default can be given"],
        ),
    ] {
        refused(text)
            .says(&["sshoal: ", ".config/sshoal/config.toml: "])
            .says(words);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_none_is_none() {
    let shoal = Shoal::simulated(1, &[]);
    shoal.run(&["hostname"]).expect(0);
    fs::create_dir_all(shoal.user.home().join(".config/sshoal/config.toml")).unwrap();
    shoal
        .run(&["hostname"])
        .expect(2)
        .says(&["cannot read", "config.toml"]);
    // What needs no defaults does not look for them.
    let mut version = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    Running::start(version.args(["completions", "bash"]))
        .wait()
        .expect(0);
}

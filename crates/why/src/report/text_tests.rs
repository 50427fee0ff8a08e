//! What a terminal shows of a diagnosis.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::evidence::Evidence;
use crate::fixtures::{clean, clean_no_root, ms, slow};

const PLAIN: TextOptions = TextOptions {
    width: 80,
    unicode: false,
    colour: false,
    all_causes: false,
};

fn told(evidence: &Evidence, options: TextOptions) -> String {
    text(&Diagnosis::of(evidence), options)
}

fn slow_motd() -> Evidence {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 800.0);
    evidence.facts.insert("host.motd_scripts.time", ms(800.0));
    evidence
}

#[test]
fn what_was_found_stands_first_with_its_time_and_its_line() {
    let told = told(&slow_motd(), PLAIN);
    let places: Vec<usize> = [
        "web1 (127.0.0.5, SSH-2.0-OpenSSH_9.2p1",
        "\nFound\n",
        "  1    79",
        "[pam-motd, proven]",
        "change  /etc/pam.d/sshd:",
        "                       session optional pam_motd.so noupdate\n",
        "saves   about 79",
        "Where the time goes",
        "\n  channel open",
        "unexplained",
        "Resources",
        "CPU        ruled out",
        "Ruled out",
        "use-dns",
    ]
    .iter()
    .map(|words| {
        told.find(words)
            .unwrap_or_else(|| panic!("{words}: {told}"))
    })
    .collect();
    assert!(places.is_sorted(), "{places:?}: {told}");
}

#[test]
fn a_clean_login_is_told_as_one() {
    let told = told(&clean(0.05), PLAIN);
    assert!(
        told.contains("\nNothing found\n") && !told.contains("saves"),
        "{told}"
    );
    assert!(told.contains("client tier: told to run nothing on the host"));
}

#[test]
fn lines_fit_the_width_but_for_what_is_to_be_copied() {
    for width in [60, 80, 132] {
        for line in told(&slow_motd(), TextOptions { width, ..PLAIN }).lines() {
            let is_copied = line.starts_with(&" ".repeat(23));
            assert!(
                is_copied || line.chars().count() <= width,
                "{width}: {line}"
            );
        }
    }
}

#[test]
fn bars_are_ascii_where_they_must_be() {
    assert!(told(&slow_motd(), PLAIN).is_ascii());
    let bars = told(
        &slow_motd(),
        TextOptions {
            unicode: true,
            ..PLAIN
        },
    );
    assert!(bars.contains('█'));
}

#[test]
fn colours_are_optional() {
    assert!(!told(&slow_motd(), PLAIN).contains('\u{1b}'));
    let coloured = told(
        &slow_motd(),
        TextOptions {
            colour: true,
            ..PLAIN
        },
    );
    assert!(coloured.contains("\u{1b}[31m"));
}

#[test]
fn each_cause_s_reason_is_told_when_asked_for() {
    let all = told(
        &slow_motd(),
        TextOptions {
            all_causes: true,
            ..PLAIN
        },
    );
    assert!(
        all.contains("use-dns                  sshd_config: UseDNS no"),
        "{all}"
    );
}

proptest! {
    #[test]
    fn foreign_text_steers_no_terminal(foreign: String) {
        let mut evidence = slow_motd();
        evidence.host = foreign.clone();
        evidence.address = Some(foreign.clone());
        evidence.identification = Some(foreign.clone());
        evidence.tier_notes = vec![foreign.clone()];
        evidence.logins[0].failure = Some(foreign.clone());
        evidence.facts.insert("host.pam.motd", format!("pam_motd{foreign}"));
        evidence.facts.insert("host.sshd_config.UseDNS", foreign.clone());
        evidence.facts.insert("host.home.filesystem", foreign);
        let steers = |c: char| c != '\n' && c.is_control();
        let all = TextOptions { all_causes: true, ..PLAIN };
        prop_assert!(!told(&evidence, all).contains(steers));
    }
}

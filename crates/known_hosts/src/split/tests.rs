#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::testing::{ed25519, hashed, known_hosts, text};
use crate::{Presented, Query};

fn contents(split: &Split) -> Vec<(&str, usize)> {
    let files = split.files.iter();
    files.map(|file| (file.name.as_str(), file.lines)).collect()
}

fn lines() -> Vec<String> {
    let key = |seed| text(&ed25519(seed));
    vec![
        format!("Web1,10.0.0.1 {} a comment\r", key(1)),
        format!("[git.example.com]:7999,[10.0.0.2]:7999 {}", key(2)),
        format!("git.example.com {}", key(3)),
        format!("@revoked * {}", key(4)),
        format!("@cert-authority *.example.com {}", key(5)),
        format!("{} {}", hashed("web1", 1), key(6)),
        format!("10.0.0.2 {}", key(7)),
        format!("@revoked broken {}!", key(8)),
    ]
}

#[test]
fn each_host_gets_the_lines_that_apply_to_it() {
    let known = known_hosts(&lines());
    let hosts = known.split_hosts();
    let split = known.split(&hosts);
    assert_eq!(
        contents(&split),
        [
            ("10.0.0.1", 2),
            ("10.0.0.2", 3),
            ("git.example.com", 5),
            ("web1", 3)
        ]
    );
    let web1 = [0, 3, 5].map(|at| format!("{}\n", lines()[at])).concat();
    assert_eq!(split.files[3].content, web1.into_bytes());
    let git = [1, 2, 3, 4, 6]
        .map(|at| format!("{}\n", lines()[at]))
        .concat();
    assert_eq!(split.files[2].content, git.into_bytes());
}

#[test]
fn names_come_from_a_list_where_lines_are_hashed() {
    let key = text(&ed25519(1));
    let known = known_hosts(&[
        format!("{} {key}", hashed("a", 1)),
        format!("{} {key}", hashed("[a]:2222", 2)),
        format!("{} {key}", hashed("10.0.0.9", 3)),
    ]);
    assert_eq!(known.split_hosts(), []);
    let mut hosts: Vec<SplitHost> = ["A", "[a]:2222", "b"].map(SplitHost::parse).to_vec();
    hosts[0].addresses.insert("10.0.0.9".into());
    let split = known.split(&hosts);
    assert_eq!(contents(&split), [("a", 3)]);
    assert_eq!(split.missing, ["b"]);
}

#[test]
fn no_name_leads_out_of_the_directory() {
    let mut lines = lines();
    lines.push(format!(
        "../x,..,.,.hidden,-o,a/b,/etc {}",
        text(&ed25519(1))
    ));
    let known = known_hosts(&lines);
    let mut hosts = known.split_hosts();
    let bad = ["", "a b", "a\0", "~", "%h", "a\n", "b\u{fc}cher", "c:\\d"];
    hosts.extend(bad.map(SplitHost::parse));
    hosts.push(SplitHost::parse(&"a".repeat(256)));
    let split = known.split(&hosts);
    assert_eq!(contents(&split).len(), 4);
    assert_eq!(split.unsafe_names.len(), 7 + bad.len() + 1);
    let longest = known.split(&[SplitHost::parse(&"a".repeat(255))]);
    assert_eq!(longest.files.len(), 1);
}

#[test]
fn the_config_names_the_directory_and_nothing_else() {
    let lines = split_config("~/.ssh/known_hosts_single/").unwrap();
    assert_eq!(
        lines,
        "Host *\n    UserKnownHostsFile \"~/.ssh/known_hosts_single/%h\"\n"
    );
    assert!(
        split_config("/a b/100%\\x")
            .unwrap()
            .contains("\"/a b/100%%\\\\x/%h\"")
    );
    for bad in ["", "a\"b", "a\nHost x", "a\r"] {
        assert_eq!(split_config(bad), Err(DirectoryError(bad.into())));
    }
}

proptest! {
    #[test]
    fn a_split_file_says_what_the_whole_says(
        fields in prop::collection::vec(("(@revoked )?", "[ab*?]{1,2}(,!?[ab]{1,2})?", 0u8..3), 0..12),
        name in "[ab]{1,2}",
        seed in 0u8..3,
    ) {
        let lines: Vec<String> = fields
            .iter()
            .map(|(marker, hosts, seed)| format!("{marker}{hosts} {}", text(&ed25519(*seed))))
            .collect();
        let known = known_hosts(&lines);
        let split = known.split(&[SplitHost::parse(&name)]);
        let content = split.files.first().map(|file| file.content.clone()).unwrap_or_default();
        let own = KnownHosts::parse(vec![("own".into(), content)]);
        let verdict = |known: &KnownHosts| {
            let query = Query { names: &[HostName::new(&name)], now: 0 };
            std::mem::discriminant(&known.judge(&query, &Presented::Key(&ed25519(seed))))
        };
        prop_assert_eq!(verdict(&own), verdict(&known));
    }
}

//! Genders queries at random against Debian's `nodeattr` (package genders).
use std::{collections::BTreeSet, fs, process::Command};

use sshoal_targets::{Genders, NodeName};

use crate::random::Random;

fn query(random: &mut Random, depth: usize) -> String {
    let term = match random.below(if depth > 3 { 4 } else { 7 }) {
        0 | 1 => random
            .pick(&["a", "b", "c", "d", "c-d", "nosuch"])
            .to_owned(),
        2 => random
            .pick(&["v=1", "v=2", "v", "v=n3", "w=x-n1", "w=%"])
            .to_owned(),
        3 => format!("~{}", random.pick(&["a", "b", "v=1"])),
        4 => format!("~({})", query(random, depth + 1)),
        _ => format!("({})", query(random, depth + 1)),
    };
    match random.below(3) {
        0 => term,
        _ => format!(
            "{term}{}{}",
            random.pick(&["||", "&&", "--", " || ", " && "]),
            query(random, depth + 1)
        ),
    }
}

#[test]
fn queries_pick_what_nodeattr_picks() {
    let mut random = Random(6);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("genders");
    let mut answered = 0;
    for case in 0..60 {
        let mut file = String::from("n[0-9] e\n");
        for attribute in ["a", "b", "c", "d", "c-d"] {
            file.push_str(&format!(
                "n[{}-{}] {attribute}\n",
                random.below(5),
                5 + random.below(5)
            ));
        }
        file.push_str("n[0-2] v=1\nn[4-5] v=2\nn3 v=%n\nn[6-8] v\nn[1-2] w=x-%n\nn4 w=%%\n");
        fs::write(&path, &file).unwrap();
        let genders = Genders::parse("genders", file.as_bytes()).unwrap();
        for _ in 0..10 {
            let query = query(&mut random, 0);
            let nodeattr = Command::new("nodeattr")
                .args(["-n", "-f"])
                .arg(&path)
                .arg(&query)
                .output();
            let nodeattr = nodeattr.expect("nodeattr is missing: run scripts/setup.sh");
            assert!(nodeattr.status.success(), "{query}: {nodeattr:?}");
            let theirs = String::from_utf8(nodeattr.stdout).unwrap();
            let theirs: BTreeSet<String> = theirs.lines().map(str::to_owned).collect();
            let ours = genders.query(&query, NodeName::Canonical).unwrap();
            let ours: BTreeSet<String> = ours.into_iter().map(|target| target.name).collect();
            assert_eq!(ours, theirs, "case {case}: {query}\n{file}");
            answered += usize::from(!ours.is_empty());
        }
    }
    assert!(answered > 200, "only {answered} queries picked a host");
}

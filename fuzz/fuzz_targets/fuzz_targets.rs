//! Any list, file, database and inventory: reading ends without a panic and in limits, what is printed reads
//! back the same, and folded names expand to just these.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use sshoal_targets::{
    Expansion, Genders, GroupTable, HostList, Inventory, NodeName, Sources, Supply, fold,
    known_hosts_names, parse_csv, parse_file, parse_json, ssh_config_names,
};

/// What bytes above 127 stand for, so that the fuzzer need not find them letter by letter.
const WORDS: [&str; 32] = [
    "[1-3]",
    "[01-12]",
    "[0-10/2]",
    "[1,3]",
    "web",
    "n",
    "-",
    ".lan",
    "@g",
    "@h",
    "@s:",
    "@*",
    "^f",
    "/1/",
    "*",
    "?",
    "!",
    "&",
    ",",
    " ",
    "u@",
    ":22",
    "[::1]",
    "fd00::",
    "=",
    "ansible_host=",
    ":children]",
    ":vars]",
    "all:",
    "  hosts:",
    "~",
    "\n",
];

/// Most names that are folded back; larger lists take the fuzzer's time and show nothing new.
const MAX_FOLDED: usize = 2_000;

fuzz_target!(|bytes: &[u8]| {
    let mut text = Vec::new();
    for &byte in bytes {
        match byte {
            0..128 => text.push(byte),
            word => text.extend(WORDS[usize::from(word) % WORDS.len()].bytes()),
        }
    }
    read_files(&text);
    // The first line is the list, the others are groups that it may name.
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines();
    let Ok(list) = HostList::parse(lines.next().unwrap_or_default()) else {
        return;
    };
    assert_eq!(
        HostList::parse(&list.to_string()).as_ref(),
        Ok(&list),
        "{list}"
    );
    let mut table = GroupTable::default();
    for name in ["g", "h", "all"] {
        table.insert_list(name, lines.next().unwrap_or_default());
    }
    let mut sources = Sources::default();
    sources.add_table("s", table);
    if let Some(names) = names(&mut sources, &list).filter(|names| names.len() <= MAX_FOLDED) {
        let folded = fold(&names);
        let read = HostList::parse(&folded).expect("folded names are a list");
        let again = self::names(&mut Sources::default(), &read).expect("folded names are hosts");
        assert_eq!(again.len(), names.len(), "{folded}");
        assert_eq!(
            again.into_iter().collect::<BTreeSet<_>>(),
            names,
            "{folded}"
        );
    }
});

/// The names of a list in lower case, each once; files are empty.
fn names(sources: &mut Sources, list: &HostList) -> Option<BTreeSet<String>> {
    for _ in 0..4 {
        match sources.expand(list).ok()? {
            Expansion::Targets(targets) => {
                return Some(
                    targets
                        .into_iter()
                        .map(|target| target.name.to_ascii_lowercase())
                        .collect(),
                );
            }
            Expansion::Needs(needs) => {
                for need in needs {
                    sources.handle_supply(need, Supply::Content(Vec::new()));
                }
            }
        }
    }
    panic!("{list} never has enough");
}

fn read_files(text: &[u8]) {
    let _ = parse_file("f", text);
    let _ = parse_csv("f", text);
    let _ = parse_json("f", text);
    known_hosts_names(text);
    ssh_config_names(text);
    if let Ok(genders) = Genders::parse("f", text) {
        let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let _ = genders.query(&String::from_utf8_lossy(first), NodeName::Alternate);
        let _ = genders.table(NodeName::Canonical);
    }
    for inventory in [
        Inventory::parse_ini("f", text),
        Inventory::parse_yaml("f", text),
        Inventory::parse_list("f", text),
    ]
    .into_iter()
    .flatten()
    {
        let _ = inventory.table();
    }
}

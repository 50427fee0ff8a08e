#![allow(clippy::unwrap_used)]

use clap::Parser;

use super::*;

/// Command lines, whether the quick parser takes them, and what there is to see.
const LINES: [(&str, bool); 19] = [
    (
        "sshoal run -w web[1-3] -p 5 -p 6 -o Port=22 -l me -- ls -l",
        true,
    ),
    ("sshoal run -w web1 uptime --all -v", true),
    ("sshoal run -vv -u -1 -f hosts true", false),
    ("sshoal run --script s -i a -i b x y", true),
    ("sshoal each -w a,b -d 3 ping -c1 %h", true),
    ("sshoal put -w a -r -p --exclude *.o -x b tree /srv/", true),
    (
        "sshoal get -f hosts --parallel 3 --limit 1M /etc/motd dir",
        true,
    ),
    ("sshoal put -w a -p 5 -y", false),
    ("sshoal hosts expand a[1-3]", true),
    ("sshoal hosts fold -f hosts --json", true),
    ("sshoal explain --json web1", true),
    (
        "sshoal known-hosts lookup -f a -f b --no-index-cache -- [h]:22 -x",
        true,
    ),
    ("sshoal known-hosts lookup --ssh-config", true),
    ("sshoal known-hosts lookup", false),
    ("sshoal known-hosts check -f a", false),
    ("sshoal run -h", false),
    ("sshoal lookup", false),
    ("sshoal man run", false),
    ("sshoal", false),
];

#[test]
fn what_is_parsed_quickly_is_what_the_whole_parser_makes_of_it() {
    for (line, quickly) in LINES {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let quick = parse(&arguments);
        assert_eq!(quick.is_some(), quickly, "{line}");
        if let Some(quick) = quick {
            let whole = Cli::try_parse_from(&arguments).unwrap();
            assert_eq!(format!("{quick:?}"), format!("{whole:?}"), "{line}");
        }
    }
}

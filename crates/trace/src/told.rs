//! What a tracer tells that has no tracefs: a line for each birth, program and end of a process, and for the ports of the
//! connection (the tracer's `told.rs` says how they look).

use crate::record::{MAX_ARGUMENTS, Peer, Record, Waking, What};

/// Characters of a name, a path or an argument that are kept.
const MAX_TEXT: usize = 512;

/// The records that a line stands for; none if it is of no use.
pub(crate) fn records(line: &str) -> Vec<Record> {
    read(line).unwrap_or_default()
}

fn read(line: &str) -> Option<Vec<Record>> {
    let mut parts = line.split('\t');
    let mut words = parts.next()?.splitn(5, ' ');
    let kind = words.next()?;
    let at = words.next()?.parse().ok()?;
    let thread = words.next()?.parse().ok()?;
    let record = |what| Record {
        at,
        thread,
        by: Waking::Thread,
        what,
    };
    Some(match kind {
        "fork" => {
            let child = words.next()?.parse().ok()?;
            let born = What::Task {
                thread: child,
                is_thread: false,
                name: short(words.next().unwrap_or_default()),
            };
            let parent = thread;
            vec![record(born), record(What::Fork { parent, child })]
        }
        "exec" => {
            let file = short(parts.next()?);
            let words = parts.take(MAX_ARGUMENTS).map(short).collect();
            let before = thread;
            vec![
                record(What::Arguments { words }),
                record(What::Exec { file, before }),
            ]
        }
        "ports" => {
            let local_port = words.next()?.parse().ok()?;
            let (port, address) = words.next()?.split_once(' ')?;
            vec![record(What::Socket(Peer {
                is_connecting: false,
                local_port,
                port: port.parse().ok()?,
                address: address.parse().ok()?,
            }))]
        }
        "exit" => vec![record(What::Exit)],
        _ => return None,
    })
}

fn short(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_what_happened_and_to_whom() {
        let [task, fork] = &records("fork 5 10 20 my name")[..] else {
            panic!("two");
        };
        assert_eq!((fork.at, fork.thread), (5, 10));
        let (parent, child) = (10, 20);
        assert_eq!(fork.what, What::Fork { parent, child });
        assert!(matches!(&task.what, What::Task { name, .. } if name == "my name"));
        let [arguments, exec] = &records("exec 6 20\t/a b/c\tc\t\tx")[..] else {
            panic!("two");
        };
        let words = ["c", "", "x"].map(str::to_owned).to_vec();
        assert_eq!(arguments.what, What::Arguments { words });
        let file = "/a b/c".to_owned();
        assert_eq!(exec.what, What::Exec { file, before: 20 });
        assert_eq!(records("exit 7 20")[0].what, What::Exit);
        let What::Socket(peer) = records("ports 8 20 22 40000 2001:db8::1")[0].what else {
            panic!("a connection");
        };
        assert_eq!((peer.local_port, peer.port), (22, 40000));
        assert_eq!(peer.address.to_string(), "2001:db8::1");
        for bad in [
            "",
            "fork 5 10",
            "exec 6 20",
            "exit x 20",
            "born 1 2",
            "ports 1 2 3 70000 192.0.2.1",
            "ports 1 2 22 40000",
            "ports 1 2 22 40000 here",
        ] {
            assert_eq!(records(bad), [], "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_line_is_too_much(line: String, kind in "fork|exec|ports|exit", rest in "[0-9 \t]{0,40}") {
            let _ = records(&line);
            let _ = records(&format!("{kind} {rest}{line}"));
        }
    }
}

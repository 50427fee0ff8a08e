//! What is told by name: files that are opened, programs' arguments, hosts that are asked for, connections.

use std::net::TcpListener;

use serde_json::Value;
use sshoal_testbed::slow::Injection;
use sshoal_trace::Tree;

use crate::logins::{Host, check_sum, processes};
use crate::may_trace;
use crate::tracer::{Shell, Tracer};

#[test]
fn files_and_arguments_have_their_names() {
    if !may_trace() {
        return;
    }
    let mut shell =
        Shell::new("/bin/cat /etc/hostname /etc/sshoal-nowhere 2>/dev/null; env true a '' 'b c'");
    let mut tracer = Tracer::start(shell.pid()).arm();
    assert_eq!(tracer.means().lacks, [""; 0]);
    shell.go();
    tracer.end();
    let (followed, records) = tracer.recording.records().unwrap();
    let tree = Tree::of(followed, &records);
    let of = |title: &str| {
        let mut all = tree.processes().map(|(_, process)| process);
        all.find(|process| process.title() == title).unwrap()
    };
    let cat = of("cat");
    let words = ["/bin/cat", "/etc/hostname", "/etc/sshoal-nowhere"];
    assert_eq!(cat.programs[0].arguments, words);
    let opened = |path: &str| cat.files.iter().find(|file| file.path == path).unwrap();
    assert!(!opened("/etc/hostname").failed);
    assert!(opened("/etc/sshoal-nowhere").failed);
    let file = opened("/etc/hostname");
    assert!(file.to.is_some_and(|to| to > file.from));
    // The dynamic linker's are counted only.
    assert!(cat.opened > cat.files.len() as u64);
    // One process, two programs; env finds the second one in a search.
    let last = of("true").programs.last().unwrap();
    assert_eq!(last.arguments, ["true", "a", "", "b c"]);
}

#[test]
fn a_login_s_files_lookups_and_connections_are_told() {
    if !may_trace() {
        return;
    }
    let Some(host) = Host::start(&Injection::several("motd:20").unwrap()) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    host.replace(
        "/etc/update-motd.d/50-status",
        &format!(
            "#!/bin/bash\ncat /etc/hostname >/dev/null\nexec 3<>/dev/tcp/127.0.0.1/{port}\ngetent ahosts localhost >/dev/null\n"
        ),
    );
    let found = host.traced();
    check_sum(&found);
    let trace = &found["trace"];
    let files = trace["files"].as_array().unwrap();
    let file = |path: &str| files.iter().find(|file| file["path"] == path);
    assert!(
        file("/etc/hostname").is_some_and(|it| it["times"] == 1),
        "{files:#?}"
    );
    let all = processes(&found);
    let connects = |process: &&Value| {
        let peer = format!("127.0.0.1 port {port}");
        process["connections"]
            .as_array()
            .unwrap()
            .contains(&peer.into())
    };
    assert!(all.iter().any(|process| connects(&process)), "{all:#?}");
    let calls = trace["calls"].as_array().unwrap();
    let asks = |call: &&Value| call["function"] == "getaddrinfo" && call["about"] == "localhost";
    assert!(calls.iter().any(|call| asks(&call)), "{calls:#?}");
    let facts = &found["facts"];
    for name in ["trace.opened.longest", "trace.opened.most"] {
        assert!(facts[name].is_string(), "{name}");
    }
    assert!(
        facts["trace.lookups"].as_u64() >= Some(1) || facts["trace.lookups"].as_f64() >= Some(1.0)
    );
    assert!(
        facts["trace.lookups.of"]
            .as_str()
            .unwrap()
            .contains("localhost")
    );
}

//! ProxyCommand: a process's standard input and output are the connection.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use sshoal_testbed::sshd::{Layout, RealSshd, SshdSpec};
use support::program::Running;
use support::{Shoal, processes_of, wait_until};

/// Carries octets between its standard input and output and a TCP port, as nc(1) does.
const RELAY: &str = "exec 3<>/dev/tcp/$1/$2 || exit 1\ncat <&3 &\nexec cat >&3\n";

/// The same, noting its beginning, how many of those that are noted run then, and, when it gets SIGHUP, its end.
const NOTED: &str = "echo \"+ $$\" >>\"$3\"\ntrap 'echo \"- $$\" >>\"$3\"; exit' HUP\n\
                     running=0\nwhile read -r what pid; do\n\
                     [ $what = + ] && kill -0 $pid 2>&- && running=$((running + 1))\n\
                     done <\"$3\"\necho \"= $running\" >>\"$3\"\n\
                     exec 3<>/dev/tcp/$1/$2\ncat <&3 &\ncat <&0 >&3 &\nwait\n";

fn shoal(spec: &SshdSpec) -> Shoal<RealSshd> {
    let shoal = Shoal::real(spec);
    fs::write(shoal.file("relay"), RELAY).unwrap();
    fs::write(shoal.file("noted"), NOTED).unwrap();
    shoal
}

/// By the relay to the host itself.
fn relay(shoal: &Shoal<RealSshd>) -> String {
    format!("ProxyCommand=bash {} %h %p", shoal.file("relay"))
}

/// The processes that `NOTED` has noted, and how many of them ran at a time.
fn noted(log: &str) -> (Vec<String>, usize) {
    let lines = fs::read_to_string(log).unwrap();
    let (mut begun, mut most, mut ended) = (Vec::new(), 0, 0);
    for line in lines.lines() {
        match line.split_once(' ').unwrap() {
            ("+", pid) => begun.push(pid.to_owned()),
            ("=", running) => most = most.max(running.parse::<usize>().unwrap()),
            _ => ended += 1,
        }
    }
    // On a busy machine SIGKILL, a second later, may come before a shell has noted its SIGHUP.
    assert!(ended > 0, "they get SIGHUP:\n{lines}");
    (begun, most)
}

#[test]
fn two_hundred_hosts_are_reached_by_processes_of_their_own() {
    let shoal = shoal(&SshdSpec {
        layout: Layout::Shared,
        ..SshdSpec::new(200)
    });
    // As many shells want the processors at once.
    let patience = ["--connect-timeout", "120", "--login-timeout", "120"];
    let arguments = ["-o", &relay(&shoal), "--json", "echo $SSH_CONNECTION; cat"];
    let run = shoal.run(&[&patience[..], &arguments].concat());
    let records = run.expect(0).records();
    assert_eq!(records.hosts.len(), 200);
    for record in &records.hosts {
        let stdout = record.stdout.as_deref().unwrap();
        assert!(stdout.contains(&record.host), "{stdout}");
    }
}

#[test]
fn ssh_itself_may_be_the_proxy() {
    let shoal = shoal(&SshdSpec::new(3));
    let (config, gate) = (shoal.file("ssh_config"), shoal.name(0));
    let proxy = format!("ProxyCommand=ssh -F {config} -W [%h]:%p {gate}");
    let hosts = format!("{},{}", shoal.name(1), shoal.name(2));
    let run = shoal.run_on(&hosts, &["-o", &proxy, "--json", "echo ${SSH_CLIENT%% *}"]);
    for record in &run.expect(0).records().hosts {
        let from = record.stdout.as_deref().unwrap().trim();
        assert!(!from.is_empty() && from != record.host, "{record:?}");
    }
}

/// Both ways to a bastion that are written in inventories.
#[test]
fn an_inventory_tells_the_way_through_a_bastion() {
    let shoal = shoal(&SshdSpec::new(3));
    let (config, gate) = (shoal.file("ssh_config"), shoal.name(0));
    let inventory = shoal.file("inventory.ini");
    for way in [
        format!("-J {gate}"),
        format!("-o ProxyCommand=\"ssh -F {config} -W [%h]:%p {gate}\""),
    ] {
        let text = format!(
            "[web]\n{}\n{}\n[web:vars]\nansible_ssh_common_args='{way} -o SetEnv=A=1'\n",
            shoal.name(1),
            shoal.name(2)
        );
        fs::write(&inventory, text).unwrap();
        let line = ["--json", "echo ${SSH_CLIENT%% *}"];
        let mut command = shoal.configured(&["--inventory", &inventory, "-g", "web"]);
        let ended = Running::start(command.args(line)).wait().expect(0);
        for record in &ended.records().hosts {
            let from = record.stdout.as_deref().unwrap().trim();
            assert!(!from.is_empty() && from != record.host, "{way}: {record:?}");
        }
        assert_eq!(ended.records().hosts.len(), 2);
    }
}

#[test]
fn no_more_processes_run_than_hosts_at_a_time_and_all_are_ended_and_reaped() {
    let shoal = shoal(&SshdSpec::new(12));
    let log = shoal.file("log");
    let proxy = format!("ProxyCommand=bash {} %h %p {log}", shoal.file("noted"));
    shoal.run(&["-p", "3", "-o", &proxy, "true"]).expect(0);
    let (begun, most) = noted(&log);
    assert_eq!(begun.len(), 12);
    assert!(most <= 3, "{most}");
    for pid in begun {
        assert!(!Path::new("/proc").join(&pid).exists(), "{pid} is left");
    }
}

#[test]
fn an_interrupted_run_leaves_no_process() {
    let shoal = shoal(&SshdSpec::new(2));
    let log = shoal.file("log");
    let proxy = format!("ProxyCommand=bash {} %h %p {log}", shoal.file("noted"));
    let run = Running::start(&mut shoal.command(&["-o", &proxy, "echo here; sleep 300"]));
    wait_until("both processes run", || {
        let noted = fs::read_to_string(&log).unwrap_or_default();
        noted.matches('+').count() == 2
    });
    run.interrupt();
    run.interrupt();
    run.wait().expect(130);
    let begun = fs::read_to_string(&log).unwrap();
    for pid in begun.lines().filter_map(|line| line.strip_prefix("+ ")) {
        wait_until("it is gone", || !Path::new("/proc").join(pid).exists());
    }
}

#[test]
fn what_the_process_says_is_told_with_the_hosts_name_and_makes_the_failure() {
    let shoal = shoal(&SshdSpec::new(1));
    let name = shoal.name(0);
    for (script, kind, words) in [
        (
            "echo nc: Connection refused >&2; exit 3",
            "refused",
            "Connection refused",
        ),
        (
            "echo Name or service not known >&2; exit 1",
            "resolve",
            "not known",
        ),
        ("exit 9", "unreachable", "exit status: 9"),
        ("kill -TERM $$", "unreachable", "signal: 15"),
        ("exec /nonexistent/relay", "unreachable", "exit status: 127"),
    ] {
        let proxy = format!("ProxyCommand=sh -c '{script}'");
        let run = shoal.run(&["-o", &proxy, "--json", "true"]).expect(3);
        let record = &run.records().hosts[0];
        assert_eq!(record.failure(), kind, "{record:?}");
        let detail = record.detail.as_deref().unwrap();
        assert!(
            detail.contains("ProxyCommand") && detail.contains(words),
            "{detail}"
        );
    }
    let proxy = format!(
        "ProxyCommand=echo on my way >&2; exec bash {} %h %p",
        shoal.file("relay")
    );
    // ssh puts "exec" before it, so that only the first command would run: a shell has to be asked for.
    let proxy = format!("{}'", proxy.replacen('=', "=sh -c '", 1));
    let told = format!("{name}: ProxyCommand: on my way");
    shoal.run(&["-o", &proxy, "true"]).expect(0).says(&[&told]);
}

#[test]
fn a_process_that_reaches_nobody_meets_the_deadline_and_is_ended() {
    let shoal = shoal(&SshdSpec::new(1));
    // Into which nobody writes.
    let pipe = shoal.file("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let proxy = format!("ProxyCommand=cat {pipe}");
    for limit in [["--connect-timeout", "1"], ["-o", "ConnectTimeout=1"]] {
        let run = shoal.run(&[&["-o", &proxy, "--json"][..], &limit, &["true"]].concat());
        let records = run.expect(3).records();
        assert_eq!(records.hosts[0].failure(), "connect-timeout");
        wait_until("it is gone", || processes_of(Path::new(&pipe)).is_empty());
    }
}

#[test]
fn the_first_jump_host_may_be_behind_a_proxy() {
    let shoal = shoal(&SshdSpec::new(3));
    let config = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    let (gate, log) = (shoal.name(0), shoal.file("log"));
    let noted = shoal.file("noted");
    fs::write(
        shoal.file("ssh_config"),
        format!("Host {gate}\n  ProxyCommand bash {noted} %h %p {log}\n{config}"),
    )
    .unwrap();
    let hosts = format!("{},{}", shoal.name(1), shoal.name(2));
    shoal.run_on(&hosts, &["-J", &gate, "true"]).expect(0);
    assert_eq!(begun(&log), 1, "one connection for both");
    let broken = format!("Host {gate}\n  ProxyCommand sh -c 'echo no way >&2; exit 4'\n{config}");
    fs::write(shoal.file("ssh_config"), broken).unwrap();
    let run = shoal.run_on(&hosts, &["-J", &gate, "--json", "true"]);
    for record in &run.expect(3).records().hosts {
        let detail = record.detail.as_deref().unwrap();
        let expected = [
            format!("jump host {gate}: ProxyCommand"),
            "no way".to_owned(),
        ];
        assert!(
            expected.iter().all(|words| detail.contains(words)),
            "{detail}"
        );
    }
}

fn begun(log: &str) -> usize {
    let noted = fs::read_to_string(log).unwrap();
    noted.lines().filter(|line| line.starts_with('+')).count()
}

#[test]
fn what_cannot_be_a_connection_is_refused_before_anything_begins() {
    let shoal = shoal(&SshdSpec::new(1));
    let refused = |options: &[&str], words: &[&str]| {
        let said = shoal.run(&[options, &["true"]].concat()).expect(2);
        said.says(words);
    };
    refused(
        &["-o", "ProxyCommand=-"],
        &["ProxyCommand \"-\"", "command line"],
    );
    let proxy = relay(&shoal);
    let fdpass = [
        "-o",
        &proxy,
        "-o",
        "ProxyUseFdpass=yes",
        "--transport=native",
    ];
    refused(&fdpass, &["ProxyUseFdpass", "command line"]);
    refused(&["-o", "ProxyCommand=nc %d"], &["\"%d\"", "command line"]);
    shoal.run(&["-o", "ProxyCommand=none", "true"]).expect(0);
}

//! Slow hosts, as the installed ssh sees them: slow by what was injected, well after their fix, and gone without a trace.
//!
//! They need root; without it each test holds that this is said. Times are lower bounds: a program that waits cannot
//! wait for less.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, File, FileTimes};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use sshoal_testbed::slow::{Injection, Kind, SlowError, SlowHost, SlowSpec, TABLE};
use support::{DEADLINE, text};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A host, or nothing where nobody is root.
fn start(injections: &str) -> Option<SlowHost> {
    start_spec(&SlowSpec::new(&Injection::several(injections).unwrap()))
}

fn start_spec(spec: &SlowSpec) -> Option<SlowHost> {
    let host = SlowHost::start_spec(spec);
    if !is_root() {
        assert!(matches!(host, Err(SlowError::NotRoot)));
        return None;
    }
    match host {
        // As in most containers.
        Err(SlowError::NoView { log }) if !may_unshare() => eprintln!("not tested: {log}"),
        Err(error @ SlowError::Impossible { .. }) => eprintln!("not tested: {error}"),
        host => return Some(host.unwrap()),
    }
    None
}

/// Whether this process can make hosts at all.
fn may_unshare() -> bool {
    let line = "mount -t tmpfs none /mnt";
    let unshare = Command::new("unshare")
        .args(["--mount", "sh", "-c", line])
        .status();
    is_root() && unshare.is_ok_and(|status| status.success())
}

/// `ssh`, stopped by timeout(1) should it hang.
fn ssh(host: &SlowHost, options: &[&str], command: &str) -> Output {
    let mut ssh = Command::new("timeout");
    ssh.arg(DEADLINE.as_secs().to_string())
        .args(["ssh", "-F"])
        .arg(host.ssh_config())
        .args(options)
        .args([host.name(), command])
        .stdin(Stdio::null());
    ssh.output().unwrap()
}

fn log_in(host: &SlowHost) {
    let output = ssh(host, &[], "echo hello");
    assert_eq!(text(&output.stdout), "hello\n", "{output:?} {}", host.log());
}

/// What `ssh -v` says of the key exchange and the host key.
fn algorithms(host: &SlowHost) -> String {
    let output = ssh(host, &["-v"], "true");
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stderr);
    let lines = said
        .lines()
        .filter(|line| line.contains("kex: algorithm: ") || line.contains("Server host key: "));
    lines.collect::<Vec<_>>().join("\n")
}

fn runs(host: &SlowHost) -> Vec<u64> {
    let injections = host.injections().iter();
    injections
        .map(|injection| host.runs_of(injection.kind))
        .collect()
}

/// A login takes at least what was injected, and after the fix nothing of it runs any more.
fn is_slow_until_it_is_fixed(injections: &str) {
    let Some(host) = start(injections) else {
        return;
    };
    let begun = Instant::now();
    log_in(&host);
    let took = begun.elapsed();

    let before = runs(&host);
    assert!(before.iter().all(|&runs| runs > 0), "{before:?}");
    let times = host.injections().iter().zip(&before);
    let injected: Duration = times
        .map(|(injection, &runs)| injection.time().unwrap() * u32::try_from(runs).unwrap())
        .sum();
    assert!(
        took >= injected,
        "{took:?} with {injected:?} of {before:?} runs"
    );

    host.apply_fix().unwrap();
    log_in(&host);
    assert_eq!(runs(&host), before, "what was mended has run again");
}

macro_rules! slow_until_fixed {
    ($($test:ident: $injections:literal,)*) => {
        $(#[test]
        fn $test() {
            is_slow_until_it_is_fixed($injections);
        })*
    };
}

slow_until_fixed! {
    a_program_in_pams_account_stack: "pam-account:200",
    a_program_in_pams_session_stack: "pam-session:200",
    a_script_of_the_message_of_the_day: "motd:200",
    a_lookup_of_the_clients_name: "use-dns:200",
    a_lookup_that_nobody_answers: "use-dns-dead:1",
    a_lookup_for_libwrap: "libwrap:200",
    a_lookup_for_libwrap_that_nobody_answers: "libwrap-dead:1",
    a_command_that_prints_keys: "keys-command:200",
    a_bashrc: "bashrc:200",
    a_zshenv: "zshenv:200",
    a_login_shell: "login-shell:200",
    a_forced_command: "forced-command:200",
    an_sshrc: "sshrc:200",
    a_users_rc: "user-rc:200",
    two_causes_at_once: "pam-account:100+bashrc:50",
    causes_that_change_one_file: "pam-account:20+pam-session:20+motd:20",
    causes_in_sshds_configuration: "use-dns:20+keys-command:20+forced-command:20",
}

/// Its lookups are made by several processes, some perhaps after the client has gone: only one is sure to be waited for.
#[test]
fn a_slow_name_service_is_asked_until_the_files_come_first() {
    let Some(host) = start("name-service:50") else {
        return;
    };
    let begun = Instant::now();
    log_in(&host);
    assert!(begun.elapsed() >= Duration::from_millis(50));
    assert!(host.runs_of(Kind::NameService) > 1);
    // The host's programs ask it, too, as `id` does on such a host.
    let before = host.runs_of(Kind::NameService);
    assert!(ssh(&host, &[], "id sshoal-slow").status.success());
    assert!(host.runs_of(Kind::NameService) > before);

    drop(host);
    let Some(host) = start("name-service:50") else {
        return;
    };
    host.apply_fix().unwrap();
    let before = host.runs_of(Kind::NameService);
    log_in(&host);
    assert_eq!(host.runs_of(Kind::NameService), before);
}

#[test]
fn many_processes_of_the_message_of_the_day_run_until_the_fix() {
    let Some(host) = start("motd-processes:60") else {
        return;
    };
    log_in(&host);
    host.apply_fix().unwrap();
    log_in(&host);
    assert_eq!(host.runs_of(Kind::MotdProcesses), 1);
}

#[test]
fn the_right_key_is_behind_all_others_until_the_fix() {
    let Some(host) = start("many-keys:20000") else {
        return;
    };
    log_in(&host);
    assert!(
        host.log().contains("authorized_keys:20001"),
        "{}",
        host.log()
    );
    host.apply_fix().unwrap();
    log_in(&host);
    let log = host.log();
    let (_, last) = log.rsplit_once("authorized_keys:").unwrap();
    assert!(
        last.starts_with('1') && !last.starts_with("20001"),
        "{last}"
    );
}

#[test]
fn failed_logins_are_read_until_the_fix() {
    let Some(host) = start("lastlog:1000") else {
        return;
    };
    let path = host.root().join("var/log/btmp");
    let is_read_by_a_login = || {
        let long_ago = FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH);
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_times(long_ago)
            .unwrap();
        log_in(&host);
        let accessed = fs::metadata(&path).unwrap().accessed().unwrap();
        accessed != SystemTime::UNIX_EPOCH
    };
    assert!(is_read_by_a_login());
    host.apply_fix().unwrap();
    assert!(!is_read_by_a_login());
}

#[test]
fn keys_and_key_exchanges_are_those_that_were_asked_for() {
    let Some(host) = start("rsa-host-key+kex-group18") else {
        return;
    };
    let slow = algorithms(&host);
    assert!(
        slow.contains("group18-sha512") && slow.contains("key: ssh-rsa "),
        "{slow}"
    );
    host.apply_fix().unwrap();
    let well = algorithms(&host);
    assert!(
        !well.contains("group18-sha512") && well.contains("key: ssh-ed25519 "),
        "{well}"
    );
    drop(host);

    let Some(host) = start("kex-sntrup761") else {
        return;
    };
    assert!(algorithms(&host).contains("kex: algorithm: sntrup761x25519"));
    assert!(host.fix().is_empty(), "nothing weaker is advised");
}

#[test]
fn nobody_gets_in_while_others_hold_all_places_until_the_fix() {
    let Some(host) = start("max-startups:3") else {
        return;
    };
    let refused = ssh(&host, &[], "true");
    assert_eq!(refused.status.code(), Some(255), "{refused:?}");
    host.apply_fix().unwrap();
    log_in(&host);
}

#[test]
fn a_quota_is_used_up_until_it_is_lifted() {
    let Some(host) = start("cpu-quota:5") else {
        return;
    };
    log_in(&host);
    assert!(host.throttled() > 0);
    host.apply_fix().unwrap();
    let before = host.throttled();
    log_in(&host);
    assert_eq!(host.throttled(), before);
}

#[test]
fn a_clean_host_is_an_ordinary_one_and_its_account_is_nowhere_else() {
    let Some(host) = start("clean") else { return };
    let output = ssh(&host, &[], "id -un; pwd; echo $0; ls -A");
    let expected = "sshoal-slow\n/home/sshoal-slow\nsh\n.ssh\n";
    assert_eq!(text(&output.stdout), expected, "{output:?}");
    assert!(host.fix().is_empty());
    host.apply_fix().unwrap();
    let outside = Command::new("id").arg("sshoal-slow").output().unwrap();
    assert!(!outside.status.success());
}

/// Ten minutes of what no login waits for.
#[test]
fn decoys_do_not_keep_a_login() {
    let Some(host) = start("close-session:600000+interactive-profile:600000+known-hosts+fast-dns")
    else {
        return;
    };
    log_in(&host);
    assert_eq!(host.runs_of(Kind::InteractiveProfile), 0);
    assert!(host.runs_of(Kind::FastDns) > 0);
    let known_hosts = fs::read_to_string(host.dir().join("known_hosts")).unwrap();
    assert_eq!(known_hosts.lines().count(), 1001);
    // When the client has gone the session is closed.
    wait_until(|| host.runs_of(Kind::CloseSession) == 1);
    log_in(&host);
}

#[test]
fn the_account_is_root_by_sudo_only_if_that_was_asked_for() {
    for sudo in [false, true] {
        let spec = SlowSpec {
            sudo,
            ..SlowSpec::new(&[])
        };
        let Some(host) = start_spec(&spec) else {
            return;
        };
        let output = ssh(&host, &[], "sudo -n id -u");
        assert_eq!(output.status.success(), sudo, "{output:?}");
    }
}

/// A host's mount namespace, kept open: the kernel would give its number to the next one at once.
struct Namespace(File);

impl Namespace {
    fn of(pid: impl std::fmt::Display) -> Namespace {
        Namespace(File::open(format!("/proc/{pid}/ns/mnt")).unwrap())
    }

    /// The processes in it.
    fn processes(&self) -> Vec<PathBuf> {
        let number = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let ours = number(self.0.metadata().unwrap());
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let links = entries.map(|entry| entry.path().join("ns/mnt"));
        let is_in = |link: &PathBuf| fs::metadata(link).is_ok_and(|there| number(there) == ours);
        links.filter(is_in).collect()
    }
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to that");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn nothing_is_left_of_a_host_whatever_runs_on_it() {
    let quota = match is_root() && Kind::CpuQuota.is_possible().is_ok() {
        true => "+cpu-quota:50",
        false => "",
    };
    let Some(host) = start(&format!("motd:20+use-dns:20+name-service:1{quota}")) else {
        return;
    };
    let group = host.control_group().map(Path::to_owned);
    let (dir, address) = (host.dir().to_owned(), host.address());
    let namespace = Namespace::of(host.pid().as_raw_nonzero());
    assert_eq!(group.is_some(), !quota.is_empty());
    assert!(group.iter().all(|group| group.exists()));
    // Out of its session, and out of its process group.
    let started = ssh(&host, &[], "setsid sleep 1000 >/dev/null 2>&1 </dev/null &");
    assert!(started.status.success(), "{started:?}");
    assert!(namespace.processes().len() > 1);

    drop(host);
    assert_eq!(namespace.processes(), Vec::<PathBuf>::new());
    assert!(!dir.exists());
    assert!(group.iter().all(|group| !group.exists()));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains("sshoal-slow"), "{mounts}");
    TcpListener::bind(address).unwrap();
}

#[test]
fn hosts_that_cannot_start_leave_nothing_and_say_why() {
    if !is_root() {
        return;
    }
    let pair = Injection::several("sshrc+user-rc").unwrap();
    let error = SlowHost::start(&pair).unwrap_err();
    assert!(error.to_string().contains("do not go together"), "{error}");
}

/// The program with these hosts, once they are there, and what it says of each of them.
fn program(hosts: &[&str], dir: &Path) -> (Child, Vec<serde_json::Value>) {
    let child = Command::new(env!("CARGO_BIN_EXE_sshoal-testbed"))
        .arg("slow-hosts")
        .args(hosts)
        .arg("--dir")
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(|| dir.join("ready").exists());
    let lines = fs::read_to_string(dir.join("hosts.jsonl")).unwrap();
    let about = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    (child, about.collect())
}

/// Whether nothing of a host is left, to be asked again when it has ended.
fn watch(about: &serde_json::Value) -> impl Fn() -> bool + use<> {
    let namespace = Namespace::of(&about["pid"]);
    let folder = PathBuf::from(about["folder"].as_str().unwrap());
    move || namespace.processes().is_empty() && !folder.exists()
}

#[test]
fn the_program_prints_its_hosts_and_removes_them_on_sigint() {
    if !may_unshare() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut child, about) = program(&["clean", "pam-account:20+motd:20"], dir.path());
    assert_eq!(about[0]["name"], "clean");
    assert_eq!(about[1]["injections"][0]["phases"][0], "P8");
    assert_eq!(about[1]["injections"][1]["milliseconds"], 20);
    let output = Command::new("ssh")
        .arg("-F")
        .arg(dir.path().join("ssh_config"))
        .args(["pam-account-20-and-motd-20", "echo hello"])
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), "hello\n", "{output:?}");
    let gone: Vec<_> = about.iter().map(watch).collect();
    assert!(!gone.iter().any(|gone| gone()));

    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(gone.iter().all(|gone| gone()));
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let lines: Vec<String> = lines.map(Result::unwrap).collect();
    let table = lines.join("\n");
    assert!(
        table.contains("20 ms") && table.contains("ssh -F"),
        "{table}"
    );
    let report: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(report["pam-account-20-and-motd-20"]["motd"], 1);
}

/// What the program prints when it gets a signal.
fn asked(
    child: &Child,
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
    signal: Signal,
) -> serde_json::Value {
    kill_process(Pid::from_child(child), signal).unwrap();
    let line = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with('{')));
    serde_json::from_str(&line.unwrap().unwrap()).unwrap()
}

#[test]
fn the_program_makes_its_hosts_well_on_sigusr2() {
    if !may_unshare() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut child, _) = program(&["motd:20", "keys-command:20"], dir.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let log_in = || {
        for host in ["motd-20", "keys-command-20"] {
            let mut ssh = Command::new("ssh");
            ssh.arg("-F").arg(dir.path().join("ssh_config"));
            assert!(ssh.args([host, "true"]).status().unwrap().success());
        }
    };
    log_in();
    let mended = asked(&child, &mut lines, Signal::USR2);
    assert_eq!(mended["motd-20"]["motd"], 1);
    assert!(mended["keys-command-20"]["keys-command"].as_u64() > Some(1));
    log_in();
    assert_eq!(asked(&child, &mut lines, Signal::USR1), mended);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
}

/// The namespaces, processes and files go even if nobody is left who could remove them.
#[test]
fn hosts_go_when_the_program_is_killed() {
    if !may_unshare() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut child, about) = program(&["motd:20", "use-dns:20"], dir.path());
    let gone: Vec<_> = about.iter().map(watch).collect();
    assert!(!gone.iter().any(|gone| gone()));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(|| gone.iter().all(|gone| gone()));
}

#[test]
fn the_program_lists_all_there_is_and_refuses_what_there_is_not() {
    let testbed = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_sshoal-testbed"))
            .arg("slow-hosts")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let list = text(&testbed(&["--list"]).stdout);
    for row in TABLE {
        assert!(list.contains(row.name), "{}", row.name);
    }
    let refused = testbed(&["pam-acount"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("--list"), "{refused:?}");
}

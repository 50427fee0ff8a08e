//! `sshoal known-hosts` beside ssh and ssh-keygen.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sshoal_testbed::simulated::SimulationSpec;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::{Ended, Running};
use support::{Shoal, User};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
const OTHER: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC";

/// `sshoal known-hosts` with a user's `~/.ssh/known_hosts`.
struct Desk {
    user: User,
}

impl Desk {
    fn new(known_hosts: &str) -> Desk {
        let user = User::new();
        fs::create_dir(user.home().join(".ssh")).unwrap();
        let desk = Desk { user };
        fs::write(desk.known_hosts(), known_hosts).unwrap();
        desk
    }

    fn known_hosts(&self) -> PathBuf {
        self.user.home().join(".ssh/known_hosts")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.known_hosts()).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = self.user.command(env!("CARGO_BIN_EXE_sshoal"));
        Running::start(command.arg("known-hosts").args(arguments)).wait()
    }

    fn keygen(&self, arguments: &[&str], file: &Path) -> Output {
        let mut command = Command::new("ssh-keygen");
        command
            .args(arguments)
            .arg("-f")
            .arg(file)
            .output()
            .unwrap()
    }
}

/// Lines of all kinds; the last one has no end.
fn lines_of_all_kinds() -> String {
    format!(
        "# mine\nweb1,10.0.0.1 {KEY} comment\n[git.example.com]:7999 {KEY}\n*.example.com {OTHER}\n\
         @revoked web1 {OTHER}\n\nWEB2 {KEY}\nweb3 {KEY}"
    )
}

#[test]
fn lookup_prints_the_lines_that_apply_and_a_host_that_is_not_known_is_no_error() {
    let desk = Desk::new(&lines_of_all_kinds());
    let found = desk.run(&["lookup", "web1"]).expect(0).stdout();
    assert_eq!(
        found,
        format!("web1,10.0.0.1 {KEY} comment\n@revoked web1 {OTHER}\n")
    );
    let found = desk.run(&["lookup", "--", "[git.example.com]:7999", "Web2"]);
    let expected = format!("[git.example.com]:7999 {KEY}\nWEB2 {KEY}\n");
    assert_eq!(found.expect(0).stdout(), expected);
    let found = desk.run(&["lookup", "nobody", "web"]).expect(0);
    assert_eq!(
        (found.stdout(), found.stderr()),
        (String::new(), String::new())
    );
    let found = desk
        .run(&["lookup", "-f", "/no/such/file", "web1"])
        .expect(0);
    assert_eq!(found.stdout(), "");
    // A file that might revoke a key must not be passed over.
    desk.run(&["lookup", "-f", "/etc", "web1"])
        .expect(2)
        .says(&["/etc"]);
}

/// ssh to the first host, with these lines of configuration before the hosts' own.
fn ssh(shoal: &Shoal<RealSshd>, lines: &str) -> Output {
    let config = shoal.file("own_config");
    let own = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    fs::write(&config, format!("{lines}\n{own}")).unwrap();
    let mut command = shoal.user.command("ssh");
    command
        .args(["-F", &config, &shoal.name(0), "true"])
        .output()
        .unwrap()
}

#[test]
fn ssh_asks_lookup_for_plain_and_for_hashed_hosts_and_refuses_who_is_not_known() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let desk = Desk::new(&fs::read_to_string(shoal.file("known_hosts")).unwrap());
    let file = desk.known_hosts().to_str().unwrap().to_owned();
    let lines = desk
        .run(&["lookup", "--ssh-config", "-f", &file])
        .expect(0)
        .stdout();
    assert!(lines.contains("UserKnownHostsFile none"), "{lines}");
    for hashed in [false, true] {
        if hashed {
            desk.run(&["hash"]).expect(0);
            assert!(desk.text().lines().all(|line| line.starts_with("|1|")));
        }
        let output = ssh(&shoal, &lines);
        assert!(output.status.success(), "hashed: {hashed}, {output:?}");
    }
    fs::write(&file, format!("elsewhere {KEY}\n")).unwrap();
    let output = ssh(&shoal, &lines);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("Host key verification failed"),
        "{said}"
    );
}

#[test]
fn run_and_lookup_keep_an_index_of_hashed_names_unless_they_are_told_not_to() {
    let mut spec = SimulationSpec::new(2);
    spec.base = [127, 32, 0, 0].into();
    let shoal = Shoal::simulate(&spec);
    let mut known = shoal.hosts.client_files().known_hosts.clone();
    known.extend((0..3000).map(|number| format!("host{number} {KEY}\n")));
    let desk = Desk::new(&known);
    desk.run(&["hash"]).expect(0);
    let file = desk.known_hosts().to_str().unwrap().to_owned();
    let option = format!("UserKnownHostsFile={file}");
    let indexes = |home: &Path| match fs::read_dir(home.join(".cache/sshoal")) {
        Ok(entries) => {
            let names = entries.map(|entry| entry.unwrap().file_name());
            names
                .filter(|name| name.to_string_lossy().ends_with(".index"))
                .count()
        }
        Err(_) => 0,
    };
    let run = ["-o", &option, "true"];
    shoal
        .run(&[&["--no-index-cache"][..], &run].concat())
        .expect(0);
    assert_eq!(indexes(shoal.user.home()), 0);
    // The second time the index says where the lines are.
    for _ in 0..2 {
        shoal.run(&run).expect(0);
        assert_eq!(indexes(shoal.user.home()), 1);
    }
    desk.run(&["lookup", "--no-index-cache", "host7"]).expect(0);
    assert_eq!(indexes(desk.user.home()), 0);
    for _ in 0..2 {
        let found = desk.run(&["lookup", "host7", "missing"]).expect(0).stdout();
        assert!(
            found.starts_with("|1|") && found.lines().count() == 1,
            "{found}"
        );
        assert_eq!(indexes(desk.user.home()), 1);
    }
}

#[test]
fn fetch_prints_what_ssh_keyscan_prints_and_names_who_shows_nothing() {
    let shoal = Shoal::real(&SshdSpec::new(3));
    let desk = Desk::new("");
    let address = |host: usize| shoal.hosts.addresses()[host];
    let config = shoal.file("ssh_config");
    let hosts = [shoal.name(0), shoal.name(1)].join(",");
    let fetch = ["fetch", "-F", &config, "-p", "2", &hosts];
    let fetched = desk.run(&fetch).expect(0);
    let lines = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let mut scan = Command::new("ssh-keyscan");
    scan.args([
        "-p",
        &address(0).port().to_string(),
        "-t",
        "rsa,ecdsa,ed25519",
    ]);
    let scanned = scan.args([shoal.name(0), shoal.name(1)]).output().unwrap();
    let scanned = lines(&String::from_utf8(scanned.stdout).unwrap());
    assert!(scanned.len() >= 2, "{scanned:?}");
    assert_eq!(lines(&fetched.stdout()), scanned);
    fetched.says(&["SHA256:"]);
    // Nothing was trusted by it.
    assert_eq!(desk.text(), "");
    let gone = format!("{hosts},127.250.0.1");
    let fetch = ["fetch", "-F", &config, "-o", "HashKnownHosts=yes", &gone];
    let fetched = desk.run(&fetch).expect(3).says(&["127.250.0.1: refused"]);
    assert!(fetched.stdout().lines().all(|line| line.starts_with("|1|")));
    assert_eq!(fetched.stdout().lines().count(), scanned.len());
    let fetch = ["fetch", "-F", &config, "-o", "ProxyJump=gate", &hosts];
    desk.run(&fetch).expect(2).says(&["behind a jump host"]);
}

#[test]
fn a_host_that_hangs_costs_fetch_its_own_time_alone() {
    let mut spec = SimulationSpec::new(20);
    spec.base = [127, 33, 0, 0].into();
    spec.faults = vec!["3=connect-hang".parse().unwrap()];
    let shoal = Shoal::simulate(&spec);
    let desk = Desk::new("");
    let config = shoal.file("ssh_config");
    let hosts = shoal.file("hosts");
    let fetch = ["fetch", "-F", &config, "-i", &hosts, "-u", "3"];
    let fetched = desk
        .run(&fetch)
        .expect(3)
        .says(&[&shoal.name(3), "within 3s"]);
    assert_eq!(fetched.stdout().lines().count(), 19);
    let known = shoal.hosts.client_files().known_hosts.clone();
    let known: BTreeSet<&str> = known.lines().collect();
    for line in fetched.stdout().lines() {
        assert!(known.iter().any(|known| known.starts_with(line)), "{line}");
    }
}

#[test]
fn forget_leaves_what_ssh_keygen_leaves() {
    for host in [
        "web1",
        "10.0.0.1",
        "[git.example.com]:7999",
        "a.example.com",
        "web3",
    ] {
        let desk = Desk::new(&(lines_of_all_kinds() + "\n"));
        let copy = desk.user.home().join("copy");
        fs::copy(desk.known_hosts(), &copy).unwrap();
        assert!(desk.keygen(&["-R", host], &copy).status.success());
        desk.run(&["forget", host]).expect(0);
        assert_eq!(desk.text(), fs::read_to_string(&copy).unwrap(), "{host}");
    }
}

#[test]
fn an_edited_file_stays_where_and_what_it_is_and_a_dry_run_changes_nothing() {
    let desk = Desk::new("");
    let (link, target) = (desk.known_hosts(), desk.user.home().join("target"));
    fs::remove_file(&link).unwrap();
    fs::write(&target, lines_of_all_kinds()).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&target, &link).unwrap();
    let colleague = desk.user.home().join("colleague");
    fs::write(&colleague, format!("new {KEY}\nweb3 {OTHER}\n")).unwrap();
    let import = ["import", colleague.to_str().unwrap()];
    let edits: [(&[&str], i32); 3] = [(&["forget", "web3"], 0), (&["hash"], 0), (&import, 1)];
    for (edit, status) in edits {
        let before = desk.text();
        let shown = desk.run(&[edit, &["-n"]].concat()).expect(status).stdout();
        assert!(shown.starts_with("would be "), "{shown}");
        assert_eq!(desk.text(), before, "{edit:?}");
        let done = desk.run(edit).expect(status).stdout();
        assert_eq!(shown, format!("would be {done}"));
        assert_ne!(desk.text(), before, "{edit:?}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, 0o640);
        // As ssh-keygen does, but beside the file itself.
        let old = desk.user.home().join("target.old");
        assert_eq!(old.exists(), edit != import, "{edit:?}");
        if old.exists() {
            assert_eq!(fs::read_to_string(&old).unwrap(), before);
            assert_eq!(fs::metadata(&old).unwrap().mode() & 0o7777, 0o640);
            fs::remove_file(&old).unwrap();
        }
        // What was forgotten is imported again below only if it is not there.
        fs::write(&target, lines_of_all_kinds()).unwrap();
    }
    desk.run(&["forget", "nobody"]).expect(1).says(&["nobody"]);
    assert!(!desk.user.home().join("target.old").exists());
    desk.run(&["forget", "x", "-f", "/no/such/file"])
        .expect(2)
        .says(&["/no/such/file"]);
    desk.run(&["forget", ""]).expect(2).says(&["HOST"]);
}

#[test]
fn hash_says_where_readable_names_are_left() {
    let desk = Desk::new(&lines_of_all_kinds());
    desk.run(&["hash"])
        .expect(0)
        .says(&["known_hosts.old", "readable", "delete it"]);
}

#[test]
fn files_and_names_that_were_meant_and_are_not_there_are_mistakes() {
    let desk = Desk::new(&lines_of_all_kinds());
    for command in ["split", "check"] {
        desk.run(&[command, "-f", "/no/such/file"])
            .expect(2)
            .says(&["cannot read /no/such/file"]);
    }
    desk.run(&["lookup", "web1", "-f", "/no/such/file"])
        .expect(0);
    let list = desk.user.home().join("list");
    fs::write(&list, "web1 # a comment\n\n../web2\n").unwrap();
    let list = list.to_str().unwrap();
    desk.run(&["split", "--input-file", list])
        .expect(2)
        .says(&["list:3: ", "../web2"]);
    for name in ["../single", "..", ""] {
        desk.run(&["split", "--dot-ssh-output-dir", name])
            .expect(2)
            .says(&["--dot-ssh-output-dir"]);
    }
    let ssh = desk.user.home().join(".ssh");
    assert_eq!(fs::read_dir(ssh).unwrap().count(), 1, "nothing was written");
}

/// The flags of the script that famzah's posts show.
#[test]
fn split_takes_the_flags_of_the_script_it_stands_in_for() {
    let desk = Desk::new(&lines_of_all_kinds());
    let list = desk.user.home().join("list");
    fs::write(&list, "web1\n[git.example.com]:7999\n").unwrap();
    let known_hosts = desk.known_hosts();
    let said = desk.run(&[
        "split",
        "--known-hosts-file",
        known_hosts.to_str().unwrap(),
        "--input-file",
        list.to_str().unwrap(),
        "--dot-ssh-output-dir",
        "known_hosts_single",
        "--progress",
    ]);
    said.expect(0).says(&["known_hosts_single: 2"]);
}

#[test]
fn hashed_names_are_found_by_ssh_keygen() {
    let desk = Desk::new(&lines_of_all_kinds());
    let said = desk.run(&["hash"]).expect(0).says(&["wildcards", "marker"]);
    assert!(said.stdout().ends_with(": 4\n"), "{}", said.stdout());
    for host in ["web1", "10.0.0.1", "[git.example.com]:7999", "web2", "web3"] {
        let found = desk.keygen(&["-F", host], &desk.known_hosts());
        assert!(found.status.success(), "{host}");
    }
}

#[test]
fn import_takes_what_is_new_and_nothing_that_contradicts() {
    let desk = Desk::new(&format!("web1 {KEY}\n"));
    let other = desk.user.home().join("other");
    fs::write(
        &other,
        format!("web1 {KEY}\nweb1 {OTHER}\nweb2 {KEY}\nbroken\n"),
    )
    .unwrap();
    let said = desk.run(&["import", other.to_str().unwrap()]).expect(1);
    let said = said.says(&["other:2: left out: web1", "other:4: "]);
    assert!(
        said.stdout().contains(": 1; there already: 1; left out: 2"),
        "{}",
        said.stdout()
    );
    assert_eq!(desk.text(), format!("web1 {KEY}\nweb2 {KEY}\n"));
    fs::remove_file(desk.known_hosts()).unwrap();
    desk.run(&["import", other.to_str().unwrap()]).expect(1);
    assert_eq!(
        fs::metadata(desk.known_hosts()).unwrap().mode() & 0o777,
        0o600
    );
}

#[test]
fn check_names_what_is_wrong_with_file_and_line_and_escapes_nothing_to_the_terminal() {
    let desk = Desk::new(&lines_of_all_kinds());
    assert_eq!(desk.run(&["check"]).expect(0).stdout(), "");
    let wrong =
        format!("a {KEY}\na {KEY}\na {OTHER}\nb\u{1b}[31m {KEY}\nb\u{1b}[31m {KEY}\nbroken\n");
    fs::write(desk.known_hosts(), wrong).unwrap();
    let found = desk.run(&["check"]).expect(1).stdout();
    for words in [
        "known_hosts:2: a has this key at",
        "known_hosts:3: a has another ssh-ed25519 key at",
        "known_hosts:6: ",
    ] {
        assert!(found.contains(words), "{words}: {found}");
    }
    assert!(!found.contains('\u{1b}'), "{found:?}");
}

#[test]
fn ssh_is_served_by_the_files_that_split_writes() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let known = fs::read_to_string(shoal.file("known_hosts")).unwrap();
    let desk = Desk::new(&known);
    let hosts = desk.user.home().join("hosts");
    let address = shoal.hosts.addresses()[0];
    fs::write(
        &hosts,
        format!(
            "# one\n[{}]:{}\nmissing.invalid\n",
            address.ip(),
            address.port()
        ),
    )
    .unwrap();
    let input = hosts.to_str().unwrap();
    for hashed in [false, true] {
        if hashed {
            desk.run(&["hash"]).expect(0);
        }
        let folder = if hashed { "hashed" } else { "plain" };
        let seed = [
            "split",
            "--known-hosts-file",
            desk.known_hosts().to_str().unwrap(),
        ]
        .map(str::to_owned);
        let mut arguments: Vec<&str> = seed.iter().map(String::as_str).collect();
        arguments.extend([
            "--input-file",
            input,
            "--dot-ssh-output-dir",
            folder,
            "--progress",
        ]);
        let shown = desk.run(&[&arguments[..], &["-n"]].concat()).expect(0);
        let path = desk.user.home().join(".ssh").join(folder);
        assert!(shown.stdout().contains(path.to_str().unwrap()) && !path.exists());
        let done = desk
            .run(&arguments)
            .expect(0)
            .says(&[": 1\n", "missing.invalid"]);
        let names: Vec<_> = fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, [address.ip().to_string().as_str()]);
        let file = path.join(&names[0]);
        let modes = [&file, &path].map(|path| fs::metadata(path).unwrap().mode() & 0o777);
        assert_eq!(modes, [0o600, 0o700]);
        let output = ssh(&shoal, &done.stdout());
        assert!(output.status.success(), "hashed: {hashed}, {output:?}");
        let other = fs::read_to_string(shoal.file("known_hosts")).unwrap();
        fs::write(
            &file,
            other.replace(&address.ip().to_string(), "127.99.99.99"),
        )
        .unwrap();
        assert!(
            !ssh(&shoal, &done.stdout()).status.success(),
            "nothing else is consulted"
        );
    }
}

#[test]
fn split_takes_all_names_that_can_be_read() {
    let desk = Desk::new(&lines_of_all_kinds());
    desk.run(&["split"])
        .expect(0)
        .says(&["known_hosts_single: 5"]);
    let folder = desk.user.home().join(".ssh/known_hosts_single");
    let web1 = fs::read_to_string(folder.join("web1")).unwrap();
    assert_eq!(
        web1,
        format!("web1,10.0.0.1 {KEY} comment\n@revoked web1 {OTHER}\n")
    );
    let git = fs::read_to_string(folder.join("git.example.com")).unwrap();
    assert_eq!(
        git,
        format!("[git.example.com]:7999 {KEY}\n*.example.com {OTHER}\n")
    );
    desk.run(&["hash"]).expect(0);
    fs::write(
        desk.known_hosts(),
        desk.text()
            .lines()
            .filter(|line| line.starts_with('|'))
            .fold(String::new(), |all, line| all + line + "\n"),
    )
    .unwrap();
    desk.run(&["split"])
        .expect(2)
        .says(&["hashed lines", "--input-file"]);
}

#[test]
fn split_copies_the_lines_of_the_addresses_that_a_name_has_if_it_is_told_to() {
    let desk = Desk::new(&format!("localhost {KEY}\n127.0.0.1 {OTHER}\n"));
    let file = desk.user.home().join(".ssh/one/localhost");
    for (flag, lines) in [("--progress", 1), ("--addresses", 2)] {
        desk.run(&["split", "--dot-ssh-output-dir", "one", flag, "localhost"])
            .expect(0);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), lines, "{flag}: {text}");
    }
}

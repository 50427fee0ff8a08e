//! `sshoal up`: OpenSSH's own programs share the connections that it keeps, with real sshd.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use sshoal_testbed::sshd::SshdSpec;
use support::program::Running;
use support::terminal::Screen;
use support::warm::Warm;
use support::{noise, shared_folder, wait_until};

#[test]
fn ssh_has_streams_and_status_of_a_command_without_another_login() {
    let warm = Warm::up(&SshdSpec::new(1));
    let mut child = warm
        .ssh("cat; echo to stderr >&2; exit 42")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = noise(5_000_000);
    let mut stdin = child.stdin.take().unwrap();
    let sent = input.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(output.status.code(), Some(42), "{output:?}");
    assert!(output.stdout == input, "{}", output.stdout.len());
    assert_eq!(output.stderr, b"to stderr\n");
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn files_and_dev_null_are_streams_too() {
    let warm = Warm::up(&SshdSpec::new(1));
    let (from, to) = (warm.shoal.file("from"), warm.shoal.file("to"));
    fs::write(&from, noise(300_000)).unwrap();
    let mut ssh = warm.ssh("cat; cat >&2 /dev/null");
    ssh.stdin(fs::File::open(&from).unwrap())
        .stdout(fs::File::create(&to).unwrap())
        .stderr(Stdio::null());
    assert!(ssh.status().unwrap().success());
    assert!(fs::read(from).unwrap() == fs::read(to).unwrap());
}

#[test]
fn the_environment_and_an_empty_command_are_passed_on() {
    let warm = Warm::up(&SshdSpec::new(1).line("AcceptEnv GREETING"));
    let mut ssh = warm.shares("ssh");
    let name = warm.shoal.name(0);
    ssh.args(["-o", "SetEnv=GREETING=hello", &name, "echo $GREETING"]);
    assert_eq!(
        Running::start(&mut ssh).wait().expect(0).stdout(),
        "hello\n"
    );
    // The user's shell reads its commands.
    let mut ssh = warm.shares("ssh");
    ssh.arg(&name).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = ssh.spawn().unwrap();
    let mut stdin = shell.stdin.take().unwrap();
    stdin.write_all(b"echo from the shell; exit 5\n").unwrap();
    drop(stdin);
    let output = shell.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(output.stdout, b"from the shell\n");
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn scp_sftp_rsync_and_git_share_the_connection() {
    let warm = Warm::up(&SshdSpec::new(1));
    let name = warm.shoal.name(0);
    let contents = noise(20_000_000);
    let folder = shared_folder();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (from, to) = (file("from"), file("to"));
    fs::write(&from, &contents).unwrap();
    for ends in [
        [from.clone(), format!("{name}:{to}")],
        [format!("{name}:{from}"), to.clone()],
    ] {
        let mut scp = warm.shares("scp");
        Running::start(scp.arg("-q").args(ends)).wait().expect(0);
        assert!(fs::read(&to).unwrap() == contents);
        fs::remove_file(&to).unwrap();
    }
    let mut sftp = warm.shares("sftp");
    sftp.args(["-q", "-b", "-", &name]).stdin(Stdio::piped());
    let mut child = sftp.stdout(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "put {from} {to}").unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert!(fs::read(&to).unwrap() == contents);
    let config = warm.shoal.file("ssh_config");
    let by = format!(
        "ssh -F {config} -o ControlPath={}",
        warm.socket(0).display()
    );
    if is_there("rsync") {
        fs::remove_file(&to).unwrap();
        let mut rsync = warm.program("rsync");
        rsync.args(["-e", &by, &from, &format!("{name}:{to}")]);
        Running::start(&mut rsync).wait().expect(0);
        assert!(fs::read(&to).unwrap() == contents);
    }
    if is_there("git") {
        let (origin, clone) = (file("origin"), file("clone"));
        let script = format!(
            "git init -q {origin} && cd {origin} && git -c user.name=me -c user.email=me@localhost commit -q --allow-empty -m first"
        );
        Running::start(&mut warm.ssh(&script)).wait().expect(0);
        let mut git = warm.program("git");
        git.env("GIT_SSH_COMMAND", &by)
            .args(["clone", "-q", &format!("{name}:{origin}"), &clone]);
        Running::start(&mut git).wait().expect(0);
        assert!(fs::metadata(format!("{clone}/.git/HEAD")).is_ok());
    }
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

fn is_there(program: &str) -> bool {
    let found = Command::new("which").arg(program).output();
    found.is_ok_and(|output| output.status.success())
}

#[test]
fn a_terminal_is_like_the_passenger_s_and_follows_its_size() {
    let warm = Warm::up(&SshdSpec::new(1));
    let mut ssh = warm.shares("ssh");
    let script = "echo $TERM; stty size; trap 'stty size' WINCH; trap 'exit 7' INT; echo set; while :; do sleep 0.05; done";
    ssh.args(["-tt", &warm.shoal.name(0), script]);
    let mut screen = Screen::start(&ssh, 30, 100);
    screen.expect("vt100\r\n30 100\r\nset\r\n");
    // ssh hears of sizes from when it is told that its session is open, which the keeper may tell it behind first output.
    screen.wait_until_raw();
    screen.resize(41, 123);
    screen.expect("41 123\r\n");
    screen.resize(10, 20);
    screen.expect("10 20\r\n");
    screen.type_in("\x03");
    let (status, shown) = screen.finish();
    assert_eq!(status, Some(7), "SIGINT reached it there: {shown}");
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn the_modes_of_the_passenger_s_terminal_are_those_of_the_host_s() {
    let warm = Warm::up(&SshdSpec::new(1));
    for (here, there) in [
        ("stty susp ^X -ixany", "susp = ^X"),
        ("stty susp ^Y", "susp = ^Y"),
    ] {
        let line = format!(
            "{here}; ssh -F {} -S {} -tt {} 'stty -a'",
            warm.shoal.file("ssh_config"),
            warm.socket(0).display(),
            warm.shoal.name(0)
        );
        let mut screen = Screen::start(&warm.shoal.user.shell(&line), 30, 100);
        screen.expect(there);
        assert_eq!(screen.finish().0, Some(0));
    }
}

#[test]
fn a_server_without_terminals_says_so_and_the_command_runs() {
    let warm = Warm::up(&SshdSpec::new(1).line("PermitTTY no"));
    let mut ssh = warm.shares("ssh");
    ssh.args(["-tt", &warm.shoal.name(0), "echo it runs; exit 3"]);
    let mut screen = Screen::start(&ssh, 30, 100);
    screen.expect("it runs");
    assert_eq!(screen.finish().0, Some(3));
}

#[test]
fn a_closed_output_ends_what_writes_to_it() {
    let warm = Warm::up(&SshdSpec::new(1));
    let mut ssh = warm.ssh("yes");
    let mut child = ssh.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    // By SIGPIPE, of which the account's shell makes a status, or ssh none.
    let status = child.wait().unwrap().code();
    assert!(matches!(status, Some(141 | 255)), "{status:?}");
    warm_is_well(&warm);
}

/// That a session has what it should, and nobody else logged in.
fn warm_is_well(warm: &Warm) {
    let ended = Running::start(&mut warm.ssh("echo well")).wait();
    assert_eq!(ended.expect(0).stdout(), "well\n");
}

/// A session that writes what it reads, for as long as others do what they like.
struct Bystander(Child);

impl Bystander {
    fn begin(warm: &Warm) -> Bystander {
        let mut ssh = warm.ssh("cat");
        let child = ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Bystander(child.unwrap())
    }

    /// It goes on to its end.
    fn end(mut self) {
        let mut stdin = self.0.stdin.take().unwrap();
        stdin.write_all(b"to the end").unwrap();
        drop(stdin);
        let output = self.0.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, b"to the end");
    }
}

/// A message of the multiplexing protocol.
fn message(numbers: &[u32]) -> Vec<u8> {
    let body: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_be_bytes())
        .collect();
    [&(body.len() as u32).to_be_bytes()[..], &body].concat()
}

#[test]
fn whoever_breaks_the_protocol_is_left_and_nobody_else_notices() {
    let warm = Warm::up(&SshdSpec::new(1));
    let bystander = Bystander::begin(&warm);
    let hello = message(&[1, 4]);
    assert_eq!(warm.say(&message(&[1, 3])), hello, "a wrong version");
    assert_eq!(warm.say(&message(&[0x1000_0004, 0])), hello, "no hello");
    assert_eq!(warm.say(&u32::MAX.to_be_bytes()), hello, "an absurd length");
    assert_eq!(
        warm.say(&[&hello[..], &hello].concat()),
        hello,
        "two hellos"
    );
    let session = message(&[0x1000_0002, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let alone = [&hello[..], &session, &[0]].concat();
    assert_eq!(warm.say(&alone), hello, "a session without descriptors");
    warm.say_half(&hello[..7]);
    warm.say_half(&[&hello[..], &session[..13]].concat());
    let strange = [&hello[..], &message(&[0x1000_00ff, 7])].concat();
    warm.say_half(&strange);
    bystander.end();
    warm_is_well(&warm);
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn what_a_killed_passenger_ran_ends_and_others_go_on() {
    let warm = Warm::up(&SshdSpec::new(1));
    let bystander = Bystander::begin(&warm);
    let folder = shared_folder();
    let mark = folder.path().join("ended");
    let mark = mark.to_str().unwrap();
    // cat's input ends with the channel.
    let mut ssh = warm.ssh(&format!("echo ready; cat; echo over > {mark}"));
    let mut child = ssh
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the command there has ended", || fs::metadata(mark).is_ok());
    wait_until("its session is over", || {
        warm.status()["hosts"][0]["sessions"] == 1
    });
    bystander.end();
}

#[test]
fn a_hundred_passengers_at_once_get_as_many_connections_as_the_server_s_sessions_need() {
    let warm = Warm::up(&SshdSpec::new(1).line("MaxSessions 7"));
    let children: Vec<Child> = (0..100)
        .map(|number| {
            let mut ssh = warm.ssh(&format!("cat; echo {number}"));
            ssh.stdin(Stdio::piped()).stdout(Stdio::piped());
            ssh.spawn().unwrap()
        })
        .collect();
    wait_until("all have a session at the same time", || {
        warm.status()["hosts"][0]["sessions"] == 100 && warm.shoal.hosts.logins() >= 15
    });
    for (number, mut child) in children.into_iter().enumerate() {
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{number}: {output:?}");
        assert_eq!(output.stdout, format!("{number}\n").as_bytes());
    }
    warm_is_well(&warm);
}

#[test]
fn a_further_connection_comes_to_no_other_server_than_the_first() {
    let warm = Warm::cold(&SshdSpec::new(2).line("MaxSessions 1"));
    let name = |host| warm.shoal.name(host);
    let port = |host: usize| warm.shoal.hosts.addresses()[host].port();
    // Behind the name are two servers, and either is trusted: the first time one answers, then always the other.
    let known_hosts = warm.shoal.file("known_hosts");
    let known = fs::read_to_string(&known_hosts).unwrap();
    let both = known.replace(&name(1), &name(0));
    let both = both.replace(&port(1).to_string(), &port(0).to_string());
    fs::write(&known_hosts, format!("{known}{both}")).unwrap();
    let (relay, was_there) = (warm.shoal.file("relay"), warm.shoal.file("was-there"));
    let script = format!(
        "if mkdir {was_there}; then to={}/{}; else to={}/{}; fi\n\
         exec 3<>/dev/tcp/$to || exit 1\ncat <&3 &\nexec cat >&3\n",
        name(0),
        port(0),
        name(1),
        port(1)
    );
    fs::write(&relay, script).unwrap();
    let mut up = warm.up_of_command(&[0]);
    up.args(["-o", &format!("ProxyCommand=bash {relay}")]);
    Running::start(&mut up).wait().expect(0);

    let mut first = warm.ssh("cat").stdin(Stdio::piped()).spawn().unwrap();
    wait_until("the first one has the only session", || {
        warm.status()["hosts"][0]["sessions"] == 1
    });
    let second = Running::start(&mut warm.ssh("echo ${SSH_CONNECTION#* * }"));
    wait_until("the other server was logged in to", || {
        warm.shoal.hosts.logins() == 2
    });
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    let said = second.wait().expect(0).stdout();
    assert_eq!(said, format!("{} {}\n", name(0), port(0)));
}

#[test]
fn check_stop_and_exit_do_what_they_do_with_ssh_s_own_master() {
    let warm = Warm::up(&SshdSpec::new(2));
    let asked = |what: &str| {
        let mut ssh = warm.shares("ssh");
        ssh.args(["-O", what, &warm.shoal.name(0)]);
        Running::start(&mut ssh).wait()
    };
    let pid = warm.pid().as_raw_nonzero();
    let running = format!("Master running (pid={pid})");
    asked("check").expect(0).says(&[&running]);
    // One host's is not the other's.
    asked("exit").expect(0).says(&["Exit request sent."]);
    wait_until("the first host is down", || {
        warm.status()["hosts"][0]["state"] == "down"
    });
    assert!(fs::metadata(warm.socket(0)).is_err());
    assert_eq!(warm.status()["hosts"][1]["state"], "up");
    asked("check").expect(255);
}

#[test]
fn after_stop_who_is_in_stays_and_the_host_ends_with_the_last() {
    let warm = Warm::up(&SshdSpec::new(2));
    let bystander = Bystander::begin(&warm);
    wait_until("it is in", || warm.status()["hosts"][0]["sessions"] == 1);
    let mut ssh = warm.shares("ssh");
    ssh.args(["-O", "stop", &warm.shoal.name(0)]);
    Running::start(&mut ssh).wait().expect(0);
    assert!(fs::metadata(warm.socket(0)).is_err());
    assert_eq!(warm.status()["hosts"][0]["state"], "up");
    bystander.end();
    wait_until("nobody needs it", || {
        warm.status()["hosts"][0]["state"] == "down"
    });
}

#[test]
fn stdio_is_forwarded() {
    let warm = Warm::up(&SshdSpec::new(1));
    let name = warm.shoal.name(0);
    let port = warm.shoal.hosts.addresses()[0].port();
    let mut ssh = warm.shares("ssh");
    ssh.args(["-W", &format!("{name}:{port}"), &name]);
    let ended = Running::start(ssh.stdin(Stdio::null())).wait();
    assert!(ended.stdout().starts_with("SSH-2.0-"), "{}", ended.stderr());
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn a_connection_that_is_lost_is_made_once_more_and_its_passengers_end() {
    let warm = Warm::up(&SshdSpec::new(1));
    let mut ssh = warm.ssh("echo $PPID; cat");
    let mut child = ssh
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let server = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
    kill_process(server, Signal::KILL).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(255));
    wait_until("it is logged in to once more", || {
        warm.shoal.hosts.logins() == 2 && warm.status()["hosts"][0]["state"] == "up"
    });
    warm_is_well(&warm);
}

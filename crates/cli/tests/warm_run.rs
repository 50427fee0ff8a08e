//! `sshoal run` by the connections that `sshoal up` keeps: the same as without, but for the logins. Real sshd.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use sshoal_testbed::sshd::{Layout, SshdSpec};
use support::between::Between;
use support::program::Running;
use support::records::{HostRecord, Records};
use support::warm::{Warm, has_ended};
use support::{noise, shared_folder, wait_until};

/// `sshoal run --json` on all hosts.
fn run(warm: &Warm, arguments: &[&str]) -> Command {
    let (config, hosts) = (warm.shoal.file("ssh_config"), warm.shoal.file("hosts"));
    let mut command = warm.sshoal(&["run", "--json", "-F", &config, "-f", &hosts]);
    command.args(arguments);
    command
}

fn ran(warm: &Warm, arguments: &[&str], status: i32) -> Records {
    let ended = Running::start(&mut run(warm, arguments)).wait();
    ended.expect(status).records()
}

/// What is to be the same by whatever connection.
fn essence(records: Records) -> BTreeMap<String, [Option<String>; 8]> {
    let essence = |record: HostRecord| {
        [
            Some(record.outcome),
            Some(record.fate),
            record.failure,
            record.detail,
            record.signal,
            record.exit_status.map(|status| status.to_string()),
            record.stdout,
            record.stderr,
        ]
    };
    let by_name = records.by_name().into_iter();
    by_name
        .map(|(name, record)| (name, essence(record)))
        .collect()
}

#[track_caller]
fn expect_warm(records: &Records, warm: bool) {
    for record in &records.hosts {
        assert_eq!(record.warm, Some(warm), "{record:?}");
        assert_eq!(record.times_us.login.is_none(), warm, "{record:?}");
    }
}

/// The account's folder where commands of a test meet.
fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

#[test]
fn what_a_command_writes_and_how_it_ends_is_the_same_cold_and_warm() {
    let warm = Warm::up(&SshdSpec::new(3));
    for (line, status) in [
        ("echo out of %h; echo err >&2", 0),
        ("exit 42", 1),
        ("printf 'no newline'", 0),
        ("printf '\\377\\000binary' >&2; exit 255", 1),
        ("kill -USR1 $$", 1),
        ("head -c 3000000 /dev/zero | tr '\\0' x; echo done >&2", 0),
        ("true", 0),
        ("exec >&- 2>&-; exit 3", 1),
        ("no-such-program", 1),
    ] {
        let cold = ran(&warm, &["--no-pool", line], status);
        expect_warm(&cold, false);
        let logins = warm.shoal.hosts.logins();
        let by_warm = ran(&warm, &[line], status);
        expect_warm(&by_warm, true);
        assert_eq!(warm.shoal.hosts.logins(), logins, "nobody logged in");
        assert_eq!(essence(by_warm), essence(cold), "{line}");
    }
}

#[test]
fn standard_input_reaches_every_host_whole_and_its_end_too() {
    let warm = Warm::up(&SshdSpec::new(3));
    let input = warm.shoal.file("input");
    fs::write(&input, noise(5_000_000)).unwrap();
    let sum = Command::new("sha256sum").arg(&input).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let records = ran(&warm, &["--stdin", &input, "sha256sum"], 0);
    expect_warm(&records, true);
    for record in records.hosts {
        let found = record.stdout.unwrap();
        assert_eq!(found.split(' ').next(), sum.split(' ').next());
    }
    // One that reads none of it ends all the same.
    let records = ran(
        &warm,
        &["--stdin", &input, "exec <&-; echo read nothing"],
        0,
    );
    expect_warm(&records, true);
    assert_eq!(warm.shoal.hosts.logins(), 3);
}

#[test]
fn a_command_that_takes_too_long_is_told_to_end_and_its_last_words_are_heard() {
    let warm = Warm::up(&SshdSpec::new(2));
    let line = "trap 'echo told; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    let records = ran(&warm, &["-u", "10", line], 3);
    expect_warm(&records, true);
    for record in records.hosts {
        assert_eq!(record.failure(), "command-timeout");
        assert_eq!(record.fate, "ran");
        assert_eq!(record.stdout.as_deref(), Some("begun\ntold\n"));
        // Whether its processes are gone nobody has looked.
        assert_eq!(record.kill.as_deref(), Some("not-confirmed"));
    }
    assert_eq!(warm.shoal.hosts.logins(), 2);
}

#[test]
fn ctrl_c_signals_what_runs_and_starts_nothing_else() {
    let warm = Warm::up(&SshdSpec::new(3));
    let marks = shared_folder();
    let line = format!(
        "trap 'exit 9' INT; touch {}/%h; echo begun; while :; do sleep 0.05; done",
        path(marks.path())
    );
    let running = Running::start(&mut run(&warm, &["-p", "2", "--record", &line]));
    wait_until("two commands are heard of", || {
        warm.shoal.recorded().matches("begun").count() == 2
    });
    running.interrupt();
    let records = running.wait().expect(130).records();
    let summary = records.summary;
    assert_eq!((summary.exited, summary.not_started), (2, 1));
    assert_eq!(fs::read_dir(marks.path()).unwrap().count(), 2);
    assert_eq!(warm.shoal.hosts.logins(), 3);
}

#[test]
fn when_the_keeper_is_killed_what_ran_is_lost_and_what_has_not_begun_logs_in() {
    let warm = Warm::up(&SshdSpec::new(3));
    let marks = shared_folder();
    let counted = marks.path().join("counted");
    let go_on = marks.path().join("go-on");
    let line = format!(
        "echo %h >> {0}; echo begun; while [ ! -e {1} ]; do sleep 0.05; done",
        path(&counted),
        path(&go_on)
    );
    let running = Running::start(&mut run(&warm, &["-p", "1", "--record", &line]));
    wait_until("the first command is heard of", || {
        warm.shoal.recorded().contains("begun")
    });
    let keeper = warm.pid();
    kill_process(keeper, Signal::KILL).unwrap();
    wait_until("the keeper is gone", || has_ended(keeper));
    fs::write(&go_on, "").unwrap();
    let records = running.wait().expect(3).records();
    let (lost, others): (Vec<_>, Vec<_>) = records
        .hosts
        .into_iter()
        .partition(|record| record.failure() == "lost");
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].fate, "ran");
    assert_eq!(lost[0].warm, Some(true));
    for record in &others {
        assert!(record.is_ok(), "{record:?}");
        assert_eq!(record.warm, Some(false));
    }
    let counted = fs::read_to_string(counted).unwrap();
    assert_eq!(counted.lines().count(), 3, "each ran once: {counted}");
    assert_eq!(warm.shoal.hosts.logins(), 3 + 2);
}

#[test]
fn a_server_that_does_not_answer_on_its_kept_connection_is_told_so() {
    let warm = Warm::up(&SshdSpec::new(1));
    let stopped = warm.stop(0);
    let records = ran(&warm, &["--login-timeout", "1", "true"], 3);
    for pid in &stopped {
        let _ = kill_process(*pid, Signal::CONT);
    }
    let record = &records.hosts[0];
    let detail = record.detail.as_deref().unwrap();
    // Without a session that was opened before, the command waits for one.
    assert_eq!(
        (record.failure(), &record.fate[..]),
        ("login-timeout", "not-sent")
    );
    let words = "no answer within 1s on the connection that `sshoal up` keeps";
    assert_eq!(detail, words);
}

#[test]
fn a_command_that_is_given_up_behind_others_octets_still_leaves_and_may_have_run() {
    const FORWARDS: usize = 10;
    let warm = Warm::up(&SshdSpec::new(1));
    // The next command has a session already, and leaves at once.
    expect_warm(&ran(&warm, &["true"], 0), true);
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = sink.local_addr().unwrap().to_string();
    let name = warm.shoal.name(0);
    let forward = || {
        let mut ssh = warm.shares("ssh");
        let words = ssh.args(["-W", &to, &name]).stdin(Stdio::piped());
        words.stdout(Stdio::null()).spawn().unwrap()
    };
    let mut forwards: Vec<Child> = (0..FORWARDS).map(|_| forward()).collect();
    let taken: Vec<_> = (0..FORWARDS).map(|_| sink.accept().unwrap()).collect();
    let stopped = warm.stop(0);
    let written = Arc::new(AtomicUsize::new(0));
    let writers = forwards.iter_mut().map(|ssh| {
        let (mut stdin, written) = (ssh.stdin.take().unwrap(), written.clone());
        thread::spawn(move || {
            let block = [0; 16 * 1024];
            while stdin.write_all(&block).is_ok() {
                written.fetch_add(block.len(), Ordering::SeqCst);
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    // If it is believed too soon the command leaves at once, and may have run all the same.
    let (mut before, mut unchanged) = (0, 0);
    wait_until("nothing more leaves", || {
        let now = written.load(Ordering::SeqCst);
        let is_same = std::mem::replace(&mut before, now) == now && now > 0;
        unchanged = if is_same { unchanged + 1 } else { 0 };
        unchanged == 100
    });

    let marks = shared_folder();
    let mark = marks.path().join("mark");
    let line = format!("echo ran >>{}", path(&mark));
    let records = ran(&warm, &["--login-timeout", "1", &line], 3);
    let record = &records.hosts[0];
    assert_eq!(record.fate, "may-have-run", "{record:?}");
    assert!(!mark.exists());
    for pid in &stopped {
        let _ = kill_process(*pid, Signal::CONT);
    }
    wait_until("it has run", || mark.exists());
    for ssh in &mut forwards {
        ssh.kill().unwrap();
        ssh.wait().unwrap();
    }
    drop(taken);
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(fs::read_to_string(&mark).unwrap(), "ran\n");
}

#[test]
fn a_run_for_which_a_keeper_has_no_place_logs_in() {
    const PLACES: usize = 256;
    let warm = Warm::up(&SshdSpec::new(1));
    let guests: Vec<UnixStream> = (0..PLACES).map(|_| guest(&warm)).collect();
    expect_warm(&ran(&warm, &["true"], 0), false);
    drop(guests);
    wait_until("there is a place again", || {
        ran(&warm, &["true"], 0).hosts[0].warm == Some(true)
    });
}

#[test]
fn hosts_whose_orders_wait_log_in_when_the_keeper_is_gone() {
    const HOSTS: u32 = 32;
    let warm = Warm::up(&SshdSpec {
        layout: Layout::Shared,
        ..SshdSpec::new(HOSTS)
    });
    let between = Between::deaf(&warm);
    // Some are on their way, as many as a stream takes wait there, and the others for that.
    let line = format!("echo %h; : {}", "x".repeat(110_000));
    let mut command = run(&warm, &["-p", "32", &line]);
    let running = Running::start(command.env("XDG_RUNTIME_DIR", between.folder()));
    wait_until("some are on their way", || {
        between.unheard() > line.len() as u64
    });
    between.hang_up();
    let records = running.wait().expect(3).records().by_name();
    let mut lost = 0;
    for host in 0..HOSTS as usize {
        let name = warm.shoal.name(host);
        let record = &records[&name];
        if record.failure.is_some() {
            assert_eq!(
                (record.failure(), &record.fate[..]),
                ("lost", "may-have-run")
            );
            lost += 1;
            continue;
        }
        assert_eq!(record.stdout, Some(format!("{name}\n")));
        assert_eq!(record.warm, Some(false));
    }
    assert!((1..HOSTS / 2).contains(&lost), "{lost}");
}

#[test]
fn a_host_that_is_not_kept_any_more_is_logged_in_to() {
    let warm = Warm::up(&SshdSpec::new(3));
    warm.run(&["down", &warm.shoal.name(1)]).expect(0);
    wait_until("it is down", || {
        warm.status()["hosts"][1]["state"] == "down"
    });
    let records = ran(&warm, &["echo %h"], 0).by_name();
    for host in 0..3 {
        let record = &records[&warm.shoal.name(host)];
        assert_eq!(record.warm, Some(host != 1));
        assert_eq!(record.stdout, Some(format!("{}\n", warm.shoal.name(host))));
    }
    assert_eq!(warm.shoal.hosts.logins(), 3 + 1);
}

#[test]
fn a_keeper_that_is_another_one_when_it_is_asked_again_gets_no_host_another_s_command() {
    let warm = Warm::up(&SshdSpec::new(2));
    // It has as many hosts, and has numbered them otherwise.
    let between = Between::new(&warm, |found| found.reverse());
    let mut command = run(&warm, &["echo %h ${SSH_CONNECTION#* * }"]);
    command.env("XDG_RUNTIME_DIR", between.folder());
    let records = Running::start(&mut command).wait().expect(0).records();
    expect_warm(&records, false);
    let records = records.by_name();
    for (host, address) in warm.shoal.hosts.addresses().iter().enumerate() {
        let name = warm.shoal.name(host);
        let said = format!("{name} {} {}\n", address.ip(), address.port());
        assert_eq!(records[&name].stdout, Some(said));
    }
    assert_eq!(between.identities().len(), 2);
    assert_eq!(warm.shoal.hosts.logins(), 2 + 2);
}

#[test]
fn more_commands_than_a_connection_has_sessions_get_further_connections() {
    const RUNS: usize = 7;
    let warm = Warm::up(&SshdSpec::new(1).line("MaxSessions 2"));
    let marks = shared_folder();
    // Nobody ends before all are there.
    let line = |number| {
        format!(
            "touch {0}/{number}; while [ $(ls {0} | wc -l) -lt {RUNS} ]; do sleep 0.05; done; echo {number}",
            path(marks.path())
        )
    };
    let begin = |number| Running::start(&mut run(&warm, &[&line(number)]));
    let running: Vec<Running> = (0..RUNS).map(begin).collect();
    for (number, running) in running.into_iter().enumerate() {
        let records = running.wait().expect(0).records();
        expect_warm(&records, true);
        assert_eq!(records.hosts[0].stdout, Some(format!("{number}\n")));
    }
    assert!(warm.shoal.hosts.logins() >= RUNS.div_ceil(2));
}

/// sshd counts a session until it has read all that came with its end.
#[test]
fn sessions_that_are_over_take_nobody_s_place() {
    let warm = Warm::up(&SshdSpec::new(1).line("MaxSessions 2"));
    for _ in 0..4 {
        // After the first ones a session is there for whoever comes next, and the end of another is not said yet.
        for _ in 0..3 {
            expect_warm(&ran(&warm, &["true"], 0), true);
        }
        let marks = shared_folder();
        let line = format!(
            "touch {0}/$$; while [ $(ls {0} | wc -l) -lt 2 ]; do sleep 0.05; done",
            path(marks.path())
        );
        let both = [(); 2].map(|()| Running::start(&mut run(&warm, &[&line])));
        for running in both {
            expect_warm(&running.wait().expect(0).records(), true);
        }
    }
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

#[test]
fn a_run_that_would_log_in_differently_does_so() {
    let warm = Warm::up(&SshdSpec::new(2));
    let logins = || warm.shoal.hosts.logins();
    for (arguments, is_warm) in [
        (&["-o", "ConnectTimeout=7", "true"][..], true),
        (&["-o", "ServerAliveInterval=9", "true"], true),
        (&["-o", "SetEnv=A=b", "true"], true),
        (&["-o", "StrictHostKeyChecking=no", "true"], false),
        (&["-o", "Ciphers=aes256-ctr", "true"], false),
        (
            &[
                "-o",
                "IdentitiesOnly=no",
                "-o",
                "PreferredAuthentications=publickey",
                "true",
            ],
            false,
        ),
        (&["-o", "RequestTTY=force", "true"], false),
        (&["--no-pool", "true"], false),
    ] {
        let before = logins();
        let records = ran(&warm, arguments, 0);
        expect_warm(&records, is_warm);
        let more = if is_warm { 0 } else { 2 };
        assert_eq!(logins() - before, more, "{arguments:?}");
    }
}

#[test]
fn a_host_whose_keys_a_command_tells_is_logged_in_to() {
    let warm = Warm::cold(&SshdSpec::new(1));
    let told = ["-o", "KnownHostsCommand=/bin/true"];
    let mut up = warm.up_command(&told);
    Running::start(&mut up).wait().expect(0);
    let records = ran(&warm, &[&told[..], &["true"]].concat(), 0);
    expect_warm(&records, false);
}

#[test]
fn a_path_means_a_file_of_the_folder_that_one_is_in() {
    let warm = Warm::cold(&SshdSpec::new(1));
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::copy(warm.shoal.file("known_hosts"), here.path().join("keys")).unwrap();
    fs::write(there.path().join("keys"), "").unwrap();
    let keys = ["-o", "UserKnownHostsFile=keys"];
    let mut up = warm.up_command(&keys);
    Running::start(up.current_dir(&here)).wait().expect(0);
    let arguments = [&keys[..], &["true"]].concat();
    let mut same = run(&warm, &arguments);
    let same = Running::start(same.current_dir(&here)).wait().expect(0);
    expect_warm(&same.records(), true);
    let mut other = run(&warm, &arguments);
    let other = Running::start(other.current_dir(&there)).wait().expect(3);
    assert_eq!(other.records().hosts[0].failure(), "host-key-unknown");
}

#[test]
fn a_dry_run_and_the_line_of_a_host_say_that_it_is_warm() {
    let warm = Warm::up(&SshdSpec::new(1));
    let (config, name) = (warm.shoal.file("ssh_config"), warm.shoal.name(0));
    let said = |arguments: &[&str]| {
        let all = [&["run", "-F", &config, "-w", &name][..], arguments].concat();
        warm.run(&all).expect(0)
    };
    let dry = said(&["--dry-run", "true"]).stdout();
    assert!(dry.contains(" by a warm connection: true"), "{dry}");
    let dry = said(&["--dry-run", "--no-pool", "true"]).stdout();
    assert!(!dry.contains("warm"), "{dry}");
    let line = said(&["-v", "true"]).stderr();
    assert!(line.contains(" ms, warm: "), "{line}");
    let explained = warm.run(&["explain", "-F", &config, &name]).expect(0);
    assert!(explained.stdout().contains("kept by sshoal up"));
}

#[test]
fn two_hundred_hosts_run_a_command_and_none_is_logged_in_to() {
    let warm = Warm::up(&SshdSpec::new(200));
    let before = warm.shoal.hosts.logins();
    for _ in 0..2 {
        let records = ran(&warm, &["echo %h"], 0);
        assert_eq!(records.summary.ok, 200);
        expect_warm(&records, true);
        for record in records.hosts {
            assert_eq!(record.stdout, Some(format!("{}\n", record.host)));
        }
    }
    assert_eq!(warm.shoal.hosts.logins(), before);
    let status = warm.status();
    let hosts = status["hosts"].as_array().unwrap();
    assert!(hosts.iter().all(|host| host["sessions_in_all"] == 2));
}

#[test]
fn a_run_that_is_killed_leaves_no_command_s_session_behind() {
    let warm = Warm::up(&SshdSpec::new(2));
    let marks = shared_folder();
    let line = format!("echo $$ >{}/%h; cat; exec sleep 3600", path(marks.path()));
    let input = warm.shoal.file("input");
    // Nobody opens the other end: the command's input neither comes nor ends.
    assert!(
        Command::new("mkfifo")
            .arg(&input)
            .status()
            .unwrap()
            .success()
    );
    let held = fs::File::options()
        .read(true)
        .write(true)
        .open(&input)
        .unwrap();
    let running = Running::start(&mut run(&warm, &["--stdin", &input, &line]));
    wait_until("both commands run", || {
        let marks = fs::read_dir(marks.path()).unwrap();
        let told = marks.filter(|mark| mark.as_ref().unwrap().metadata().unwrap().len() > 0);
        told.count() == 2
    });
    drop(running);
    wait_until("their sessions are over", || {
        let status = warm.status();
        let hosts = status["hosts"].as_array().unwrap();
        hosts.iter().all(|host| host["sessions"] == 0)
    });
    drop(held);
    expect_warm(&ran(&warm, &["true"], 0), true);
    assert_eq!(warm.shoal.hosts.logins(), 2);
    // sshd leaves what runs without a terminal alone.
    for mark in fs::read_dir(marks.path()).unwrap() {
        let process = fs::read_to_string(mark.unwrap().path()).unwrap();
        let process = Pid::from_raw(process.trim().parse().unwrap()).unwrap();
        kill_process(process, Signal::KILL).unwrap();
    }
}

/// A guest of the process that keeps connections.
fn guest(warm: &Warm) -> UnixStream {
    let control = warm.shoal.dir.path().join("run/sshoal/control");
    let mut stream = UnixStream::connect(control).unwrap();
    let question = "{\"ask\":\"board\",\"version\":1,\"deck\":0}\n";
    stream.write_all(question.as_bytes()).unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"true\n");
    stream
}

/// All that a guest is told until the other end hangs up.
fn told(mut guest: UnixStream) -> Vec<u8> {
    let mut told = Vec::new();
    // It may hang up before it has read all.
    let _ = guest.read_to_end(&mut told);
    told
}

/// What is written in hexadecimal digits.
fn octets_of(digits: &str) -> Vec<u8> {
    let digits: Vec<char> = digits.chars().collect();
    let pairs = digits.chunks(2).map(|pair| pair.iter().collect());
    let octets = pairs.map(|pair: String| u8::from_str_radix(&pair, 16).unwrap());
    octets.collect()
}

#[test]
fn a_guest_that_breaks_the_protocol_is_left_and_nobody_else_notices() {
    let warm = Warm::up(&SshdSpec::new(1));
    let marks = shared_folder();
    let (begun, go_on) = (marks.path().join("begun"), marks.path().join("go-on"));
    let line = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done; echo to the end",
        path(&begun),
        path(&go_on)
    );
    let bystander = Running::start(&mut run(&warm, &[&line]));
    wait_until("the bystander's command runs", || begun.exists());
    let between = Between::new(&warm, |_| ());
    let mut asking = run(&warm, &["true"]);
    asking.env("XDG_RUNTIME_DIR", between.folder());
    let records = Running::start(&mut asking).wait().expect(0).records();
    expect_warm(&records, true);
    let identity = octets_of(&between.identities()[0]);
    let frame = |kind: u8, fields: &[u8]| {
        let len = fields.len() as u32 + 1;
        [&len.to_be_bytes()[..], &[kind], fields].concat()
    };
    const BEGAN: [u8; 9] = [0, 0, 0, 5, 1, 0, 0, 0, 7];
    const ENDED_UNSENT_LOST: [u8; 7] = [4, 0, 0, 0, 7, 0, 3];
    // Command 7 on host 0, with standard input and no variables: cat.
    let start = |identity: &[u8]| {
        let [number, host] = [[0, 0, 0, 7], [0; 4]];
        let line = [1, 0, 0, 0, 3, b'c', b'a', b't', 0, 0, 0, 0];
        frame(1, &[&number, &host, identity, &line].concat())
    };
    let input = |octets: usize| frame(2, &[&[0, 0, 0, 7][..], &vec![b'x'; octets]].concat());
    let right = start(&identity);
    for octets in [
        u32::MAX.to_be_bytes().to_vec(),
        vec![0; 4],
        frame(99, &[0; 4]),
        frame(1, &[0; 3]),
        [right.clone(), right.clone()].concat(),
        [right.clone(), input(100_000)].concat(),
        [right.clone(), frame(5, b"\0\0\0\x07").to_vec()].concat(),
    ] {
        let mut guest = guest(&warm);
        guest.write_all(&octets).unwrap();
        // Before, it may have been told that the command began.
        let told = told(guest);
        assert!(told.is_empty() || told == BEGAN, "{told:?}");
    }
    // A connection that is another one is no breach: nothing was sent, and the guest may go on.
    let mut guest = guest(&warm);
    guest.write_all(&start(&[7; 32])).unwrap();
    guest.write_all(&right).unwrap();
    guest.shutdown(Shutdown::Write).unwrap();
    let told = told(guest);
    assert_eq!(told[4..11], ENDED_UNSENT_LOST, "{told:?}");
    fs::write(&go_on, "").unwrap();
    let records = bystander.wait().expect(0).records();
    assert_eq!(records.hosts[0].stdout.as_deref(), Some("to the end\n"));
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

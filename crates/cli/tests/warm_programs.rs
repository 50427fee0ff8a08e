//! Programs that know nothing of sshoal, with the lines of `sshoal up --ssh-config`: ansible, scp of much, ssh under tmux.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sshoal_testbed::sshd::SshdSpec;
use support::program::{Ended, Running};
use support::warm::Warm;
use support::{noise, shared_folder, wait_until};

/// Appends the lines to the user's configuration.
fn configure(warm: &Warm) -> String {
    let lines = warm.run(&["up", "--ssh-config"]).expect(0).stdout();
    let config = warm.shoal.file("ssh_config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text + &lines).unwrap();
    config
}

/// `ansible` of the virtual environment that `make setup` makes, for all hosts.
fn ansible(warm: &Warm, config: &str, remote: &Path, arguments: &[&str]) -> Ended {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/ansible");
    let hosts: Vec<String> = (0..warm.shoal.hosts.addresses().len())
        .map(|host| warm.shoal.name(host))
        .collect();
    let mut command = warm.program(program.to_str().unwrap());
    command
        .env("ANSIBLE_SSH_ARGS", format!("-F {config}"))
        .env("ANSIBLE_REMOTE_TMP", remote)
        .env("ANSIBLE_PYTHON_INTERPRETER", "/usr/bin/python3")
        .env("ANSIBLE_NOCOLOR", "1")
        .args(["all", "-i", &(hosts.join(",") + ",")])
        .args(arguments);
    Running::start(&mut command).wait()
}

#[test]
fn ansible_runs_commands_and_modules_without_a_login() {
    let warm = Warm::up(&SshdSpec::new(2));
    let config = configure(&warm);
    let folder = shared_folder();
    let remote = folder.path().join("ansible");
    let raw = ansible(
        &warm,
        &config,
        &remote,
        &["-m", "raw", "-a", "echo raw $((6 * 7))"],
    );
    assert_eq!(raw.expect(0).stdout().matches("raw 42").count(), 2);
    let ping = ansible(&warm, &config, &remote, &["-m", "ping"]).expect(0);
    assert_eq!(ping.stdout().matches("pong").count(), 2);
    assert_eq!(warm.shoal.hosts.logins(), 2, "one each, by up");
}

#[test]
fn scp_brings_64_mib_there_and_back_intact() {
    let warm = Warm::up(&SshdSpec::new(1));
    let config = configure(&warm);
    let folder = shared_folder();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (from, there, back) = (file("from"), file("there"), file("back"));
    let contents = noise(64 * 1024 * 1024);
    fs::write(&from, &contents).unwrap();
    let host = warm.shoal.name(0);
    for ends in [
        [from, format!("{host}:{there}")],
        [format!("{host}:{there}"), back.clone()],
    ] {
        let mut scp = warm.program("scp");
        scp.args(["-q", "-F", &config]).args(ends);
        Running::start(&mut scp).wait().expect(0);
    }
    assert!(fs::read(back).unwrap() == contents);
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

/// A tmux of this test alone, ended with it.
struct Tmux<'a> {
    warm: &'a Warm,
    socket: PathBuf,
}

impl Tmux<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.warm.program("tmux");
        command.env("TERM", "screen").arg("-S").arg(&self.socket);
        command.args(["-f", "/dev/null"]).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Running::start(&mut self.command(arguments)).wait()
    }

    /// Types a line.
    fn type_in(&self, line: &str) {
        self.run(&["send-keys", line, "Enter"]).expect(0);
    }

    /// Waits until a whole line of the screen is this.
    fn shows(&self, line: &str) {
        wait_until(line, || {
            let screen = self.run(&["capture-pane", "-p"]).stdout();
            screen.lines().any(|shown| shown.trim_end() == line)
        });
    }

    /// Waits until every key goes to the host: from just before that on ssh hears of sizes.
    fn is_lent(&self) {
        let terminal = self.run(&["display-message", "-p", "#{pane_tty}"]).stdout();
        wait_until("the terminal is lent", || {
            let mut stty = Command::new("stty");
            let settings = stty.args(["-a", "-F", terminal.trim_end()]).output();
            String::from_utf8_lossy(&settings.unwrap().stdout).contains("-isig")
        });
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the screen:\n{}",
                self.run(&["capture-pane", "-p"]).stdout()
            );
        }
        // It may have ended with its session.
        let _ = self.command(&["kill-server"]).output();
    }
}

#[test]
fn a_shell_under_tmux_follows_the_size_of_its_window() {
    let warm = Warm::up(&SshdSpec::new(1));
    let config = configure(&warm);
    let tmux = Tmux {
        warm: &warm,
        socket: warm.shoal.dir.path().join("tmux"),
    };
    // Not before the window has its size: what changes while ssh begins it does not hear of.
    let ssh = format!(
        "until [ \"$(stty size)\" = '30 100' ]; do sleep 0.05; done; exec ssh -F {config} {}",
        warm.shoal.name(0)
    );
    tmux.run(&["new-session", "-d", "-x", "100", "-y", "31", &ssh])
        .expect(0);
    tmux.run(&["set", "-g", "window-size", "manual"]).expect(0);
    tmux.run(&["resize-window", "-x", "100", "-y", "30"])
        .expect(0);
    tmux.shows("$");
    tmux.is_lent();
    tmux.type_in("PS1=; echo here it is | tr a-z A-Z");
    tmux.shows("HERE IT IS");
    tmux.type_in("stty size | tr ' ' x");
    tmux.shows("30x100");
    tmux.run(&["resize-window", "-x", "123", "-y", "41"])
        .expect(0);
    // The shell is told by a signal, whenever that comes.
    tmux.type_in("until stty size | grep -q '^41 123$'; do :; done; echo GROWN | tr A-Z a-z");
    tmux.shows("grown");
    tmux.type_in("cat");
    tmux.type_in("typed");
    tmux.run(&["send-keys", "C-c"]).expect(0);
    tmux.type_in("echo STATUS $? | tr A-Z a-z");
    tmux.shows("status 130");
    tmux.type_in("exit");
    wait_until("tmux has ended with its only window", || {
        tmux.run(&["has-session"]).status.code() != Some(0)
    });
    assert_eq!(warm.shoal.hosts.logins(), 1);
}

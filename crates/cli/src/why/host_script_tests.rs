//! What the script for the host leaves running there, whatever hangs: nothing. And its counters before and after.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use tempfile::TempDir;

use super::tests::{SHELLS, learned};
use super::*;

/// After so long a test has failed: the script's own patience, with what it is replaced by here, is a second or none.
const DEADLINE: Duration = Duration::from_secs(120);
/// What never ends by itself, with a process below it.
const HANGS: &str = "#!/bin/sh\nsleep 1000 &\nwait\n";

/// The script at work, by one of the shells.
struct Run {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    /// In the environment of all that it starts.
    mark: String,
}

impl Run {
    /// `None` if there is no such shell.
    fn start(shell: &[&str], words: &[&str], script: &str, user_shell: &Path) -> Option<Run> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("SSHOAL_TEST_RUN={}.{number}.", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).args(words);
        command.env(name, value).env("SHELL", user_shell);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.stderr(Stdio::null()).spawn().ok()?;
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(script.as_bytes()).unwrap();
        drop(stdin);
        let stdout = child.stdout.take().map(BufReader::new);
        Some(Run {
            child,
            stdout,
            mark,
        })
    }

    /// All that it says, and how it ends.
    fn end(mut self) -> (ExitStatus, String) {
        let stdout = self.stdout.take().unwrap();
        let (said, heard) = mpsc::channel();
        thread::spawn(move || {
            let lines = stdout.lines().map_while(Result::ok);
            let text: String = lines.map(|line| line + "\n").collect();
            // Nobody may listen any more.
            let _ = said.send(text);
        });
        let text = heard.recv_timeout(DEADLINE);
        let status = self.child.wait().unwrap();
        self.leaves_nothing();
        (status, text.unwrap())
    }

    /// Hears it until it says this.
    fn hear(&mut self, wanted: &str) {
        let stdout = self.stdout.as_mut().unwrap();
        let mut lines = stdout.lines().map_while(Result::ok);
        assert!(lines.any(|line| line == wanted), "{wanted}");
    }

    #[track_caller]
    fn leaves_nothing(&self) {
        let begun = Instant::now();
        while is_anywhere(&self.mark) {
            assert!(begun.elapsed() < DEADLINE, "something is left of it");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Does nothing once it has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a process has this in its environment. One that was killed has none any more.
fn is_anywhere(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut environments =
        processes.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
    environments.any(|it| it.windows(mark.len()).any(|part| part == mark.as_bytes()))
}

/// A folder of programs with these texts.
fn programs(texts: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in texts {
        // What is open for writing here, if only in a fork, could not be executed: it is made by another process.
        let (draft, path) = (folder.path().join("draft"), folder.path().join(name));
        fs::write(&draft, text).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
        let copied = Command::new("cp").arg(&draft).arg(path).status().unwrap();
        assert!(copied.success());
        fs::remove_file(draft).unwrap();
    }
    folder
}

/// The script, which takes these for update-motd.d's.
fn with_motd(folder: &TempDir) -> String {
    let folder = folder.path().to_string_lossy();
    SCRIPT.replace("/etc/update-motd.d", &folder)
}

/// The same with no patience for scripts of update-motd.d, or for anything.
fn hasty(script: &str, what: &str) -> String {
    let patience = match what {
        "motd_seconds" => "motd_seconds=10",
        _ => "all_seconds=30",
    };
    assert!(script.contains(patience));
    script.replace(patience, &format!("{what}=1"))
}

#[track_caller]
fn by_each_shell(test: impl Fn(&[&str]) -> Option<()>) {
    let tested = SHELLS.iter().filter_map(|shell| test(shell)).count();
    assert!(tested > 0);
}

#[test]
fn a_script_of_update_motd_that_hangs_is_ended_and_has_taken_at_least_so_long() {
    let motd = programs(&[
        ("10-quick", "#!/bin/sh\n:\n"),
        ("20-hangs", HANGS),
        ("30-quick", "#!/bin/sh\n:\n"),
    ]);
    let hangs = motd.path().join("20-hangs").display().to_string();
    let script = hasty(&with_motd(&motd), "motd_seconds");
    // Not every kernel lists a process's children.
    let without_lists = script.replace("/children", "/no-such-list");
    for script in [script, without_lists] {
        by_each_shell(|shell| {
            let run = Run::start(shell, &[], &script, Path::new("/bin/sh"))?;
            let (status, text) = run.end();
            assert!(status.success(), "{shell:?}: {text}");
            assert!(text.ends_with("\nhost.done yes\n"), "{shell:?}: {text}");
            assert_eq!(text.matches("\ncut_short ").count(), 1, "{shell:?}: {text}");
            let facts = learned(&text);
            let slowest = facts.text("host.motd_scripts.slowest").unwrap();
            assert!(
                slowest.starts_with(&format!("{hangs} at least ")),
                "{slowest}"
            );
            // The others are none the worse for it.
            assert!(text.contains("30-quick\n-motd"), "{text}");
            Some(())
        });
    }
}

#[test]
fn what_is_timed_as_a_login_has_it_may_take_longer_than_a_script_of_update_motd() {
    let user_shell = programs(&[("slow", "#!/bin/sh\nexec sleep 3\n")]);
    let none = programs(&[]);
    let script = hasty(&with_motd(&none), "motd_seconds");
    by_each_shell(|shell| {
        let run = Run::start(shell, &[], &script, &user_shell.path().join("slow"))?;
        let (_, text) = run.end();
        assert!(text.ends_with("\nhost.done yes\n"), "{shell:?}: {text}");
        assert!(!text.contains("\ncut_short "), "{shell:?}: {text}");
        Some(())
    });
}

#[test]
fn when_nobody_hears_it_any_more_the_script_ends_with_all_that_it_has_started() {
    let hanging = programs(&[("10-hangs", HANGS)]);
    let hangs = hanging.path().join("10-hangs");
    let of_motd = format!("+motd {}", hangs.display());
    let none = programs(&[]);
    for (script, user_shell, begin) in [
        (with_motd(&hanging), Path::new("/bin/sh"), of_motd.as_str()),
        (with_motd(&none), &hangs, "+host.shell.startup.time"),
    ] {
        by_each_shell(|shell| {
            let mut run = Run::start(shell, &[], &script, user_shell)?;
            run.hear(begin);
            drop(run.stdout.take());
            run.leaves_nothing();
            Some(())
        });
    }
}

#[test]
fn a_script_that_takes_too_long_ends_with_all_that_it_has_started() {
    let user_shell = programs(&[("hangs", HANGS)]);
    let none = programs(&[]);
    let script = hasty(&with_motd(&none), "all_seconds");
    by_each_shell(|shell| {
        let run = Run::start(shell, &[], &script, &user_shell.path().join("hangs"))?;
        let (status, text) = run.end();
        assert_eq!(status.signal(), Some(9), "{shell:?}: {text}");
        assert!(text.contains("\n+host.shell.startup.time\n"), "{text}");
        assert!(!text.contains("\nhost.done "), "{text}");
        Some(())
    });
}

#[test]
fn what_watches_over_the_script_ends_with_it() {
    // It sleeps for longer than anybody waits, and so does what it leaves.
    let script = SCRIPT.replace("sleep 1 >", "sleep 1000 >");
    assert_ne!(script, SCRIPT);
    by_each_shell(|shell| {
        let run = Run::start(shell, &[], &script, Path::new("/bin/sh"))?;
        let (status, text) = run.end();
        assert!(status.success(), "{shell:?}: {text}");
        assert!(text.ends_with("\nhost.done yes\n"), "{shell:?}: {text}");
        Some(())
    });
}

#[test]
fn a_group_that_was_throttled_long_ago_is_not_throttled_now() {
    for (first, meanwhile, wanted) in [(7, 7, 0.0), (7, 9, 2.0), (4, 7, 3.0)] {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display().to_string();
        let stat = |count| format!("nr_periods 99\nnr_throttled {count}\nthrottled_usec 5\n");
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("cgroup"), "0::/a\n").unwrap();
        let counter = folder.path().join("a/cpu.stat");
        // While it runs something is throttled.
        let line = format!("echo nr_throttled {meanwhile} >{}", counter.display());
        let motd = programs(&[("10-busy", &format!("#!/bin/sh\n{line}\n"))]);
        let script = with_motd(&motd)
            .replace("/sys/fs/cgroup", &place)
            .replace("/proc/$1/cgroup", &format!("{place}/cgroup"));
        by_each_shell(|shell| {
            fs::write(&counter, stat(first)).unwrap();
            let run = Run::start(shell, &["-s", "first"], &script, Path::new("/bin/sh"))?;
            let (_, at_first) = run.end();
            assert!(!at_first.contains("\n+"), "nothing is timed: {at_first}");
            fs::write(&counter, stat(7)).unwrap();
            let run = Run::start(shell, &[], &script, Path::new("/bin/sh"))?;
            let (_, text) = run.end();
            let mut facts = Facts::default();
            let [first, last] = [&at_first, &text].map(|text| super::tests::said(text));
            learn(Some(&first), &last, &mut facts).unwrap();
            assert_eq!(
                facts.number("host.throttled"),
                Some(wanted),
                "{shell:?}: {text}"
            );
            Some(())
        });
    }
}

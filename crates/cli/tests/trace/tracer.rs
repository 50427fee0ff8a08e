//! The tracer by itself, following a shell.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use sshoal_trace::{Armed, Frame, Frames, Recording, Segment, State, Tree, Waking};
use sshoal_tracer::{Processor, program};
use tempfile::TempDir;

use crate::may_trace;
use crate::support::{wait_until, write_program};

/// A tracer that runs.
pub(crate) struct Tracer {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    frames: Frames,
    pub(crate) recording: Recording,
    folder: TempDir,
}

impl Tracer {
    /// One that follows a process. It has not said anything yet.
    pub(crate) fn start(pid: u32) -> Tracer {
        Tracer::start_by(&mut Command::new("env"), pid)
    }

    /// One that lives so long, if nothing ends it before.
    pub(crate) fn start_for(pid: u32, seconds: u32) -> Tracer {
        let words = ["--seconds".to_owned(), seconds.to_string()];
        Tracer::start_with(&mut Command::new("env"), pid, &words)
    }

    /// One that does without some of what the kernel has.
    pub(crate) fn start_without(pid: u32, without: &str) -> Tracer {
        let words = ["--without".to_owned(), without.to_owned()];
        Tracer::start_with(&mut Command::new("env"), pid, &words)
    }

    /// One that is started by another program.
    pub(crate) fn start_by(command: &mut Command, pid: u32) -> Tracer {
        Tracer::start_with(command, pid, &[])
    }

    /// The same with flags of its own.
    pub(crate) fn start_with(command: &mut Command, pid: u32, words: &[String]) -> Tracer {
        let processor = Processor::of_machine(std::env::consts::ARCH).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own").join("tracer");
        fs::create_dir(file.parent().unwrap()).unwrap();
        write_program(&file, program(processor).unwrap());
        let mut child = command
            .arg(&file)
            .args(["--unlink", "--pid", &pid.to_string()])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Tracer {
            input: child.stdin.take(),
            output: child.stdout.take().unwrap(),
            child,
            frames: Frames::default(),
            recording: Recording::default(),
            folder,
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The next thing that it says; nothing at its end.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let mut octets = [0; 65_536];
        loop {
            if let Some(frame) = self.frames.poll_frame().unwrap() {
                return Some(frame);
            }
            let read = self.output.read(&mut octets).unwrap();
            if read == 0 {
                return None;
            }
            self.frames.handle_input(&octets[..read]).unwrap();
        }
    }

    /// Until it follows.
    #[track_caller]
    pub(crate) fn arm(mut self) -> Tracer {
        while self.recording.armed().is_none() {
            let frame = self.next().expect("a tracer that follows");
            self.recording.take(frame).unwrap();
        }
        self
    }

    /// How it follows; of one that does.
    pub(crate) fn means(&self) -> &Armed {
        self.recording.armed().unwrap()
    }

    /// Tells it to end.
    pub(crate) fn ask_to_end(&mut self) {
        drop(self.input.take());
    }

    /// Waits for its end, and reads nothing meanwhile; how that came.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the tracer has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Has it end, and takes all that it has recorded.
    pub(crate) fn end(&mut self) {
        drop(self.input.take());
        while let Some(frame) = self.next() {
            self.recording.take(frame).unwrap();
        }
        assert!(self.child.wait().unwrap().success());
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What the name of its instance contains.
    pub(crate) fn mark(&self) -> String {
        format!("-{}-", self.pid().as_raw_nonzero())
    }

    /// Its watcher.
    pub(crate) fn watcher(&self) -> Pid {
        let pid = self.pid().as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let [only] = children.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("one child: {children}");
        };
        Pid::from_raw(only.parse().unwrap()).unwrap()
    }

    /// What is left in the folder that it was put into.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = kill_process(self.pid(), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// tracefs, as somebody sees it who has it mounted for himself.
pub(crate) struct View(Child);

impl View {
    pub(crate) fn new() -> View {
        let line =
            "mount -t tracefs nodev /sys/kernel/tracing && echo mounted && exec sleep 100000";
        let mut child = Command::new("unshare")
            .args(["--mount", "sh", "-c", line])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut said).unwrap();
        assert_eq!(said, "mounted\n");
        View(child)
    }

    fn folder(&self) -> PathBuf {
        format!("/proc/{}/root/sys/kernel/tracing", self.0.id()).into()
    }

    /// The one instance of ours whose name contains this, if there is one.
    pub(crate) fn instance(&self, mark: &str) -> Option<String> {
        let list = fs::read_dir(self.folder().join("instances")).unwrap();
        let names = list.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut ours = names.filter(|name| name.starts_with("sshoal-") && name.contains(mark));
        ours.next()
    }

    /// Whether an instance of that name has probes.
    pub(crate) fn has_probes(&self, instance: &str) -> bool {
        let probes = fs::read_to_string(self.folder().join("uprobe_events")).unwrap();
        probes.contains(&format!(":{}/", instance.replace('-', "_")))
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shell that runs a line once it is told to.
pub(crate) struct Shell {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Shell {
    pub(crate) fn new(line: &str) -> Shell {
        let mut child = Command::new("/bin/sh")
            .args(["-c", &format!("echo here; read go; {line}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The kernel tells of its own start behind our being told of it: a tracer that is there by then would see that.
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        output.read_line(&mut said).unwrap();
        assert_eq!(said, "here\n");
        Shell { child, output }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it run.
    pub(crate) fn tell(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }

    /// Ends all that it has started.
    pub(crate) fn end_all(&mut self) {
        let pid = self.pid();
        let mut below = vec![pid];
        let mut place = 0;
        while let Some(pid) = below.get(place).copied() {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let children = children.unwrap_or_default();
            below.extend(
                children
                    .split_whitespace()
                    .map(|pid| pid.parse::<u32>().unwrap()),
            );
            place += 1;
        }
        for pid in below.into_iter().skip(1) {
            let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            // Its parent may have ended with it.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Runs it to its end, and gives what it says.
    pub(crate) fn go(&mut self) -> Vec<String> {
        self.tell();
        let said = self.output.by_ref().lines().map(Result::unwrap).collect();
        self.child.wait().unwrap();
        said
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process is: its place among all by birth, its parent's, and how many programs it ran.
type Seen = (usize, Option<usize>, usize);

fn seen(tree: &Tree) -> Vec<Seen> {
    let ids: Vec<_> = tree.processes().map(|(id, _)| id).collect();
    let place = |id| ids.iter().position(|known| *known == id);
    let seen = tree.processes().map(|(id, process)| {
        let parent = process.parent.and_then(place);
        (place(id).unwrap(), parent, process.programs.len())
    });
    seen.collect()
}

/// A tracer sees each of forty processes, half of which run no program, under its parent; none of these ends before its own end.
#[track_caller]
pub(crate) fn check_that_all_are_seen(start: impl FnOnce(u32) -> Tracer) {
    // Each writes its own number and its parent's, whether it runs a program or not.
    let own = "read -r pid comm state parent rest </proc/self/stat; echo $pid $parent";
    let mut shell = Shell::new(&format!(
        "i=0; while [ $i -lt 20 ]; do ( {own}; ( {own}; exec /bin/true ) & wait ); i=$((i + 1)); done"
    ));
    let mut tracer = start(shell.pid()).arm();
    let said = shell.go();
    tracer.end();
    let (followed, records) = tracer.recording.records().unwrap();
    assert_eq!(tracer.recording.lost, 0);
    let seen = seen(&Tree::of(followed, &records));
    // Numbers grow from birth to birth, but where they begin anew: that they rise tells that these have not.
    let told: Vec<(u32, u32)> = said
        .iter()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(pid, parent)| (pid.parse().unwrap(), parent.parse().unwrap()))
        .collect();
    assert_eq!(told.len(), 40);
    if !told.is_sorted() {
        return;
    }
    let mut order = vec![shell.pid()];
    order.extend(told.iter().map(|(pid, _)| *pid));
    let place = |pid| order.iter().position(|known| *known == pid).unwrap();
    let mut wanted: Vec<Seen> = vec![(0, None, 0)];
    for (number, (pid, parent)) in told.iter().enumerate() {
        wanted.push((place(*pid), Some(place(*parent)), number % 2));
    }
    assert_eq!(seen, wanted);
}

#[test]
fn every_descendant_is_there_forks_without_exec_too_and_each_under_its_parent() {
    if may_trace() {
        check_that_all_are_seen(Tracer::start);
    }
}

#[test]
fn the_time_of_each_thread_is_known_from_its_birth_to_its_end() {
    if !may_trace() {
        return;
    }
    let mut shell = Shell::new("sleep 0.05; /bin/true");
    let mut tracer = Tracer::start(shell.pid()).arm();
    shell.go();
    tracer.end();
    let (followed, records) = tracer.recording.records().unwrap();
    let tree = Tree::of(followed, &records);
    let (_, sleep) = tree.processes().nth(1).unwrap();
    assert_eq!(sleep.title(), "sleep");
    let thread = tree
        .threads_of(tree.processes().nth(1).unwrap().0)
        .next()
        .unwrap();
    let segments = &tree.thread(thread).segments;
    assert_eq!(segments[0].from, sleep.born);
    for pair in segments.windows(2) {
        assert_eq!(pair[0].to, pair[1].from, "{segments:#?}");
    }
    assert!(segments.last().unwrap().to >= sleep.ended.unwrap());
    // On a busy host it may wait longer for a processor, or for its file.
    let is_by_timer = |segment: &Segment| {
        let State::Blocked {
            deeply: false,
            waker: Some(waker),
        } = segment.state
        else {
            return false;
        };
        waker.by == Waking::Interrupt
    };
    assert!(segments.iter().any(is_by_timer), "{segments:#?}");
}

#[test]
fn it_answers_with_its_clock_and_unlinks_itself_before() {
    if !may_trace() {
        return;
    }
    let shell = Shell::new("true");
    let mut tracer = Tracer::start(shell.pid()).arm();
    assert!(tracer.files().is_empty(), "{:?}", tracer.files());
    let armed = tracer.recording.armed().unwrap().time;
    let mut last = armed;
    for _ in 0..3 {
        tracer.input.as_mut().unwrap().write_all(b"\n").unwrap();
        let Some(Frame::Clock(now)) = tracer.next() else {
            panic!("a clock");
        };
        assert!(now > last);
        last = now;
    }
}

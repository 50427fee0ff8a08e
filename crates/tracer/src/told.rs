//! What is told of processes where the kernel's own tracing is not to be had: births, programs and ends, a line each, of the process
//! that is followed and of all that comes of it.
//!
//! ```text
//! fork TIME PARENT CHILD NAME
//! exec TIME PID <tab> FILE <tab> ARGUMENT <tab> ARGUMENT ...
//! ports TIME PID OURS THEIRS ADDRESS   of the connection, from SSH_CONNECTION in its environment; the address is the client's
//! exit TIME PID
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::image::Image;
use crate::process;

/// What is kept until it is sent, octets.
const MAX_KEPT: usize = 8 * 1024 * 1024;
/// Processes that are followed at a time.
const MAX_FAMILY: usize = 16_384;
/// How long what has happened before the end is taken, at the most.
const FOR_THE_REST: Duration = Duration::from_secs(1);
/// Arguments of a program that are told, and octets of each.
const MAX_ARGUMENTS: usize = 8;
const MAX_ARGUMENT: usize = 256;

/// A login that is being followed, by whatever means.
pub(crate) trait Follower {
    /// Takes what has been recorded since out of the kernel's memory.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn take(&mut self) -> std::io::Result<()>;

    /// No more could be kept.
    fn is_full(&self) -> bool;

    /// Whether anything lives of what the followed process has started.
    fn follows_others(&self) -> bool;
}

/// What was told so far.
pub(crate) struct Told {
    pub(crate) lines: String,
    /// Events that nobody could take.
    pub(crate) lost: u64,
    is_full: bool,
    followed: u32,
    /// Who lives of those that are followed, and what each runs as far as that was seen.
    family: BTreeMap<u32, Option<Image>>,
}

impl Told {
    fn new(followed: u32) -> Told {
        Told {
            lines: String::new(),
            lost: 0,
            is_full: false,
            followed,
            family: BTreeMap::from([(followed, Image::of(followed))]),
        }
    }

    /// Whether a process is followed.
    pub(crate) fn has(&self, pid: u32) -> bool {
        self.family.contains_key(&pid)
    }

    /// Who is followed.
    pub(crate) fn living(&self) -> Vec<u32> {
        self.family.keys().copied().collect()
    }

    /// A process is born, if it is a child of the family's.
    pub(crate) fn fork(&mut self, at: u64, parent: u32, child: u32) {
        let Some(image) = self.family.get(&parent).cloned() else {
            // A number that somebody else has now.
            if child != self.followed {
                self.family.remove(&child);
            }
            return;
        };
        if self.family.len() >= MAX_FAMILY {
            self.lost += 1;
            return;
        }
        let name = image
            .as_ref()
            .map_or("", |image| image.name.as_str())
            .to_owned();
        self.family.insert(child, image);
        self.say(&format!("fork {at} {parent} {child} {}", plain(&name)));
    }

    /// A process runs a program; which one, if that can be seen.
    pub(crate) fn exec(&mut self, at: u64, pid: u32) {
        if !self.has(pid) {
            return;
        }
        let image = Image::of(pid);
        self.tell_program(at, pid, image.as_ref());
        self.family.insert(pid, image);
    }

    /// Looks whether a process runs something else than when it was looked at before.
    pub(crate) fn look(&mut self, at: u64, pid: u32) {
        let Some(before) = self.family.get(&pid) else {
            return;
        };
        let Some(now) = Image::of(pid) else {
            return;
        };
        let is_other = before
            .as_ref()
            .is_none_or(|before| now.is_another_program_than(before));
        if is_other {
            self.tell_program(at, pid, Some(&now));
            self.family.insert(pid, Some(now));
        }
    }

    /// A process ends.
    pub(crate) fn exit(&mut self, at: u64, pid: u32) {
        if pid != self.followed && self.family.remove(&pid).is_some() {
            self.say(&format!("exit {at} {pid}"));
        }
    }

    fn tell_program(&mut self, at: u64, pid: u32, image: Option<&Image>) {
        let mut line = format!("exec {at} {pid}");
        // It has ended already, or runs the next one.
        let file = image.map_or_else(|| "?".to_owned(), Image::file);
        line.push('\t');
        line.push_str(&plain(&file));
        let arguments = image.map_or(&[][..], |image| &image.arguments);
        for argument in arguments.iter().take(MAX_ARGUMENTS) {
            line.push('\t');
            line.push_str(&plain(argument));
        }
        self.say(&line);
        if let Some((ours, theirs, address)) = process::connection(pid) {
            self.say(&format!("ports {at} {pid} {ours} {theirs} {address}"));
        }
    }

    fn say(&mut self, line: &str) {
        if self.lines.len() + line.len() >= MAX_KEPT {
            self.is_full = true;
            return;
        }
        self.lines.push_str(line);
        self.lines.push('\n');
    }
}

/// A text in which nothing parts it from its neighbours.
fn plain(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut octets = 0;
    let fits = |c: &char| {
        octets += c.len_utf8();
        octets <= MAX_ARGUMENT
    };
    text.chars().take_while(fits).map(plain).collect()
}

/// A thread that follows.
pub(crate) struct Watching {
    told: Arc<Mutex<Told>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watching {
    /// Follows a process by doing `step` again and again; none of them takes long. It tells whether there may be more that has
    /// happened already: that is taken at the end, too.
    ///
    /// # Errors
    ///
    /// There can be no further thread.
    pub(crate) fn start(
        followed: u32,
        mut step: impl FnMut(&Mutex<Told>) -> bool + Send + 'static,
    ) -> std::io::Result<Watching> {
        let told = Arc::new(Mutex::new(Told::new(followed)));
        let is_over = Arc::new(AtomicBool::new(false));
        let (own, ends) = (told.clone(), is_over.clone());
        let thread = thread::Builder::new().spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                step(&own);
            }
            // Whoever lives at the end is seen in any case. A busy host always has something more to tell, of others.
            let ended = Instant::now();
            while step(&own) && ended.elapsed() < FOR_THE_REST {}
        })?;
        Ok(Watching {
            told,
            is_over,
            thread: Some(thread),
        })
    }

    /// Ends it; what was told, and how many events were lost.
    pub(crate) fn end(mut self) -> (String, u64) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that has panicked has told what it could.
            let _ = thread.join();
        }
        let mut told = locked(&self.told);
        (std::mem::take(&mut told.lines), told.lost)
    }
}

impl Follower for Watching {
    fn take(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn is_full(&self) -> bool {
        locked(&self.told).is_full
    }

    fn follows_others(&self) -> bool {
        locked(&self.told).family.len() > 1
    }
}

/// What was told, for one who reads or writes it.
pub(crate) fn locked(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_the_family_is_told_of_and_a_number_that_is_used_again_is_a_stranger() {
        // Numbers that no process has: nothing is read of them.
        let mut told = Told::new(u32::MAX);
        told.fork(1, u32::MAX, u32::MAX - 1);
        told.fork(2, 7, u32::MAX - 2);
        told.fork(3, u32::MAX - 1, u32::MAX - 3);
        told.exec(4, u32::MAX - 3);
        told.exec(4, u32::MAX - 2);
        told.exit(5, u32::MAX - 3);
        told.exit(6, u32::MAX - 3);
        told.fork(7, 7, u32::MAX - 1);
        told.exec(8, u32::MAX - 1);
        let numbers = [u32::MAX, u32::MAX - 1, u32::MAX - 3];
        let [first, second, third] = numbers;
        assert_eq!(
            told.lines,
            format!(
                "fork 1 {first} {second} \nfork 3 {second} {third} \nexec 4 {third}\t?\nexit 5 {third}\n"
            )
        );
        assert_eq!(told.living(), [first]);
    }

    #[test]
    fn what_has_happened_before_the_end_is_told() {
        let mut left = 20;
        let step = move |told: &Mutex<Told>| {
            // So that the end comes before all is taken.
            thread::sleep(Duration::from_millis(2));
            let is_more = left > 0;
            if is_more {
                left -= 1;
                locked(told).say("more");
            }
            is_more
        };
        let (lines, _) = Watching::start(u32::MAX, step).unwrap().end();
        assert_eq!(lines.lines().count(), 20);
    }

    #[test]
    fn nothing_in_a_text_parts_it_and_it_has_an_end() {
        assert_eq!(plain("a\tb\nc\0d"), "a b c d");
        assert_eq!(plain(&"é".repeat(1000)).len(), MAX_ARGUMENT);
    }
}

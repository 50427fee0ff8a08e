//! Somebody between a run and the process that keeps connections: hears what is asked, and may answer as a process would that
//! has numbered its hosts otherwise.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::io::ioctl_fionread;
use serde_json::Value;
use tempfile::TempDir;

use super::warm::Warm;

/// Listens at `sshoal/control` of a folder of its own for as long as the test's process lives.
pub(crate) struct Between {
    folder: TempDir,
    heard: Arc<Heard>,
}

/// What it has heard, and how it goes on.
struct Heard {
    keeper: PathBuf,
    tell: fn(&mut Vec<Value>),
    /// Whether nothing is read of what is said to the keeper's threads.
    is_deaf: bool,
    questions: Mutex<Vec<Value>>,
    /// Who would say it.
    unheard: Mutex<Vec<UnixStream>>,
}

impl Between {
    /// Passes everything on; `tell` may change the answer to where hosts are kept.
    pub(crate) fn new(warm: &Warm, tell: fn(&mut Vec<Value>)) -> Between {
        Between::begin(warm, tell, false)
    }

    /// The keeper's threads seem to be there, but none of them does anything.
    pub(crate) fn deaf(warm: &Warm) -> Between {
        Between::begin(warm, |_| (), true)
    }

    fn begin(warm: &Warm, tell: fn(&mut Vec<Value>), is_deaf: bool) -> Between {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("sshoal");
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, Permissions::from_mode(0o700)).unwrap();
        let listener = UnixListener::bind(own.join("control")).unwrap();
        let heard = Arc::new(Heard {
            keeper: warm.shoal.dir.path().join("run/sshoal/control"),
            tell,
            is_deaf,
            questions: Mutex::default(),
            unheard: Mutex::default(),
        });
        let hears = heard.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let heard = hears.clone();
                thread::spawn(move || between(client.unwrap(), &heard));
            }
        });
        Between { folder, heard }
    }

    /// What XDG_RUNTIME_DIR is for whoever is to be heard.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What hosts' connections are, in the words of the run that asked where they are kept.
    pub(crate) fn identities(&self) -> Vec<String> {
        let questions = self.heard.questions.lock().unwrap();
        let asked = questions.iter().find(|question| question["ask"] == "find");
        let identities = asked.unwrap()["identities"].as_array().unwrap();
        let identities = identities.iter().map(Value::as_str);
        identities.map(|one| one.unwrap().to_owned()).collect()
    }

    /// Octets that were said to a deaf keeper's threads, as far as their sockets take them.
    pub(crate) fn unheard(&self) -> u64 {
        let unheard = self.heard.unheard.lock().unwrap();
        let octets = unheard.iter().map(|stream| ioctl_fionread(stream).unwrap());
        octets.sum()
    }

    /// Those threads are gone.
    pub(crate) fn hang_up(&self) {
        self.heard.unheard.lock().unwrap().clear();
    }
}

/// One question and its answer; then whatever comes, both ways, until an end has closed.
fn between(client: UnixStream, heard: &Heard) -> Option<()> {
    let mut keeper = UnixStream::connect(&heard.keeper).ok()?;
    let mut from_client = BufReader::new(client.try_clone().ok()?);
    let mut from_keeper = BufReader::new(keeper.try_clone().ok()?);
    let mut line = String::new();
    from_client.read_line(&mut line).ok()?;
    keeper.write_all(line.as_bytes()).ok()?;
    let question: Value = serde_json::from_str(&line).ok()?;
    let mut answer = String::new();
    from_keeper.read_line(&mut answer).ok()?;
    if question["ask"] == "find" {
        let mut found: Vec<Value> = serde_json::from_str(&answer).ok()?;
        (heard.tell)(&mut found);
        answer = format!("{}\n", Value::from(found));
    }
    let mut to_client = client;
    to_client.write_all(answer.as_bytes()).ok()?;
    let is_unheard = heard.is_deaf && question["ask"] == "board";
    heard.questions.lock().ok()?.push(question);
    if is_unheard {
        heard.unheard.lock().ok()?.push(to_client);
        return Some(());
    }
    let there = thread::spawn(move || pass(&mut from_client, &mut keeper));
    pass(&mut from_keeper, &mut to_client);
    there.join().ok()
}

fn pass(from: &mut BufReader<UnixStream>, to: &mut UnixStream) {
    // Whichever end has gone, the other one hears that nothing more comes.
    let _ = io::copy(from, to);
    let _ = to.shutdown(Shutdown::Write);
}

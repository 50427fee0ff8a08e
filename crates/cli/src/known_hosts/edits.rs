//! `sshoal known-hosts forget`, `hash` and `import`: each changes one file as a whole, or shows what it would change.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sshoal_known_hosts::edit::{self, Imported, KeptPlain};
use sshoal_net::KnownHostsFile;

use super::FOUND;
use super::args::{EditArgs, ForgetArgs, HashArgs, ImportArgs};
use super::files::{self, print_lines, say};

pub(super) fn forget(args: &ForgetArgs) -> Result<u8, Box<dyn Error>> {
    let hosts = files::host_names(&args.hosts);
    let file = File::named(&args.edit, false)?;
    let (forgotten, old) = file.edit(true, |old| {
        let forgotten = edit::forget(old, &hosts);
        (forgotten.bytes.clone(), forgotten)
    })?;
    let path = &file.path;
    for line in &forgotten.marked {
        say(&format!(
            "{path}:{line}: a @cert-authority or @revoked line for such a host stays"
        ));
    }
    say_broken(path, &forgotten.broken);
    let lines: Vec<String> = forgotten
        .removed
        .iter()
        .map(|removed| {
            let others = if removed.others {
                " (perhaps more hosts than named)"
            } else {
                ""
            };
            format!(
                "{}: {path}:{}: {}{others}",
                file.verb("removed"),
                removed.line,
                removed.hosts
            )
        })
        .collect();
    if lines.is_empty() {
        say(&format!(
            "no line of {path} is for {}",
            args.hosts.join(", ")
        ));
    }
    let status = print_lines(&lines)?;
    if let Some(old) = old {
        say(&format!("the file as it was is {}", old.display()));
    }
    Ok(match lines.is_empty() {
        true => status.max(FOUND),
        false => status,
    })
}

pub(super) fn hash(args: &HashArgs) -> Result<u8, Box<dyn Error>> {
    let file = File::named(&args.edit, false)?;
    let (hashed, old) = file.edit(true, |old| {
        let hashed = edit::hash(old, &mut files::salt);
        (hashed.bytes.clone(), hashed)
    })?;
    let path = &file.path;
    for kept in &hashed.kept {
        let (line, why) = match kept {
            KeptPlain::Wildcard(line) => (line, "has wildcards or negations"),
            KeptPlain::Marked(line) => (line, "has a marker"),
        };
        say(&format!(
            "{path}:{line}: the line {why}, and its names stay readable"
        ));
    }
    say_broken(path, &hashed.broken);
    if let Some(old) = old {
        let old = old.display();
        say(&format!(
            "the file as it was, with readable names, is {old}; delete it once all is well"
        ));
    }
    print_lines(&[format!(
        "{} in {path}: {}",
        file.verb("hashed"),
        hashed.lines
    )])
}

pub(super) fn import(args: &ImportArgs) -> Result<u8, Box<dyn Error>> {
    let other = files::read(&args.from)?;
    let from = args.from.display();
    let file = File::named(&args.edit, true)?;
    let (imported, _) = file.edit(false, |old| {
        let imported = edit::import(old, &other);
        (imported.bytes.clone(), imported)
    })?;
    let Imported {
        added,
        duplicates,
        conflicts,
        problems,
        ..
    } = &imported;
    for problem in problems {
        let kept = if problem.kept {
            "; it is taken over as it is"
        } else {
            ""
        };
        say(&format!("{from}:{}: {}{kept}", problem.line, problem.why));
    }
    for conflict in conflicts {
        say(&format!(
            "{from}:{}: left out: {} has another key of this type, or this key is revoked for it",
            conflict.line, conflict.name
        ));
    }
    let status = print_lines(&[format!(
        "{} to {}: {}; there already: {}; left out: {}",
        file.verb("added"),
        file.path,
        added.len(),
        duplicates.len(),
        conflicts.len() + problems.iter().filter(|problem| !problem.kept).count()
    )])?;
    Ok(match conflicts.is_empty() && problems.is_empty() {
        true => status,
        false => status.max(FOUND),
    })
}

fn say_broken(path: &str, broken: &[usize]) {
    for line in broken {
        say(&format!(
            "{path}:{line}: the line is not understood, and stays"
        ));
    }
}

/// The file that is to be changed, or only looked at.
struct File {
    path: String,
    dry_run: bool,
    /// A missing one is an empty one.
    may_be_missing: bool,
}

impl File {
    fn named(args: &EditArgs, may_be_missing: bool) -> Result<File, Box<dyn Error>> {
        Ok(File {
            path: files::path(args.file.as_ref())?,
            dry_run: args.dry_run,
            may_be_missing,
        })
    }

    /// What came of it, and where the file as it was has been kept, if it has.
    fn edit<T>(
        &self,
        keep_old: bool,
        change: impl FnMut(&[u8]) -> (Vec<u8>, T),
    ) -> Result<(T, Option<PathBuf>), String> {
        let result = match self.dry_run {
            true => self.look(change).map(|outcome| (outcome, None)),
            false => self.change(keep_old, change),
        };
        result.map_err(|error| format!("{}: {error}", self.path))
    }

    fn look<T>(&self, mut change: impl FnMut(&[u8]) -> (Vec<u8>, T)) -> io::Result<T> {
        let old = match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.may_be_missing => {
                Vec::new()
            }
            result => result?,
        };
        Ok(change(&old).1)
    }

    fn change<T>(
        &self,
        keep_old: bool,
        change: impl FnMut(&[u8]) -> (Vec<u8>, T),
    ) -> io::Result<(T, Option<PathBuf>)> {
        let path = Path::new(&self.path);
        let file = match self.may_be_missing {
            true => KnownHostsFile::open_or_create(path)?,
            false => KnownHostsFile::open(path)?,
        };
        match keep_old {
            true => file.edit_and_keep_old(change),
            false => file.edit(change).map(|outcome| (outcome, None)),
        }
    }

    /// What has been done, or would be.
    fn verb(&self, done: &str) -> String {
        match self.dry_run {
            true => format!("would be {done}"),
            false => done.to_owned(),
        }
    }
}

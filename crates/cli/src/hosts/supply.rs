//! Gets what group sources need: files, directories, programs.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;

use sshoal_targets::{Need, Supply};

use super::program;

/// Programs that run at a time.
pub(super) const AT_ONCE: usize = 16;

/// Gets all of these, which do not depend on each other.
pub(super) fn supply_all(needs: Vec<Need>) -> Vec<(Need, Supply)> {
    let mut supplies = Vec::with_capacity(needs.len());
    for needs in needs.chunks(AT_ONCE) {
        let got: Vec<Supply> = match needs {
            [need] => vec![supply(need)],
            needs => thread::scope(|scope| {
                let running: Vec<_> = needs
                    .iter()
                    .map(|need| scope.spawn(|| supply(need)))
                    .collect();
                let crashed = |_| Supply::Failed("sshoal crashed over it".to_owned());
                running
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(crashed))
                    .collect()
            }),
        };
        supplies.extend(needs.iter().cloned().zip(got));
    }
    supplies
}

fn supply(need: &Need) -> Supply {
    match need {
        Need::File { path } => found(fs::read(path).map(Supply::Content)),
        Need::Directory { path, suffix } => found(paths(path, suffix).map(Supply::Paths)),
        Need::Program { command, directory } => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", command]);
            if let Some(directory) = directory {
                shell.current_dir(directory);
            }
            match program::output(&mut shell) {
                Ok(output) => Supply::Content(output),
                Err(why) => Supply::Failed(format!("the program {why}")),
            }
        }
        _ => Supply::Failed("it is of a kind that is not known here".to_owned()),
    }
}

fn found(result: io::Result<Supply>) -> Supply {
    let is_absent = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    };
    match result {
        Ok(supply) => supply,
        Err(error) if is_absent(&error) => Supply::Absent,
        Err(error) => Supply::Failed(error.to_string()),
    }
}

/// The files of a directory that end so. Names that are not UTF-8 cannot be named in groups.conf either.
fn paths(directory: &str, suffix: &str) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let Ok(name) = entry?.file_name().into_string() else {
            continue;
        };
        if name.ends_with(suffix) && !name.starts_with('.') {
            let path = Path::new(directory).join(name);
            paths.extend(path.to_str().map(str::to_owned));
        }
    }
    Ok(paths)
}

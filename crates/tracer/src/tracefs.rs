//! tracefs, and an instance of it that is ours alone: its own buffers, its own events, its own list of processes.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;
use crate::without::{INSTANCES, TRACEFS, Without};
use crate::{kernel, process};

/// Where it is mounted since Linux 4.1.
const USUAL: &str = "/sys/kernel/tracing";
/// Where it is where debugfs is.
const BY_DEBUGFS: &str = "/sys/kernel/debug/tracing";
/// What our instances' names begin with, and with another letter the groups of our probes.
const PREFIX: &str = "sshoal-";
/// No tracer lives longer, so that an instance that is older has none. Clock ticks: 100 a second, on every Linux of today.
const OLDEST_TICKS: u64 = 120 * 100;
/// A folder of an instance cannot go as long as a dying process has files of it open.
const REMOVING_TRIES: u32 = 250;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// tracefs, mounted somewhere.
pub(crate) struct Tracefs {
    folder: PathBuf,
}

/// An instance of ours. Goes, with the probes of its name, when this is dropped.
pub(crate) struct Instance {
    pub(crate) folder: PathBuf,
    root: PathBuf,
    /// Of the probes that are made for it.
    pub(crate) group: String,
}

impl Tracefs {
    /// Where it is; mounted for us alone if nobody has.
    ///
    /// # Errors
    ///
    /// There is none, or we may not.
    pub(crate) fn find(without: &Without) -> Result<Tracefs, Failure> {
        if !kernel::is_root() {
            return Err(Failure::new("not-root", "tracefs is root's alone"));
        }
        if without.has(TRACEFS) {
            return Err(Failure::new("no-tracefs", "it is not to be used"));
        }
        for folder in [USUAL, BY_DEBUGFS] {
            if Path::new(folder).join("events").is_dir() {
                return Tracefs::at(folder, without);
            }
        }
        let kinds = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !kinds.lines().any(|line| line.ends_with("\ttracefs")) {
            return Err(Failure::new("no-tracefs", "this kernel has no tracefs"));
        }
        let forbidden = |error: io::Error| {
            let words = format!("tracefs cannot be mounted here: {error}{}", confinement());
            Failure::new("not-permitted", words)
        };
        kernel::own_mounts().map_err(forbidden)?;
        kernel::mount_tracefs(c"/sys/kernel/tracing").map_err(forbidden)?;
        Tracefs::at(USUAL, without)
    }

    /// In the one buffer that is there in any case others may be tracing.
    fn at(folder: &str, without: &Without) -> Result<Tracefs, Failure> {
        let folder = PathBuf::from(folder);
        match folder.join("instances").is_dir() && !without.has(INSTANCES) {
            true => Ok(Tracefs { folder }),
            false => {
                let words = "this kernel's tracefs has no instances (Linux 3.10 has)";
                Err(Failure::new("too-old", words))
            }
        }
    }

    /// Takes away what tracers that are dead have left.
    pub(crate) fn reap(&self) {
        let instances = fs::read_dir(self.folder.join("instances"));
        for entry in instances.into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_orphan(&name) {
                Instance::at(&self.folder, &name).remove();
            }
        }
        // Of whom the instance has gone and the probes have stayed.
        for group in self.probe_groups() {
            if is_orphan(&group.replace('_', "-")) {
                remove_probes(&self.folder, &group);
            }
        }
    }

    fn probe_groups(&self) -> Vec<String> {
        let mut groups: Vec<String> = probes(&self.folder)
            .iter()
            .filter_map(|name| Some(name.split_once('/')?.0.to_owned()))
            .filter(|group| group.starts_with(&PREFIX.replace('-', "_")))
            .collect();
        groups.dedup();
        groups
    }

    /// A new instance, whose name tells who it belongs to.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub(crate) fn instance(&self) -> Result<Instance, Failure> {
        let pid = std::process::id();
        let space: String = process::namespace()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        let started = process::started(pid).unwrap_or_default();
        let instance = Instance::at(&self.folder, &format!("{PREFIX}{space}-{pid}-{started}"));
        fs::create_dir(&instance.folder).map_err(|error| {
            let words = format!("{}: {error}{}", instance.folder.display(), confinement());
            match error.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Failure::new("not-permitted", words)
                }
                _ => Failure::new("system", words),
            }
        })?;
        Ok(instance)
    }
}

/// Whether the process is dead after which an instance, or a group of probes, is named: `sshoal-NAMESPACE-PID-STARTED`.
fn is_orphan(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return false;
    };
    let mut parts = rest.split('-');
    let (Some(space), Some(pid), Some(begun)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (Ok(pid), Ok(begun)) = (pid.parse(), begun.parse::<u64>()) else {
        return false;
    };
    let now = process::started(std::process::id()).unwrap_or_default();
    let is_old = now.saturating_sub(begun) > OLDEST_TICKS;
    let is_of_our_space = process::namespace() == format!("pid:[{space}]");
    is_old || (is_of_our_space && process::started(pid) != Some(begun))
}

impl Instance {
    fn at(root: &Path, name: &str) -> Instance {
        Instance {
            folder: root.join("instances").join(name),
            root: root.to_owned(),
            group: name.replace('-', "_"),
        }
    }

    /// The instance that a tracer has made in its own folder of instances.
    pub(crate) fn of_folder(folder: &Path) -> Option<Instance> {
        let name = folder.file_name()?.to_str()?;
        let root = folder.parent()?.parent()?;
        Some(Instance::at(root, name))
    }

    /// Writes one of its files.
    ///
    /// # Errors
    ///
    /// With the file's name.
    pub(crate) fn set(&self, file: &str, value: &str) -> Result<(), Failure> {
        let path = self.folder.join(file);
        let written = OpenOptions::new().write(true).open(&path);
        let written = written.and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|error| Failure::system("cannot set", &path, &error))
    }

    /// Reads one of its files; nothing where there is none.
    pub(crate) fn text(&self, file: &str) -> String {
        let octets = fs::read(self.folder.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&octets).into_owned()
    }

    /// A file of all instances.
    pub(crate) fn text_of_all(&self, file: &str) -> String {
        let octets = fs::read(self.root.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&octets).into_owned()
    }

    /// Makes a probe in a program or library (uprobetracer.rst); whether that was possible.
    pub(crate) fn add_probe(&self, definition: &str) -> bool {
        let file = OpenOptions::new()
            .append(true)
            .open(self.root.join("uprobe_events"));
        file.is_ok_and(|mut file| file.write_all(definition.as_bytes()).is_ok())
    }

    /// Ends the trace and takes all away.
    pub(crate) fn remove(&self) {
        // Each of these may have been done already.
        let _ = self.set("tracing_on", "0");
        let _ = self.set("events/enable", "0");
        for _ in 0..REMOVING_TRIES {
            remove_probes(&self.root, &self.group);
            match fs::remove_dir(&self.folder) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    thread::sleep(BETWEEN_TRIES);
                }
                _ => break,
            }
        }
        // One that was enabled can go only once its instance has.
        remove_probes(&self.root, &self.group);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.remove();
    }
}

/// All probes in programs, as "GROUP/NAME".
fn probes(root: &Path) -> Vec<String> {
    let lines = fs::read_to_string(root.join("uprobe_events")).unwrap_or_default();
    let name = |line: &str| Some(line.split_once(':')?.1.split(' ').next()?.to_owned());
    lines.lines().filter_map(name).collect()
}

fn remove_probes(root: &Path, group: &str) {
    let ours = probes(root);
    let ours = ours
        .iter()
        .filter(|name| name.split('/').next() == Some(group));
    for name in ours {
        let file = OpenOptions::new()
            .append(true)
            .open(root.join("uprobe_events"));
        // Somebody else may have been faster.
        let _ = file.and_then(|mut file| file.write_all(format!("-:{name}\n").as_bytes()));
    }
}

/// Why root may not do what root may, if that can be seen.
fn confinement() -> String {
    let is_container = ["/.dockerenv", "/run/.containerenv"]
        .iter()
        .any(|mark| Path::new(mark).exists())
        || fs::read("/proc/1/environ").is_ok_and(|variables| {
            variables
                .split(|octet| *octet == 0)
                .any(|variable| variable.starts_with(b"container="))
        });
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let words: Vec<&str> = map.split_whitespace().collect();
    let is_user_namespace = !words.is_empty() && words != ["0", "0", "4294967295"];
    match (is_container, is_user_namespace) {
        (true, _) => {
            "; this is a container, whose root may not trace: trace on its host".to_owned()
        }
        (false, true) => "; this is a user namespace, whose root may not trace".to_owned(),
        (false, false) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_instance_is_an_orphan_when_its_tracer_has_gone_or_is_too_old_to_live() {
        let space: String = process::namespace()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        let pid = std::process::id();
        let begun = process::started(pid).unwrap();
        assert!(!is_orphan(&format!("sshoal-{space}-{pid}-{begun}")));
        // Its number is another's now.
        let later = begun + 1;
        assert!(is_orphan(&format!("sshoal-{space}-{pid}-{later}")));
        // Of processes with other numbers only the age tells.
        assert!(!is_orphan(&format!("sshoal-1-{pid}-{later}")));
        let old = begun.saturating_sub(OLDEST_TICKS + 1);
        assert_eq!(
            is_orphan(&format!("sshoal-1-{pid}-{old}")),
            begun > OLDEST_TICKS
        );
        for other in ["trace-1-2-3", "sshoal-x", "sshoal-1-2", "sshoal-1-two-3"] {
            assert!(!is_orphan(other), "{other}");
        }
    }
}

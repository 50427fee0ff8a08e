//! A control group with a limit of CPU time (cgroups(7)), of either version.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The kernel's usual period: so often the quota is handed out anew.
const PERIOD_MICROSECONDS: u64 = 100_000;

/// A control group. Whoever runs the host makes and removes its folder ([`super::keeper`]).
#[derive(Debug)]
pub(super) struct Quota {
    folder: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Quota {
    /// The group that is going to have this name.
    ///
    /// # Errors
    /// Why this machine has no place for one.
    pub(super) fn named(name: &str) -> Result<Quota, String> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let (root, version) = hierarchies(&mounts)
            .into_iter()
            .find(|(root, version)| *version == Version::One || hands_cpu_down(root))
            .ok_or("no control groups for CPU time are mounted or handed down here")?;
        Ok(Quota {
            folder: root.join(name),
            version,
        })
    }

    /// Whether such a group can be made, tried.
    pub(super) fn is_possible() -> Result<(), String> {
        let trial = Quota::named(&format!("sshoal-slow-trial-{}", std::process::id()))?;
        let failed = |error| format!("{}: {error}", trial.folder.display());
        fs::create_dir(&trial.folder).map_err(failed)?;
        let has_limit = trial.folder.join(trial.limit_file()).exists();
        fs::remove_dir(&trial.folder).map_err(failed)?;
        match has_limit {
            true => Ok(()),
            false => Err("control groups limit no CPU time here".to_owned()),
        }
    }

    fn limit_file(&self) -> &'static str {
        match self.version {
            Version::One => "cpu.cfs_quota_us",
            Version::Two => "cpu.max",
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Allows `percent` of one processor from now on.
    pub(super) fn limit(&self, percent: u64) -> io::Result<()> {
        let quota = PERIOD_MICROSECONDS / 100 * percent;
        if self.version == Version::One {
            let period = self.folder.join("cpu.cfs_period_us");
            fs::write(period, PERIOD_MICROSECONDS.to_string())?;
        }
        let limit = match self.version {
            Version::One => quota.to_string(),
            Version::Two => format!("{quota} {PERIOD_MICROSECONDS}"),
        };
        fs::write(self.folder.join(self.limit_file()), limit)
    }

    pub(super) fn lift(&self) -> io::Result<()> {
        let none = match self.version {
            Version::One => "-1",
            Version::Two => "max",
        };
        fs::write(self.folder.join(self.limit_file()), none)
    }

    /// How many periods the quota was used up in.
    pub(super) fn throttled(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join("cpu.stat")).unwrap_or_default();
        let number = text
            .lines()
            .find_map(|line| line.strip_prefix("nr_throttled "));
        number.and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// Where control groups for CPU time may be, by the lines of proc_pid_mounts(5).
fn hierarchies(mounts: &str) -> Vec<(PathBuf, Version)> {
    let of = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let root = PathBuf::from(words.next()?);
        let kind = words.next()?;
        let has_cpu = words.next()?.split(',').any(|option| option == "cpu");
        match kind {
            "cgroup" if has_cpu => Some((root, Version::One)),
            "cgroup2" => Some((root, Version::Two)),
            _ => None,
        }
    };
    mounts.lines().filter_map(of).collect()
}

/// In version 2 a group's children have what it hands down; that is left as it is.
fn hands_cpu_down(root: &Path) -> bool {
    let text = fs::read_to_string(root.join("cgroup.subtree_control")).unwrap_or_default();
    text.split_whitespace()
        .any(|controller| controller == "cpu")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions_are_found() {
        let mounts = "proc /proc proc rw 0 0\n\
            cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
            cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nsdelegate 0 0\n";
        assert_eq!(
            hierarchies(mounts),
            [
                (PathBuf::from("/sys/fs/cgroup/cpu,cpuacct"), Version::One),
                (PathBuf::from("/sys/fs/cgroup/unified"), Version::Two),
            ]
        );
    }
}

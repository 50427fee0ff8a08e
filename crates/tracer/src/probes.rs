//! Probes on what a login calls: the modules that PAM is told to run for sshd, and the functions of the C library that ask the
//! name service. Each function has one where it begins and one where it returns.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::tracefs::Instance;
use crate::{elf, process};

/// Files of pam.d that are read, each up to so many octets.
const MAX_FILES: usize = 32;
const MAX_OCTETS: usize = 256 * 1024;
/// Functions that are probed.
const MAX_FUNCTIONS: usize = 256;
/// Where PAM's modules are, below a library folder.
const LIBRARIES: [&str; 4] = ["lib", "lib64", "usr/lib", "usr/lib64"];
/// Debian's folder for this processor.
const MULTIARCH: &str = concat_arch();
const MODULE_FUNCTIONS: [&str; 5] = [
    "pam_sm_authenticate",
    "pam_sm_setcred",
    "pam_sm_acct_mgmt",
    "pam_sm_open_session",
    "pam_sm_close_session",
];
/// Of the C library. getpwnam and the like call these inside.
const RESOLVER_FUNCTIONS: [&str; 8] = [
    "getaddrinfo",
    "getnameinfo",
    "gethostbyname_r",
    "gethostbyaddr_r",
    "getpwnam_r",
    "getpwuid_r",
    "getgrouplist",
    "initgroups",
];

const fn concat_arch() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "aarch64-linux-gnu"
    } else {
        "x86_64-linux-gnu"
    }
}

/// Makes the probes for what `listener` starts, and enables them. Each line says what one is: "NUMBER MODULE FUNCTION"; those
/// of number N are the events `bN` and `rN` of the instance's group.
pub(crate) fn add(instance: &Instance, listener: u32) -> Vec<String> {
    let root = process::root_of(listener);
    let mut functions = Vec::new();
    for module in modules(&root) {
        let Some(path) = find(&root, &module) else {
            continue;
        };
        let name = module.rsplit('/').next().unwrap_or_default().to_owned();
        functions.extend(of(&path, &name, &MODULE_FUNCTIONS));
    }
    if let Some(path) = process::mapped(listener, "libc.so.6") {
        functions.extend(of(&path, "libc", &RESOLVER_FUNCTIONS));
    }
    functions.truncate(MAX_FUNCTIONS);
    let mut lines = Vec::new();
    for (number, (module, function, path, offset)) in functions.into_iter().enumerate() {
        let group = &instance.group;
        let place = format!("{}:{offset:#x}", path.display());
        let is_made = instance.add_probe(&format!("p:{group}/b{number} {place}\n"))
            && instance.add_probe(&format!("r:{group}/r{number} {place}\n"));
        if is_made {
            lines.push(format!("{number} {module} {function}"));
        }
    }
    if !lines.is_empty() {
        // Where that fails there are no records of them, and the login is followed nevertheless.
        let _ = instance.set(&format!("events/{}/enable", instance.group), "1");
    }
    lines
}

type Function = (String, String, PathBuf, u64);

fn of(path: &Path, module: &str, wanted: &[&str]) -> Vec<Function> {
    let found = elf::functions(path, |name| wanted.contains(&name)).unwrap_or_default();
    let function = |(name, offset)| (module.to_owned(), name, path.to_owned(), offset);
    found.into_iter().map(function).collect()
}

/// The modules that pam.d/sshd names, and what it includes; as they are written there.
fn modules(root: &Path) -> BTreeSet<String> {
    let mut waiting = vec!["sshd".to_owned()];
    let mut seen = BTreeSet::new();
    let mut modules = BTreeSet::new();
    while let Some(service) = waiting.pop() {
        if seen.len() >= MAX_FILES || !seen.insert(service.clone()) {
            continue;
        }
        let text = fs::read(root.join("etc/pam.d").join(&service)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[..text.len().min(MAX_OCTETS)]).into_owned();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            modules.extend(
                words
                    .iter()
                    .filter(|word| word.ends_with(".so"))
                    .map(|word| (*word).to_owned()),
            );
            let included = words
                .windows(2)
                .find(|pair| matches!(pair[0], "@include" | "include" | "substack"));
            if let Some(pair) = included.filter(|pair| !pair[1].contains('/')) {
                waiting.push(pair[1].to_owned());
            }
        }
    }
    modules
}

/// Where a module is that PAM is told of.
fn find(root: &Path, module: &str) -> Option<PathBuf> {
    if let Some(absolute) = module.strip_prefix('/') {
        let path = root.join(absolute);
        return path.is_file().then_some(path);
    }
    let folders = LIBRARIES.iter().flat_map(|library| {
        let library = root.join(library);
        [library.join(MULTIARCH), library].map(|folder| folder.join("security"))
    });
    folders
        .map(|folder| folder.join(module))
        .find(|path| path.is_file())
}

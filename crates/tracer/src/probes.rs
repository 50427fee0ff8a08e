//! Probes on what a login calls: the modules that PAM is told to run for sshd, and the functions of the C library that ask the
//! name service. Each function has one where it begins and one where it returns.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::tracefs::Instance;
use crate::without::{FUNCTIONS, NAME_SERVICE, NAMES, UPROBES, Without};
use crate::{elf, process};

/// Files of pam.d that are read, each up to so many octets.
const MAX_FILES: usize = 32;
const MAX_OCTETS: u64 = 256 * 1024;
/// Functions that are probed.
const MAX_FUNCTIONS: usize = 256;
/// Where PAM's modules are, below a library folder.
const LIBRARIES: [&str; 4] = ["lib", "lib64", "usr/lib", "usr/lib64"];
/// Debian's folder for this processor.
const MULTIARCH: &str = concat_arch();
/// The stacks of PAM, as its lines begin, and what sshd calls of their modules. Each probe takes the kernel a while to make and to
/// take away: what no stack has a module for is not probed.
const STACKS: [(&str, &[&str]); 3] = [
    ("auth", &["pam_sm_authenticate", "pam_sm_setcred"]),
    ("account", &["pam_sm_acct_mgmt"]),
    ("session", &["pam_sm_open_session", "pam_sm_close_session"]),
];
/// What the C library is called among modules.
const LIBRARY: &str = "libc";
/// Of it: what sshd asks the name service by.
const RESOLVER_FUNCTIONS: [&str; 7] = [
    "getaddrinfo",
    "getnameinfo",
    "gethostbyname_r",
    "gethostbyaddr_r",
    "getpwnam_r",
    "getgrouplist",
    "initgroups",
];
/// Whose first argument is no name.
const ASK_BY_NUMBER: [&str; 2] = ["getnameinfo", "gethostbyaddr_r"];
/// What programs open files by, and which argument is the path. Not what the C library opens its own files by, those of the locale
/// foremost (`__open_nocancel`): they are many, and a probe costs microseconds.
const OPENING_FUNCTIONS: [(&str, usize); 4] =
    [("open", 0), ("open64", 0), ("openat", 1), ("openat64", 1)];
/// What runs a program, in the end.
const RUNNING_FUNCTION: &str = "execve";
/// Arguments of a program that are told.
const ARGUMENTS: usize = 8;
/// The registers of the first two arguments of a function.
const REGISTERS: [&str; 2] = registers();

const fn concat_arch() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "aarch64-linux-gnu"
    } else {
        "x86_64-linux-gnu"
    }
}

const fn registers() -> [&'static str; 2] {
    if cfg!(target_arch = "aarch64") {
        ["%x0", "%x1"]
    } else {
        ["%di", "%si"]
    }
}

/// The probes that there are.
#[derive(Default)]
pub(crate) struct Probes {
    /// Each line says what one is: "NUMBER MODULE FUNCTION"; those of number N are the events `bN` and `rN` of the instance's group.
    pub(crate) lines: Vec<String>,
    /// What is not told for lack of others.
    pub(crate) lacks: Vec<&'static str>,
}

/// Makes the probes for what `listener` starts, and enables them.
pub(crate) fn add(instance: &Instance, listener: u32, without: &Without) -> Probes {
    let mut probes = Probes::default();
    if !without.has(UPROBES) && !without.has(FUNCTIONS) {
        probes.lines = time_functions(instance, listener, without);
    }
    let is_of_library = |line: &String| line.split(' ').nth(1) == Some(LIBRARY);
    if probes.lines.is_empty() {
        probes.lacks.push(FUNCTIONS);
    } else if !probes.lines.iter().any(is_of_library) {
        probes.lacks.push(NAME_SERVICE);
    }
    if without.has(UPROBES) || without.has(NAMES) || !tell_names(instance, listener) {
        probes.lacks.push(NAMES);
    }
    // Where that fails there are no records of them, and the login is followed nevertheless.
    let enabled = instance.set(&format!("events/{}/enable", instance.group), "1");
    if enabled.is_err() {
        probes.lines.clear();
        probes.lacks = vec![FUNCTIONS, NAMES];
    }
    probes
}

/// The paths of files that are opened, and the arguments of programs, as the C library is told them: events `oN` and `x0`.
/// Whether that was possible.
fn tell_names(instance: &Instance, listener: u32) -> bool {
    let Some(library) = process::c_library(listener) else {
        return false;
    };
    let [first, second] = REGISTERS;
    let group = &instance.group;
    let wanted = |name: &str| {
        name == RUNNING_FUNCTION || OPENING_FUNCTIONS.iter().any(|(it, _)| *it == name)
    };
    let found = elf::functions(&library, wanted).unwrap_or_default();
    let mut made = 0;
    for (name, offset) in found {
        let place = format!("{}:{offset:#x}", library.display());
        let opening = OPENING_FUNCTIONS.iter().find(|(it, _)| *it == name);
        made += u32::from(match opening {
            Some((_, argument)) => {
                let register = REGISTERS[*argument];
                instance.add_probe(&format!(
                    "p:{group}/o{made} {place} f=+0({register}):string\n"
                ))
            }
            None => {
                let words = (0..ARGUMENTS)
                    .map(|word| format!(" a{word}=+0(+{}({second})):string", word * 8));
                let words: String = words.collect();
                instance.add_probe(&format!(
                    "p:{group}/x{made} {place} f=+0({first}):string{words}\n"
                ))
            }
        });
    }
    made > 0
}

fn time_functions(instance: &Instance, listener: u32, without: &Without) -> Vec<String> {
    let root = process::root_of(listener);
    let mut functions = Vec::new();
    for (module, wanted) in modules(&root) {
        let Some(path) = find(&root, &module) else {
            continue;
        };
        let name = module.rsplit('/').next().unwrap_or_default().to_owned();
        let wanted: Vec<&str> = wanted.into_iter().collect();
        functions.extend(of(&path, &name, &wanted));
    }
    let library = process::c_library(listener).filter(|_| !without.has(NAME_SERVICE));
    if let Some(path) = library {
        functions.extend(of(&path, LIBRARY, &RESOLVER_FUNCTIONS));
    }
    functions.truncate(MAX_FUNCTIONS);
    let mut lines = Vec::new();
    for (number, (module, function, path, offset)) in functions.into_iter().enumerate() {
        let group = &instance.group;
        let place = format!("{}:{offset:#x}", path.display());
        let asks_for_a_name = module == LIBRARY && !ASK_BY_NUMBER.contains(&function.as_str());
        let asked = match asks_for_a_name {
            true => format!(" f=+0({}):string", REGISTERS[0]),
            false => String::new(),
        };
        let is_made = instance.add_probe(&format!("p:{group}/b{number} {place}{asked}\n"))
            && instance.add_probe(&format!("r:{group}/r{number} {place}\n"));
        if is_made {
            lines.push(format!("{number} {module} {function}"));
        }
    }
    lines
}

type Function = (String, String, PathBuf, u64);

fn of(path: &Path, module: &str, wanted: &[&str]) -> Vec<Function> {
    let found = elf::functions(path, |name| wanted.contains(&name)).unwrap_or_default();
    let function = |(name, offset)| (module.to_owned(), name, path.to_owned(), offset);
    found.into_iter().map(function).collect()
}

/// The modules that pam.d/sshd names, and what it includes; as they are written there, and with what is called of them.
fn modules(root: &Path) -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut waiting = vec!["sshd".to_owned()];
    let mut seen = BTreeSet::new();
    let mut modules: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    while let Some(service) = waiting.pop() {
        if seen.len() >= MAX_FILES || !seen.insert(service.clone()) {
            continue;
        }
        let text = begin_of(&root.join("etc/pam.d").join(&service)).unwrap_or_default();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            // "-session": no word if the module is not there (pam.conf(5)).
            let stack = words.first().map(|word| word.trim_start_matches('-'));
            let called = STACKS.iter().find(|(name, _)| Some(*name) == stack);
            let module = words.iter().find(|word| word.ends_with(".so"));
            if let (Some((_, functions)), Some(module)) = (called, module) {
                let wanted = modules.entry((*module).to_owned()).or_default();
                wanted.extend(functions.iter().copied());
            }
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

/// The first octets of a file, as text.
fn begin_of(path: &Path) -> io::Result<String> {
    // A pipe would keep us waiting.
    if !path.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut text = Vec::new();
    File::open(path)?.take(MAX_OCTETS).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    #[test]
    fn modules_are_those_of_sshd_s_stacks_and_of_what_these_include() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("etc/pam.d");
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write(
            "sshd",
            "@include common-account\n-session optional pam_systemd.so\nsession include more\n\
             # session required pam_off.so\nsession [success=ok default=bad] pam_exec.so /x.so\n",
        );
        // One that includes who includes it ends nevertheless.
        write(
            "common-account",
            "account required pam_unix.so\n@include sshd\n",
        );
        write(
            "more",
            "session required pam_unix.so\npassword required pam_old.so\n",
        );
        let found = modules(root.path());
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["pam_exec.so", "pam_systemd.so", "pam_unix.so"]);
        let unix: Vec<&str> = found["pam_unix.so"].iter().copied().collect();
        let wanted = [
            "pam_sm_acct_mgmt",
            "pam_sm_close_session",
            "pam_sm_open_session",
        ];
        assert_eq!(unix, wanted);
    }

    #[test]
    fn functions_of_the_c_library_are_found_in_its_file() {
        let library = process::c_library(std::process::id()).unwrap();
        let found = of(&library, LIBRARY, &RESOLVER_FUNCTIONS);
        assert_eq!(found.len(), RESOLVER_FUNCTIONS.len(), "{found:?}");
        assert!(found.iter().all(|(_, _, _, offset)| *offset > 0));
        assert!(elf::functions(Path::new("/etc/passwd"), |_| true).is_err());
    }
}

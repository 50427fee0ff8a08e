//! What several of these tests need: tiny programs, filters of system calls, and the state of this process.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;

use rustix::process::{WaitOptions, wait};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use tempfile::TempDir;

/// A program that makes one system call: it ends with status 0.
const TINY: &str = r#"
void _start(void) {
#if defined(__x86_64__)
    __asm__ volatile("syscall" : : "a"(231L), "D"(0L));
#elif defined(__aarch64__)
    register long number __asm__("x8") = 94;
    register long status __asm__("x0") = 0;
    __asm__ volatile("svc 0" : : "r"(number), "r"(status));
#else
#error "exit_group for this architecture is missing"
#endif
    __builtin_unreachable();
}
"#;

/// The tiny program, built by the C compiler, in a folder of its own.
pub(crate) struct Tiny {
    folder: TempDir,
}

impl Tiny {
    pub(crate) fn build() -> Tiny {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("tiny.c");
        fs::write(&source, TINY).unwrap();
        let built = process::Command::new("cc")
            .args(["-static", "-nostdlib", "-O2", "-o"])
            .arg(folder.path().join("tiny"))
            .arg(&source)
            .status()
            .unwrap();
        assert!(built.success());
        Tiny { folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("tiny")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// A system call that is to fail, and with which arguments: (position, value).
pub(crate) type Call = (i64, &'static [(u8, u64)]);

/// Runs something in a thread in which these system calls, also those of its children, answer with these errors.
pub(crate) fn with_failing<T: Send>(calls: &[(Call, i32)], run: impl FnOnce() -> T + Send) -> T {
    let programs: Vec<BpfProgram> = calls
        .iter()
        .map(|(call, errno)| filter(call, *errno))
        .collect();
    thread::scope(|scope| {
        let filtered = scope.spawn(move || {
            for program in &programs {
                apply_filter(program).unwrap();
            }
            run()
        });
        filtered.join().unwrap()
    })
}

fn filter((number, arguments): &Call, errno: i32) -> BpfProgram {
    let conditions: Vec<SeccompCondition> = arguments
        .iter()
        .map(|(position, value)| {
            let length = SeccompCmpArgLen::Qword;
            SeccompCondition::new(*position, length, SeccompCmpOp::Eq, *value).unwrap()
        })
        .collect();
    let rules = match conditions.is_empty() {
        true => Vec::new(),
        false => vec![SeccompRule::new(conditions).unwrap()],
    };
    SeccompFilter::new(
        BTreeMap::from([(*number, rules)]),
        SeccompAction::Allow,
        SeccompAction::Errno(errno.unsigned_abs()),
        std::env::consts::ARCH.try_into().unwrap(),
    )
    .unwrap()
    .try_into()
    .unwrap()
}

/// How many descriptors this process has open. The listing's own is among them, each time.
pub(crate) fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Whether this process has any child left, living or dead.
pub(crate) fn has_children() -> bool {
    !matches!(wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD))
}

//! What these tests need: the built library, and C programs.

#![allow(dead_code)]

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The library, built in the profile of the test program.
pub(crate) fn library() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--locked", "-p"])
        .arg(env!("CARGO_PKG_NAME"))
        .current_dir(here())
        .status()
        .unwrap();
    assert!(built.success());
    let test_program = env::current_exe().unwrap();
    let folder = test_program.ancestors().nth(2).unwrap();
    folder.join("libsshoal_preload.so")
}

/// Programs of this folder, built without a warning.
pub(crate) struct Programs {
    folder: TempDir,
}

impl Programs {
    pub(crate) fn new() -> Programs {
        Programs {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn build(&self, name: &str, options: &[&str]) -> PathBuf {
        let program = self.folder().join(name);
        let compiled = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"])
            .args(options)
            .arg("-o")
            .arg(&program)
            .arg(here().join(format!("tests/{name}.c")))
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", text(&compiled.stderr));
        program
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a program that must end well.
pub(crate) fn run(command: &mut Command) -> Output {
    let ended = command.output().unwrap();
    let (out, err) = (text(&ended.stdout), text(&ended.stderr));
    assert!(
        ended.status.success(),
        "{command:?}: {}\n{out}{err}",
        ended.status
    );
    ended
}

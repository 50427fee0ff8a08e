//! Programs in C that use popen and system, with the library before libc and, where the same must hold, without it.

#![allow(clippy::unwrap_used)]

mod support;

use std::process::Command;

use support::{Programs, library, run, text};

#[test]
fn what_posix_says_of_popen_and_system_holds_with_and_without_the_library() {
    let programs = Programs::new();
    let conform = programs.build("conform", &["-pthread", "-Wno-mismatched-dealloc"]);
    for preload in [None, Some(library())] {
        let mut command = Command::new(&conform);
        command
            .current_dir(programs.folder())
            .envs(preload.map(|library| ("LD_PRELOAD", library)));
        assert!(text(&run(&mut command).stdout).ends_with("all is so\n"));
    }
}

#[test]
fn sixty_four_threads_with_signals_and_forks_leave_nothing_and_never_hang() {
    let programs = Programs::new();
    let (storm, probe) = (
        programs.build("storm", &["-pthread"]),
        programs.build("probe", &["-static"]),
    );
    let mut command = Command::new("timeout");
    command
        .arg("300")
        .arg(storm)
        .arg(probe)
        .env("LD_PRELOAD", library());
    assert!(text(&run(&mut command).stderr).ends_with("all is so\n"));
}

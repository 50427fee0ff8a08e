//! How the program is linked where linker and C library are GNU's, and this machine is what it is built for.
//!
//! ssh waits for `known-hosts lookup` at every connection, and most of that time is the start of the program
//! (docs/adr/0008-start.md).

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The first C library that reads relative relocations as a bitmap (DT_RELR): version 2.36.
const READS_RELR: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| env::var(name).unwrap_or_default();
    let is_gnu_linux =
        variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if !is_gnu_linux || variable("HOST") != variable("TARGET") {
        return;
    }
    if c_library().is_some_and(|version| version >= READS_RELR) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // It stands before the shared library of the same names, which is then not needed: one less to find, map and relocate.
    if let Some(folder) = unwinder() {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// "glibc 2.36" as numbers.
fn c_library() -> Option<(u32, u32)> {
    let version = output("getconf", "GNU_LIBC_VERSION")?;
    let (major, minor) = version.strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Where the compiler has its static unwinder, if it has one.
fn unwinder() -> Option<PathBuf> {
    let linker = env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let file = PathBuf::from(output(&linker, "-print-file-name=libgcc_eh.a")?);
    // What it does not have it calls by its bare name.
    let folder = file.parent().filter(|_| file.is_absolute())?;
    file.is_file().then(|| folder.to_owned())
}

fn output(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

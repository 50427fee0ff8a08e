//! Compiles `src/main.rs` once more: static, small, and for each processor that a host may have, as far as there is a compiler.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A processor, its targets, the best first, and what links for it elsewhere.
const PROCESSORS: [(&str, [&str; 2], &str); 2] = [
    (
        "x86_64",
        ["x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu"],
        "x86_64-linux-gnu-gcc",
    ),
    (
        "aarch64",
        ["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"],
        "aarch64-linux-gnu-gcc",
    ),
];

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SSHOAL_TRACER_RUSTC");
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for (processor, targets, linker) in PROCESSORS {
        let file = folder.join(format!("tracer-{processor}"));
        let is_built = targets.iter().any(|target| build(target, linker, &file));
        if is_built {
            continue;
        }
        if let Err(error) = fs::write(&file, b"") {
            panic!("cannot write {}: {error}", file.display());
        }
        let is_ours = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|ours| ours == processor);
        if is_ours {
            println!(
                "cargo::warning=no static program could be built: sshoal why --trace will not trace"
            );
        }
    }
}

/// Whether it could be built for this target.
fn build(target: &str, linker: &str, file: &Path) -> bool {
    let Some(compiler) = compiler(target) else {
        return false;
    };
    let mut command = Command::new(compiler);
    command
        .args([
            "--edition",
            "2024",
            "--crate-name",
            "sshoal_tracer",
            "--target",
            target,
        ])
        .args([
            "-C",
            "opt-level=s",
            "-C",
            "lto=fat",
            "-C",
            "codegen-units=1",
        ])
        .args(["-C", "panic=abort", "-C", "strip=symbols"])
        .args([
            "-C",
            "target-feature=+crt-static",
            "-C",
            "relocation-model=static",
        ])
        .arg("-o")
        .arg(file)
        .arg("src/main.rs");
    let is_ours =
        env::var("HOST").is_ok_and(|host| host.split('-').next() == target.split('-').next());
    if !is_ours {
        command.arg(format!("-Clinker={linker}"));
    }
    // What it says is about a target that this build may do without.
    command.output().is_ok_and(|output| output.status.success())
}

/// A compiler that has this target's std: that of this build, or the one that is named for it.
fn compiler(target: &str) -> Option<String> {
    let named = [env::var("RUSTC").ok(), env::var("SSHOAL_TRACER_RUSTC").ok()];
    named.into_iter().flatten().find(|compiler| {
        let output = Command::new(compiler)
            .args(["--print", "target-libdir", "--target", target])
            .output();
        let folder = output
            .ok()
            .and_then(|output| String::from_utf8(output.stdout).ok());
        folder.is_some_and(|folder| {
            let folder = Path::new(folder.trim());
            folder.is_dir() && !folder.as_os_str().is_empty()
        })
    })
}

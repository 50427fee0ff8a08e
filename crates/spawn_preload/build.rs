//! Links the unwinder into the library: each program that is started loads the library, too, if it is dynamic, and
//! libgcc_s.so would be half of what that costs.

use std::env;
use std::path::Path;
use std::process::Command;

const UNWINDER: &str = "libgcc_eh.a";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CC");
    let native = env::var("HOST") == env::var("TARGET");
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let asked = Command::new(compiler)
        .arg(format!("-print-file-name={UNWINDER}"))
        .output();
    // Without it libgcc_s.so serves: slower, and nothing else.
    let found = asked.map(|told| String::from_utf8_lossy(&told.stdout).trim().to_owned());
    let Ok(path) = found else { return };
    if let (true, true, Some(folder)) = (
        native,
        Path::new(&path).is_absolute(),
        Path::new(&path).parent(),
    ) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}

//! Programs in C, built with the headers and linked with the libraries as a user builds them.

#![allow(clippy::unwrap_used)]

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// What a program that links with the static library needs beside it: `rustc --print native-static-libs`.
const STATIC_NEEDS: [&str; 5] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the built libraries: that of this test program's profile.
fn libraries() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--offline",
            "--locked",
            "-p",
            "sshoal-spawn-capi",
            "-p",
            "sshoal-spawn-preload",
        ])
        .current_dir(here())
        .status()
        .unwrap();
    assert!(built.success());
    let test_program = env::current_exe().unwrap();
    test_program.ancestors().nth(2).unwrap().to_owned()
}

/// Compiles a program of this folder, without a warning, and runs it with what `scripts/install_spawn.sh` installs.
fn run(name: &str, link: &[&str], argument: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let installed = folder.path().join("installed");
    install(&installed);
    let program = folder.path().join(name);
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(installed.join("include"))
        .arg("-o")
        .arg(&program)
        .arg(here().join(format!("tests/{name}.c")))
        .arg(format!("-L{}", installed.join("lib").display()))
        .args(link)
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let ended = Command::new(&program)
        .arg(argument)
        .env("LD_LIBRARY_PATH", installed.join("lib"))
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr),
    );
    assert!(
        ended.status.success() && out.ends_with("all is so\n"),
        "{}\n{out}{err}",
        ended.status
    );
}

/// What a compiler is told of each standard. None of those of C has more in libc's headers than that standard, unless
/// `FEATURES` asks for it.
const STANDARDS: &[(&str, &[&str])] = &[
    ("c", &["c89", "c99", "c11", "c17", "gnu89", "gnu11"]),
    ("c++", &["c++98", "c++11", "c++17", "gnu++17"]),
];
const FEATURES: &[&str] = &["-DNOTHING", "-D_POSIX_C_SOURCE=200809L", "-D_GNU_SOURCE"];

/// Nothing else is included before or behind, and every function's type is seen.
fn uses_only(headers: &[&str]) -> String {
    let includes = headers
        .iter()
        .map(|header| format!("#include \"{header}\"\n"));
    let functions = headers.iter().flat_map(|header| declared(header));
    let functions = functions.map(|name| format!("\t(void (*)(void))&{name},\n"));
    let (includes, functions): (String, String) = (includes.collect(), functions.collect());
    format!(
        "{includes}\nstatic void (*const all[])(void) = {{\n{functions}\t0\n}};\n\n\
         int main(void)\n{{\n\treturn all[0] == 0;\n}}\n"
    )
}

#[test]
fn the_headers_stand_alone_in_every_standard_of_c_and_c_plus_plus() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program");
    for headers in [
        &["sshoal_spawn.h"][..],
        &["popen_noshell.h"],
        &["popen_noshell.h", "sshoal_spawn.h"],
        // Twice is once.
        &["sshoal_spawn.h", "sshoal_spawn.h"],
    ] {
        fs::write(&file, uses_only(headers)).unwrap();
        for (language, standards) in STANDARDS {
            for (standard, features) in standards
                .iter()
                .flat_map(|s| FEATURES.iter().map(move |f| (s, f)))
            {
                let compiled = Command::new("cc")
                    .args(["-x", language, &format!("-std={standard}"), features])
                    .args([
                        "-Wall",
                        "-Wextra",
                        "-pedantic",
                        "-Werror",
                        "-fsyntax-only",
                        "-I",
                    ])
                    .arg(here().join("include"))
                    .arg(&file)
                    .output()
                    .unwrap();
                assert!(
                    compiled.status.success(),
                    "{headers:?}, {standard}, {features}: {}",
                    String::from_utf8_lossy(&compiled.stderr)
                );
            }
        }
    }
}

fn install(prefix: &Path) {
    let libraries = libraries();
    let installed = Command::new(here().join("../../scripts/install_spawn.sh"))
        .env("PREFIX", prefix)
        .env("PROFILE", libraries.file_name().unwrap())
        .env("CARGO_TARGET_DIR", libraries.parent().unwrap())
        .env_remove("DESTDIR")
        .status()
        .unwrap();
    assert!(installed.success());
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(folder.path()).unwrap();
    (folder, path)
}

/// A file that may be executed and does not say by what.
fn script(folder: &Path) -> PathBuf {
    let script = folder.join("script");
    fs::write(&script, "echo \"${0##*/}: $1\"\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script
}

#[test]
fn every_function_of_ours_works_from_c() {
    let (_folder, path) = folder();
    run("native", &["-lsshoal_spawn"], &path);
}

#[test]
fn a_program_for_popen_noshell_is_built_again_and_works() {
    let (_folder, path) = folder();
    run("noshell", &["-lsshoal_spawn"], &script(&path));
}

#[test]
fn the_static_library_needs_no_other_file() {
    let (_folder, path) = folder();
    let link: Vec<&str> = ["-l:libsshoal_spawn.a"]
        .into_iter()
        .chain(STATIC_NEEDS)
        .collect();
    run("noshell", &link, &script(&path));
}

#[test]
fn what_is_installed_says_how_to_link_and_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path());
    let described =
        fs::read_to_string(folder.path().join("lib/pkgconfig/sshoal_spawn.pc")).unwrap();
    assert!(
        described.contains(&format!("prefix={}\n", folder.path().display())),
        "{described}"
    );
    assert!(
        described.contains(concat!("Version: ", env!("CARGO_PKG_VERSION"))),
        "{described}"
    );
    for need in STATIC_NEEDS {
        assert!(described.contains(need), "{need}: {described}");
    }
    for file in [
        "share/man/man3/sshoal_spawn.3",
        "lib/libsshoal_spawn.so",
        "lib/libsshoal_spawn.so.0",
        "share/man/man7/libsshoal_preload.7",
        "lib/libsshoal_preload.so",
    ] {
        assert!(fs::metadata(folder.path().join(file)).is_ok(), "{file}");
    }
}

/// The functions that a header declares.
fn declared(header: &str) -> Vec<String> {
    let text = fs::read_to_string(here().join("include").join(header)).unwrap();
    let names = text.split(['(', ' ', '*', '\n', ',']).filter(|word| {
        word.starts_with("sshoal_spawn_")
            || word.starts_with("sshoal_process_")
            || word.starts_with("sshoal_p")
            || word.starts_with("popen_noshell")
            || *word == "pclose_noshell"
    });
    names
        .filter(|name| text.contains(&format!("{name}(")))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_c_programs_use_every_function_that_is_declared() {
    for (header, program) in [
        ("sshoal_spawn.h", "native.c"),
        ("popen_noshell.h", "noshell.c"),
    ] {
        let text = fs::read_to_string(here().join("tests").join(program)).unwrap();
        let functions = declared(header);
        assert!(functions.len() >= 6, "{functions:?}");
        for function in functions {
            assert!(
                text.contains(&format!("{function}(")),
                "{program} does not call {function}"
            );
        }
    }
}

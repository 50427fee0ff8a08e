//! `make install`: what it puts where.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::User;

#[test]
fn both_names_are_installed_with_manual_pages_and_completions() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Path::new(env!("CARGO_BIN_EXE_sshoal")).parent().unwrap();
    let output = Command::new("make")
        .arg("install")
        .current_dir(root)
        .env("DESTDIR", folder.path())
        .env("PREFIX", "/usr")
        .env("PROFILE", built.file_name().unwrap())
        .env("CARGO_TARGET_DIR", built.parent().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let usr = folder.path().join("usr");
    let said = |name: &str, flag: &str| {
        let output = User::new()
            .command(usr.join("bin").join(name))
            .arg(flag)
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    assert!(said("sshoal", "--version").starts_with("sshoal "));
    assert!(said("mpssh", "--version").starts_with("MPSSH.py 1.2\n"));
    for (file, words) in [
        ("share/man/man1/sshoal.1", ".TH sshoal 1"),
        ("share/man/man1/sshoal-run.1", ".TH sshoal-run 1"),
        (
            "share/man/man1/mpssh.1",
            concat!(".TH mpssh 1  \"mpssh ", env!("CARGO_PKG_VERSION")),
        ),
        (
            "share/bash-completion/completions/sshoal",
            "complete -F _sshoal",
        ),
        ("share/bash-completion/completions/mpssh", "--badchars-ok"),
        ("share/zsh/site-functions/_sshoal", "#compdef sshoal"),
        ("share/zsh/site-functions/_mpssh", "#compdef mpssh"),
        ("share/fish/vendor_completions.d/sshoal.fish", "-c sshoal"),
        ("share/fish/vendor_completions.d/mpssh.fish", "-c mpssh"),
    ] {
        let text =
            fs::read_to_string(usr.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(words), "{file} has no {words:?}");
    }
    assert!(!usr.join("share/man/man1/sshoal-mpssh.1").exists());
}

//! What the loader has to do before the program begins (docs/adr/0008-start.md). It is counted, not timed.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// Octets of relocations that are written out one by one; what is not packed takes some hundred thousand.
const FEW: u64 = 32 * 1024;

/// The dynamic section as `readelf -d` shows it, a line an entry.
fn dynamic_section() -> Vec<String> {
    let output = Command::new("readelf")
        .args(["-W", "-d", env!("CARGO_BIN_EXE_sshoal")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_program_needs_the_c_library_alone_and_is_relocated_by_a_bitmap() {
    let section = dynamic_section();
    let of = |tag: &str| {
        let tag = format!("({tag})");
        let lines = section.iter().filter(move |line| line.contains(&tag));
        lines.cloned().collect::<Vec<_>>()
    };
    // libm and the like are parts of the C library's own package; an unwinder is the compiler's.
    let needed = of("NEEDED");
    assert!(
        !needed.iter().any(|line| line.contains("libgcc_s")),
        "{needed:?}"
    );
    let needs = "the bitmap needs glibc 2.36, and a build for the machine that builds (build.rs)";
    assert_eq!(of("RELR").len(), 1, "{needs}: {section:?}");
    let written_out = of("RELASZ").concat();
    let mut words = written_out.split_whitespace();
    let octets: u64 = words.find_map(|word| word.parse().ok()).unwrap();
    assert!(octets < FEW, "{octets} octets of relocations");
    assert!(
        of("FLAGS_1").concat().contains("PIE"),
        "addresses must not be guessed"
    );
}

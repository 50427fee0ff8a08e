//! What is run on a host to hash its files, and how it is told which.
//!
//! ```text
//! we:   ./sshoal  what no SFTP server takes for a packet: where it is one whatever is asked (ForceCommand), it ends at once
//! host: sshoal-ready
//! we:   +PATH     a path, to the end of the line
//!       =PATH     the same, with newlines as \0012 and backslashes as \0134 (printf(1), %b)
//!       .         hash those that were named
//!       :         the same, of much contents: a program is started that is worth it
//! host: HASH ...  one line for each path, in their order; - if it cannot be read
//!       sshoal-end
//! ```

/// What is said first.
pub(super) const GREETING: &[u8] = b"./sshoal\n";

/// Programs that hash by SHA-256 and have -c, the preferred one first: coreutils and BusyBox, Perl.
pub(crate) const CHECKERS: &str = "sha256sum \"shasum -a 256\"";

/// The command, for whatever shell the account has. Further programs: BSD's, OpenSSL's.
///
/// Many files are one process's work: all of them are read, or they are hashed one by one, so that each has its line.
/// OpenSSL takes the CPU's instructions for SHA-256, which not every sha256sum does.
pub(super) fn command() -> String {
    format!(
        "exec sh -c 'LC_ALL=C; export LC_ALL; IFS= read -r l; cd; \
         for s in {CHECKERS} \"sha256 -r\" \"openssl dgst -sha256 -r\"; do command -v ${{s%% *}} >/dev/null && break; s=; done; \
         test -n \"$s\" || exit 3; b=$s; command -v openssl >/dev/null && b=\"openssl dgst -sha256 -r\"; \
         h() {{ {{ $c <\"$1\" || $s <\"$1\"; }} 2>/dev/null || echo -; }}; echo sshoal-ready; set --; \
         while IFS= read -r l; do case $l in \
         +*) set -- \"$@\" \"${{l#+}}\";; \
         =*) l=$(printf \"%b.\" \"${{l#=}}\"); set -- \"$@\" \"${{l%.}}\";; \
         *) c=$s; test \"$l\" = : && c=$b; \
         if test $# -gt 1 && o=$($s \"$@\" 2>/dev/null </dev/null); then printf \"%s\\n\" \"$o\"; \
         else for f do h \"$f\"; done; fi; echo sshoal-end; set --;; esac; done'"
    )
}

/// A path as a command takes it that was started at the account's home: never an option.
pub(super) fn host_path(path: &[u8]) -> Vec<u8> {
    match path.starts_with(b"/") {
        true => path.to_vec(),
        false => [b"./", path].concat(),
    }
}

/// The line that names a path.
pub(super) fn put_path(out: &mut Vec<u8>, path: &[u8]) {
    if !path.contains(&b'\n') {
        out.push(b'+');
        out.extend_from_slice(path);
    } else {
        out.push(b'=');
        for &octet in path {
            match octet {
                b'\n' => out.extend_from_slice(b"\\0012"),
                b'\\' => out.extend_from_slice(b"\\0134"),
                octet => out.push(octet),
            }
        }
    }
    out.push(b'\n');
}

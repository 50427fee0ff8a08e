//! Whether there is a Kerberos ticket.

use std::path::Path;

use rustix::process::getuid;

/// Whether the user seems to have a ticket: the credential cache that KRB5CCNAME names, or the usual file, is there. A
/// cache that is no file (KEYRING, KCM) is taken for one if it is named; nobody looks into it.
pub(super) fn has_ticket() -> bool {
    let usual = || format!("/tmp/krb5cc_{}", getuid().as_raw());
    is_there(&std::env::var("KRB5CCNAME").unwrap_or_else(|_| usual()))
}

fn is_there(cache: &str) -> bool {
    match cache.split_once(':') {
        Some(("FILE" | "DIR", path)) => Path::new(path).exists(),
        Some((kind, _)) if !kind.contains('/') => true,
        _ => Path::new(cache).exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_there;

    #[test]
    fn caches_are_files_folders_or_believed_in() {
        for (cache, there) in [
            ("/dev/null", true),
            ("FILE:/dev/null", true),
            ("DIR:/dev", true),
            ("KEYRING:persistent:1000", true),
            ("/nonexistent", false),
            ("FILE:/nonexistent", false),
            ("DIR:/nonexistent", false),
        ] {
            assert_eq!(is_there(cache), there, "{cache}");
        }
    }
}

//! An account for servers that insist on one: seen by the server alone.
//!
//! OpenSSH and Dropbear look a user up in /etc/passwd and start the shell found there. The machine's own accounts
//! may have slow or noisy shell start-up files, and Dropbear reads authorized_keys from the home directory only. So
//! the server runs in a mount namespace of its own, in which /etc/passwd is a file of ours.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The account's name.
pub(crate) const USER: &str = "sshoal-test";

/// The shell line that lays our passwd file over the machine's and becomes the server.
const ENTER: &str = r#"mount --bind "$1" /etc/passwd && shift && exec "$@""#;

/// A passwd file and the home directory that it names.
pub(crate) struct Account {
    passwd: PathBuf,
    authorized_keys: PathBuf,
    is_root: bool,
}

impl Account {
    /// Lays out the account under `dir`, which must belong to the caller.
    pub(crate) fn create(dir: &Path, authorized_keys: &str) -> io::Result<Account> {
        // A directory that this process just made belongs to its effective user.
        let is_root = fs::metadata(dir)?.uid() == 0;
        // Nobody's number, to log in without privilege. In a user namespace no number but root's exists.
        let id = if is_root { 65534 } else { 0 };
        let home = dir.join("home");
        let ssh = home.join(".ssh");
        fs::create_dir_all(&ssh)?;
        for path in [dir, &home, &ssh] {
            fs::set_permissions(path, Permissions::from_mode(0o755))?;
        }
        let account = Account {
            passwd: dir.join("passwd"),
            authorized_keys: ssh.join("authorized_keys"),
            is_root,
        };
        fs::write(&account.authorized_keys, authorized_keys)?;
        fs::write(
            &account.passwd,
            format!(
                "root:*:0:0::/root:/bin/sh\n\
                 sshd:*:101:65534::/run/sshd:/usr/sbin/nologin\n\
                 {USER}:*:{id}:{id}::{}:/bin/sh\n",
                home.display()
            ),
        )?;
        Ok(account)
    }

    /// The words that start `command` where the account exists.
    pub(crate) fn enter(&self, command: Vec<OsString>) -> Vec<OsString> {
        let namespaces: &[&str] = if self.is_root {
            &["unshare", "--mount"]
        } else {
            &["unshare", "--user", "--map-root-user", "--mount"]
        };
        let mut words: Vec<OsString> = namespaces.iter().map(OsString::from).collect();
        words.extend(["sh", "-c", ENTER, "sh"].map(OsString::from));
        words.push(self.passwd.clone().into());
        words.extend(command);
        words
    }

    /// Whether the server will run as root, and the account with a number of its own.
    pub(crate) fn is_root(&self) -> bool {
        self.is_root
    }

    /// The file of keys that may log in.
    pub(crate) fn authorized_keys(&self) -> &Path {
        &self.authorized_keys
    }
}

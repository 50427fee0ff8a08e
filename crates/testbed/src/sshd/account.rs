//! The accounts that real servers let in.
//!
//! As root: `sshoal-test` for keys and `sshoal-pass` for a password, made on first use by useradd(8)
//! and then left, since other test runs may be using them. Both have an empty home and /bin/sh, so
//! that no start-up file takes part in a measurement. `userdel --remove NAME` removes one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use thiserror::Error;

/// Logs in with a key. Has no password, but is not locked, which would keep keys out, too.
const KEY_ACCOUNT: &str = "sshoal-test";
/// Logs in with a password.
const PASSWORD_ACCOUNT: &str = "sshoal-pass";
/// Where useradd makes homes, and where this crate looks for them.
const HOMES: &str = "/home";
/// Held while accounts are looked for and made: several test runs may begin at once.
const LOCK: &str = "/run/sshoal-testbed.lock";

/// An account that can log in with a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordAccount {
    /// Its name.
    pub name: String,
    /// Its password, random and the same until the account is removed.
    pub password: String,
}

/// Why there is no account to log in as.
#[derive(Debug, Error)]
pub enum AccountError {
    /// Only root can make accounts.
    #[error("password logins need an account of their own, which only root can make")]
    NotRoot,
    /// A program failed.
    #[error("{program} failed: {problem}")]
    Program {
        /// Its name.
        program: &'static str,
        /// What it or the system said.
        problem: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The name of the account for keys; as root, made if missing.
///
/// # Errors
/// When it cannot be made or, not as root, this process's user has no name.
pub fn key_account() -> Result<String, AccountError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(run("id", Command::new("id").arg("-un"), "")?
            .trim()
            .to_owned());
    }
    let _lock = lock()?;
    if !exists(KEY_ACCOUNT)? {
        make(KEY_ACCOUNT)?;
    }
    Ok(KEY_ACCOUNT.to_owned())
}

/// The account for passwords, made if missing. Its password is kept beside its home, for root's eyes.
///
/// # Errors
/// When this is not root or the account cannot be made.
pub fn password_account() -> Result<PasswordAccount, AccountError> {
    if !rustix::process::geteuid().is_root() {
        return Err(AccountError::NotRoot);
    }
    let _lock = lock()?;
    if !exists(PASSWORD_ACCOUNT)? {
        make(PASSWORD_ACCOUNT)?;
    }
    let file = Path::new(HOMES).join(PASSWORD_ACCOUNT).join(".password");
    let at = |source| AccountError::File {
        path: file.clone(),
        source,
    };
    let password = match fs::read_to_string(&file) {
        Ok(password) => password,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let password = random_password().map_err(at)?;
            let entry = format!("{PASSWORD_ACCOUNT}:{password}\n");
            run("chpasswd", &mut Command::new("chpasswd"), &entry)?;
            keep(&file, &password).map_err(at)?;
            password
        }
        Err(error) => return Err(at(error)),
    };
    Ok(PasswordAccount {
        name: PASSWORD_ACCOUNT.to_owned(),
        password,
    })
}

fn lock() -> Result<File, AccountError> {
    let take = || {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(LOCK)?;
        file.lock()?;
        Ok(file)
    };
    take().map_err(|source| AccountError::File {
        path: LOCK.into(),
        source,
    })
}

fn exists(name: &str) -> Result<bool, AccountError> {
    let status = Command::new("id")
        .arg(name)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) => Ok(status.success()),
        Err(error) => Err(AccountError::Program {
            program: "id",
            problem: error.to_string(),
        }),
    }
}

fn make(name: &str) -> Result<(), AccountError> {
    let empty = tempfile::tempdir().map_err(|source| AccountError::File {
        path: std::env::temp_dir(),
        source,
    })?;
    let mut command = Command::new("useradd");
    command
        .args(["--system", "--create-home", "--base-dir", HOMES, "--skel"])
        .arg(empty.path())
        // `*` fits no password; `!`, the default, would be a locked account (auth.c, platform.c).
        .args(["--shell", "/bin/sh", "--password", "*"])
        .args(["--comment", "test account of sshoal-testbed", name]);
    run("useradd", &mut command, "").map(drop)
}

fn random_password() -> io::Result<String> {
    let mut random = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn keep(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(text.as_bytes())
}

/// Runs a program with `input` and returns its output.
fn run(program: &'static str, command: &mut Command, input: &str) -> Result<String, AccountError> {
    let mut spawn = || -> io::Result<Output> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait_with_output()
    };
    let problem = match spawn() {
        Ok(output) if output.status.success() => {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(AccountError::Program { program, problem })
}

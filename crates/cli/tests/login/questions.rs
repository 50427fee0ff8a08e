//! Questions of servers: the password answers those for the password, and no other.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use sshoal_testbed::sshd::key_files::{KeyType, generate};
use tempfile::TempDir;

use crate::fixture::{Ended, Run, public_path};
use crate::inquisitive_server::{InquisitiveServer, Question, Rules};
use crate::terminal::OnTerminal;

const PASSWORD: &str = "open sesame";

/// What came of a login with the password typed in, and what the server heard.
fn log_in(questions: &'static [Question], password: &'static str) -> (Ended, Vec<String>) {
    let home = TempDir::new().unwrap();
    let host_key = home.path().join("host_key");
    generate(&host_key, KeyType::Ed25519, "").unwrap();
    let rules = Rules {
        questions,
        password,
    };
    let server = InquisitiveServer::start(&host_key, rules);
    let (ended, _) = log_in_to(server.address, &home, &host_key);
    (ended, server.heard())
}

/// What came of a login to the server with this host key, with the password typed in, and what the terminal showed.
fn log_in_to(address: SocketAddr, home: &TempDir, host_key: &Path) -> (Ended, String) {
    let public = fs::read_to_string(public_path(host_key)).unwrap();
    fs::create_dir(home.path().join(".ssh")).unwrap();
    fs::write(
        home.path().join(".ssh/known_hosts"),
        format!("[{}]:{} {public}", address.ip(), address.port()),
    )
    .unwrap();
    let run = Run::new(home.path(), &[address.to_string()], &["--ask-pass"], "true");
    let mut user = OnTerminal::start(&run);
    user.expect("Password for");
    user.type_in(&format!("{PASSWORD}\n"));
    user.finish_run()
}

/// asyncssh, from the environment that `make setup` makes: it knows every password for an expired one.
const EXPIRING_SERVER: &str = "
import asyncio, sys, asyncssh
class Expiring(asyncssh.SSHServer):
    def password_auth_supported(self):
        return True
    def validate_password(self, user, password):
        raise asyncssh.PasswordChangeRequired('Your password is\\x1b[2J too old')
async def main():
    server = await asyncssh.listen('127.0.0.1', 0, server_factory=Expiring, server_host_keys=[sys.argv[1]], kbdint_auth=False)
    print(server.get_port(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())
";

#[test]
fn a_server_that_wants_a_new_password_is_told_to_the_user_and_not_asked_again() {
    let home = TempDir::new().unwrap();
    let host_key = home.path().join("host_key");
    generate(&host_key, KeyType::Ed25519, "").unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_sshoal")).parent().unwrap();
    let mut server = Command::new(built.with_file_name("venv").join("bin/python"))
        .args(["-c", EXPIRING_SERVER, host_key.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("asyncssh is needed: run `make setup`");
    let mut port = String::new();
    let said = server.stdout.take().unwrap();
    BufReader::new(said).read_line(&mut port).unwrap();
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port.trim().parse().unwrap());

    let (ended, _) = log_in_to(address, &home, &host_key);
    let said = ended.failed("password-expired");
    assert!(
        said.contains("Your password is\\u{1b}[2J too old"),
        "{said}"
    );
    // Its standard input closes, and it ends.
    drop(server.stdin.take());
    server.wait().unwrap();
}

#[test]
fn a_hidden_question_for_the_password_is_answered() {
    let (ended, heard) = log_in(&[("Password: ", false)], PASSWORD);
    ended.all_ok();
    assert_eq!(heard, [PASSWORD]);
}

#[test]
fn a_second_factor_is_not_answered_with_the_password() {
    let questions = &[("Password: ", false), ("Verification code: ", false)];
    let (ended, heard) = log_in(questions, PASSWORD);
    let said = ended.failed("auth-denied");
    assert!(
        said.contains("\"Verification code:\" was not answered"),
        "{said}"
    );
    assert_eq!(heard, [PASSWORD]);
}

#[test]
fn a_question_for_something_else_gives_way_to_the_password_method() {
    for question in [("Verification code: ", false), ("Password: ", true)] {
        let questions: &'static [Question] = Box::leak(Box::new([question]));
        let (ended, heard) = log_in(questions, PASSWORD);
        ended.all_ok();
        assert_eq!(heard, [PASSWORD], "{question:?}");
    }
}

#[test]
fn a_wrong_password_is_said_once_though_the_server_takes_it_in_two_ways() {
    let (ended, heard) = log_in(&[("Password: ", false)], "another");
    ended.failed("auth-denied");
    assert_eq!(heard, [PASSWORD]);
}

#[test]
fn a_question_for_a_new_password_is_an_expired_one() {
    let questions = &[("Password: ", false), ("New password: ", false)];
    let (ended, heard) = log_in(questions, PASSWORD);
    ended.failed("password-expired");
    assert_eq!(heard, [PASSWORD]);
}

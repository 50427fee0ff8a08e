//! Questions of servers: the password answers those for the password, and no other.

use std::fs;

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
    let address = server.address;
    let public = fs::read_to_string(public_path(&host_key)).unwrap();
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
    (user.finish_run().0, server.heard())
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

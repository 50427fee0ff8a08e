#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::sync::mpsc::channel;

use super::*;

/// Both ends, as they are after the request.
fn ends() -> (Conversation, Caller, Receiver<()>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (sender, left) = channel();
    let conversation = Conversation::begin(ours, move || sender.send(()).unwrap()).unwrap();
    let mut caller = Caller {
        reader: BufReader::new(theirs.try_clone().unwrap()),
        stream: theirs,
    };
    assert_eq!(caller.hear().unwrap(), Some(Tell::Begun));
    (conversation, caller, left)
}

#[test]
fn a_secret_comes_as_it_was_typed_and_only_for_its_own_question() {
    let (conversation, mut caller, _left) = ends();
    let asking = thread::spawn(move || {
        let secret = conversation.ask("Passphrase: ", &|| true);
        secret.map(|secret| secret.expose().to_vec())
    });
    let told = caller.hear().unwrap();
    let Some(Tell::Ask { number, question }) = told else {
        panic!("{told:?}");
    };
    assert_eq!(question, "Passphrase: ");
    let mut answering = caller.answering().unwrap();
    // What was asked before, and withdrawn.
    let old = Secret::new(b"old".to_vec());
    answering.secret(number - 1, Some(&old)).unwrap();
    let new = Secret::new(b"\"a\\b\n\0\xff".to_vec());
    answering.secret(number, Some(&new)).unwrap();
    assert_eq!(asking.join().unwrap().unwrap(), b"\"a\\b\n\0\xff");
}

#[test]
fn a_question_is_withdrawn_when_its_answer_is_of_no_use_any_more() {
    let (conversation, mut caller, _left) = ends();
    let answer = conversation.confirm("keys\n", Some("SHA256:x"), &|| false);
    assert_eq!(answer, Confirmation::Unanswered);
    assert!(matches!(caller.hear().unwrap(), Some(Tell::Confirm { .. })));
    assert_eq!(caller.hear().unwrap(), Some(Tell::Withdrawn));
}

#[test]
fn who_leaves_is_noticed_and_answers_nothing() {
    let (conversation, caller, left) = ends();
    drop(caller);
    left.recv().unwrap();
    assert!(conversation.has_left());
    assert!(conversation.ask("Password: ", &|| true).is_none());
    let answer = conversation.confirm("keys\n", None, &|| true);
    assert!(matches!(answer, Confirmation::Nobody(_)));
}

#[test]
fn who_speaks_nonsense_is_heard_no_more() {
    for nonsense in [
        &b"{\"answer\":\"secret\",\"number\":1,\"octets\":99999999}\n"[..],
        b"nonsense\n",
        b"{\"answer\":\"secret\",\"number\":1,\"octets\":5}\nabc",
    ] {
        let (conversation, caller, left) = ends();
        let mut stream = caller.stream.try_clone().unwrap();
        stream.write_all(nonsense).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        left.recv().unwrap();
        assert!(conversation.ask("Password: ", &|| true).is_none());
    }
}

use super::*;

#[test]
fn a_kind_that_promises_the_command_did_not_run_gives_way_when_it_may_have() {
    let denied = || Failure::new(FailureKind::AuthDenied, "no key was accepted");
    let outcome = failed(denied(), Fate::ProvenDiscarded);
    assert_eq!(outcome.failure_kind(), Some(FailureKind::AuthDenied));
    let Outcome::Failed { failure, fate } = failed(denied(), Fate::MayHaveRun) else {
        panic!("a failure became something else");
    };
    assert_eq!(failure.kind, FailureKind::Lost);
    assert_eq!(failure.detail, "auth-denied: no key was accepted");
    assert_eq!(fate, Fate::MayHaveRun);
}

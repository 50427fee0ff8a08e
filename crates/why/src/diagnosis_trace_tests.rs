//! What a trace says beside what was measured.

use super::*;

#[test]
fn a_trace_proves_a_slow_module_or_rules_it_out() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 200.0);
    time(&mut evidence, "trace.pam_session.time", 202.0);
    text(
        &mut evidence,
        "trace.pam_session.slowest",
        "pam_exec.so 201.0 ms",
    );
    let diagnosis = only(&evidence, "pam-session", Certainty::Proven, 200.0);
    let told = diagnosis.findings[0].evidence.join("\n");
    assert!(told.contains("pam_exec.so"), "{told}");
    time(&mut evidence, "trace.pam_session.time", 1.0);
    assert!(is_ruled_out(&Diagnosis::of(&evidence), "pam-session"));
}

#[test]
fn what_a_traced_login_spends_most_of_its_time_on_is_found_without_a_cause() {
    let mut evidence = clean_no_root(0.05);
    time(&mut evidence, "trace.wall.time", 400.0);
    time(&mut evidence, "trace.storage.time", 300.0);
    time(&mut evidence, "trace.cpu.time", 40.0);
    let diagnosis = Diagnosis::of(&evidence);
    let verdict = |resource| {
        let mut verdicts = diagnosis.resources.iter();
        verdicts
            .find(|verdict| verdict.resource == resource)
            .unwrap()
    };
    let disks = verdict(Resource::BlockIo);
    assert!(matches!(disks.status, Status::Found), "{disks:?}");
    assert!(disks.words.contains("300 ms of the 400 ms"), "{disks:?}");
    let cpu = verdict(Resource::Cpu);
    assert!(matches!(cpu.status, Status::RuledOut(_)), "{cpu:?}");
    assert!(cpu.words.contains("worked 40 ms"), "{cpu:?}");
}

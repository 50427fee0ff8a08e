//! ExecFate by ssh: connections are cut all over a login and a session, and a command counts how often it ran.

use std::collections::BTreeMap;

use sshoal_testbed::simulated::SimulationSpec;
use sshoal_testbed::simulated::fault::{Action, Cut, Fault, FaultRule, Position, Side};

use crate::by_ssh;
use crate::support::program::Running;
use crate::support::{Shoal, wait_until};

/// Cuts of each direction.
const CUTS: u64 = 40;
/// Every so many cuts one falls silent in place of ending.
const SILENCE_EVERY: u64 = 10;

#[test]
fn hosts_cut_anywhere_run_a_command_at_most_once_and_what_is_said_of_it_is_true() {
    let healthy = Shoal::simulated(1, &[]);
    healthy.run(&by_ssh(&["count runs"])).expect(0);
    let traffic = healthy.hosts.last_traffic(0).unwrap();
    let (input, output) = traffic.at_authentication.unwrap();
    // Half of the cuts before the end of the login, half of them behind it, where the command is.
    let places = |login: u64, total: u64| {
        let half = CUTS / 2;
        let early = (0..half).map(move |number| 1 + login * number / half);
        let late = (0..half).map(move |number| login + (total - login) * (number + 1) / half);
        early.chain(late)
    };
    let inputs = places(input, traffic.input).map(|at| (Side::Input, at));
    let outputs = places(output, traffic.output).map(|at| (Side::Output, at));
    let mut spec = SimulationSpec::new(2 * CUTS as u32);
    for (host, (side, at)) in (0..).zip(inputs.chain(outputs)) {
        let action = match u64::from(host) % SILENCE_EVERY {
            0 => Action::Silence,
            odd if odd % 2 == 1 => Action::Reset,
            _ => Action::Close,
        };
        let at = Position::Byte(at);
        let fault = Fault::Cut(Cut { side, action, at });
        spec.faults
            .push(FaultRule::new(host..=host, fault).first(1));
    }
    spec.base = [127, 34, 0, 0].into();
    let shoal = Shoal::simulate(&spec);
    let deadlines = ["--login-timeout=8", "--timeout=8", "--json"];
    let mut command = shoal.command(&by_ssh(&deadlines));
    let records = Running::start(command.arg("count runs")).wait().records();
    wait_until("the hosts have seen all clients leave", || {
        shoal.hosts.totals().open == 0
    });
    let mut ways: BTreeMap<(String, String, u64), usize> = BTreeMap::new();
    let by_name = records.by_name();
    for host in 0..2 * CUTS as usize {
        let record = &by_name[&shoal.name(host)];
        let runs = shoal.hosts.count(host, "runs");
        let is_true = match record.fate.as_str() {
            "not-sent" | "proven-discarded" => runs == 0,
            "ran" => runs == 1,
            "may-have-run" => runs <= 1,
            other => panic!("there is no fate {other:?}"),
        };
        assert!(is_true, "it ran {runs} times: {record:?}");
        let ending = record.failure.as_ref().unwrap_or(&record.outcome);
        *ways
            .entry((ending.clone(), record.fate.clone(), runs))
            .or_default() += 1;
    }
    println!("{ways:#?}");
    // The sweep has met the cases that matter: sent and not run, run and not known, run after another attempt.
    let met = |fate: &str, runs| ways.keys().any(|way| way.1 == fate && way.2 == runs);
    assert!(met("may-have-run", 1), "{ways:#?}");
    assert!(met("ran", 1), "{ways:#?}");
    assert!(
        by_name
            .values()
            .any(|record| record.attempts > 1 && record.is_ok())
    );
}

//! The host's processors, disks and memory. What starves a login stands first: it slows everything down that other causes are
//! measured by. Whoever merely shares them comes last.

use super::{Cause, Payer, Resource, SERVER};
use crate::cost::{Cost, MUCH_OF_A_LOGIN, Waited};
use crate::evidence::{Phase, Tier};
use crate::fix::{Fix, Place};
use crate::signs::{Answer, Case, Test, known, needed, proof, shape};
use crate::words;

/// Arithmetic is among them: names, disks and PAM do not slow that down.
const STRETCHED: Test = Test::Together {
    phases: SERVER,
    least: 4,
};

const FOR_A_PROCESSOR: Waited = Waited {
    traced: Some("trace.contention.time"),
    part: Some("trace.contention.share"),
    timed: Some(("host.contention.time", "host.contention.share")),
    taken_by: &["cpu-quota"],
};
const FOR_A_DISK: Waited = Waited {
    traced: Some("trace.storage.time"),
    part: Some("trace.storage.share"),
    timed: None,
    taken_by: &[],
};
const NOT_KNOWN: Waited = Waited {
    traced: None,
    part: None,
    timed: None,
    taken_by: &[],
};

/// Per cent of the last 10 s in which somebody waited for a processor: as much as a host's own few logins in a row may come to.
const BUSY: f64 = 20.0;
/// Per cent of a login's time that it waits for processors even where nobody else wants them: its own processes take turns.
const OWN_TURNS: f64 = 5.0;

pub(super) const STARVED: &[Cause] = &[
    Cause {
        id: "cpu-quota",
        title: "sshd's control group may use little CPU",
        phases: SERVER,
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Cpu,
        signs: &[
            // It strikes each login elsewhere: what sshd itself has waited tells.
            needed(Test::Any(&[
                Test::Together {
                    phases: SERVER,
                    least: 3,
                },
                Test::AtLeast {
                    fact: "host.contention.share",
                    number: MUCH_OF_A_LOGIN,
                    unit: " % of a login",
                },
            ])),
            needed(Test::Not(&Test::AtLeast {
                fact: "host.cpu_quota",
                number: 100.0,
                unit: " % of a core",
            })),
            needed(Test::AtLeast {
                fact: "host.throttled",
                number: 1.0,
                unit: " times throttled",
            }),
            proof(Test::Not(&Test::AtLeast {
                fact: "host.cpu_quota",
                number: 50.0,
                unit: " % of a core",
            })),
            shape(STRETCHED),
            shape(Test::Together {
                phases: &[Phase::KeyExchange],
                least: 1,
            }),
        ],
        cost: Cost::Starved(&FOR_A_PROCESSOR),
        fix: Fix::by_hand(
            Place::Host,
            "the unit of sshd, or the container's limits",
            "systemctl set-property ssh.service CPUQuota=",
            "systemctl revert ssh.service",
        ),
        source: "cgroup v2, cpu.max and cpu.stat; measured: a quota of 5 % turned 47 ms into 616 ms",
    },
    Cause {
        id: "cpu-steal",
        title: "the hypervisor gives the host's processors to others",
        phases: SERVER,
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Cpu,
        signs: &[
            known(Test::AtLeast {
                fact: "host.steal",
                number: 10.0,
                unit: " % stolen",
            }),
            needed(Test::Together {
                phases: SERVER,
                least: 3,
            }),
        ],
        cost: Cost::Stretch("host.steal.share"),
        fix: Fix::by_hand(
            Place::Host,
            "the hypervisor's configuration",
            "fewer or smaller guests on that machine, or a share of its own for this one",
            "the former shares",
        ),
        source: "proc(5), the column steal of /proc/stat",
    },
];

pub(super) const CONTENDED: &[Cause] = &[
    Cause {
        id: "cpu-pressure",
        title: "others use the host's processors",
        phases: SERVER,
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Cpu,
        signs: &[
            needed(Test::By(others_have_processors)),
            shape(STRETCHED),
            shape(Test::Together {
                phases: &[Phase::KeyExchange],
                least: 1,
            }),
        ],
        cost: Cost::Shared(&FOR_A_PROCESSOR),
        fix: Fix::by_hand(
            Place::Host,
            "the unit of the load, or of sshd",
            "systemctl set-property ssh.service CPUWeight=1000",
            "systemctl revert ssh.service",
        ),
        source: "/proc/pressure/cpu, avg10",
    },
    Cause {
        id: "memory-pressure",
        title: "the host is short of memory",
        phases: SERVER,
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::Memory,
        signs: &[known(Test::AtLeast {
            fact: "host.pressure.memory",
            number: 10.0,
            unit: " % of the last 10 s",
        })],
        cost: Cost::Shared(&NOT_KNOWN),
        fix: Fix::by_hand(
            Place::Host,
            "the unit of what takes the memory",
            "systemctl set-property ssh.service MemoryMin=64M, and MemoryHigh= for the load",
            "systemctl revert ssh.service",
        ),
        source: "/proc/pressure/memory, avg10",
    },
    Cause {
        id: "disk-load",
        title: "the host's disks are busy",
        phases: SERVER,
        tier: Tier::NoRoot,
        payer: Payer::Everyone,
        resource: Resource::BlockIo,
        signs: &[known(Test::AtLeast {
            fact: "host.pressure.io",
            number: 10.0,
            unit: " % of the last 10 s",
        })],
        cost: Cost::Shared(&FOR_A_DISK),
        fix: Fix::by_hand(
            Place::Host,
            "the unit of the load",
            "systemctl set-property LOAD.service IOWeight=10 (or ionice -c3)",
            "systemctl revert LOAD.service",
        ),
        source: "/proc/pressure/io, avg10",
    },
];

/// Whether processors are waited for on the host, and by the login, too: on a small host the pressure may be that of the logins that
/// were measured.
fn others_have_processors(case: &Case) -> Answer {
    let Some(pressure) = case.number("host.pressure.cpu") else {
        return crate::signs::unknown("host.pressure.cpu");
    };
    let told = format!(
        "host.pressure.cpu: {} % of the last 10 s",
        words::number(pressure)
    );
    if pressure < BUSY {
        return Answer::No(told);
    }
    let shares = ["trace.contention.share", "host.contention.share"];
    let Some(share) = shares.iter().find_map(|fact| case.number(fact)) else {
        return Answer::Yes(told);
    };
    let told = format!(
        "{told}; the login waited for a processor for {} % of its time",
        words::number(share)
    );
    if share < OWN_TURNS {
        Answer::No(told)
    } else {
        Answer::Yes(told)
    }
}

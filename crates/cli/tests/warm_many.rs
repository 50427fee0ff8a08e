//! A thousand passengers at once on one host.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sshoal_testbed::sshd::SshdSpec;
use support::passenger::Passenger;
use support::program::Running;
use support::wait_until;
use support::warm::Warm;

const PASSENGERS: u32 = 1000;

#[test]
fn a_thousand_have_a_session_at_the_same_time_and_each_its_own_end() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let warm = Warm::up(&SshdSpec::new(1).line("MaxSessions 100"));
    let nothing = File::options().write(true).open("/dev/null").unwrap();
    // All read the same pipe, and end with it.
    let (input, end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let mut passengers: Vec<Passenger> = (0..PASSENGERS)
        .map(|number| {
            let command = format!("read -r line; exit {}", number % 200);
            let streams = [input.as_fd(), nothing.as_fd(), nothing.as_fd()];
            Passenger::session(&warm, &command, streams)
        })
        .collect();
    for passenger in &mut passengers {
        passenger.is_in();
    }
    assert_eq!(warm.status()["hosts"][0]["sessions"], PASSENGERS);
    assert!(warm.shoal.hosts.logins() >= 10);
    // Some die, and nobody else notices.
    passengers.truncate(PASSENGERS as usize - 100);
    wait_until("the dead ones are gone", || {
        warm.status()["hosts"][0]["sessions"] == PASSENGERS - 100
    });
    let ended = Running::start(&mut warm.ssh("echo one more")).wait();
    assert_eq!(ended.expect(0).stdout(), "one more\n");
    drop((input, end));
    for (number, passenger) in passengers.iter_mut().enumerate() {
        let exit = passenger.hear();
        assert_eq!((exit[0], exit[2]), (0x8000_0004, number as u32 % 200));
        assert_eq!(passenger.0.read(&mut [0]).unwrap(), 0);
    }
    let ended = Running::start(&mut warm.ssh("echo well")).wait();
    assert_eq!(ended.expect(0).stdout(), "well\n");
}

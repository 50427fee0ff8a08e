//! Every pair of algorithms that client and server share, in logins that each run a command.

use std::time::{Duration, Instant};

use sshoal_crypto::KexAlgorithm;
use sshoal_interop::{KeyType, Offers, Options, Server, Software};

use crate::axes::{Axes, Cell, signature_algorithms};
use crate::driver::{Login, Task};
use crate::expected;
use crate::keys::{UserKeys, kind_of};
use crate::pairwise::combinations;
use crate::report::say;
use crate::tally::Tally;
use crate::trust::Trust;

/// Dropbear takes no more host keys (MAX_HOSTKEYS).
const HOST_KEYS_A_SERVER: usize = 4;

/// One of the servers that together have host keys of all kinds.
struct Host {
    server: Server,
    trust: Trust,
    kinds: Vec<KeyType>,
}

fn start(software: Software, keys: &UserKeys) -> Vec<Host> {
    let start = |kinds: &[KeyType]| {
        let options = Options {
            host_keys: kinds.to_vec(),
            authorized_keys: keys.authorized_keys(),
            ..Options::default()
        };
        let server = Server::start(software, &options).unwrap_or_else(|error| panic!("{error}"));
        Host {
            trust: Trust::of_keys(server.known_hosts()),
            server,
            kinds: kinds.to_vec(),
        }
    };
    KeyType::ALL.chunks(HOST_KEYS_A_SERVER).map(start).collect()
}

fn all_pairs_log_in(software: Software) {
    let keys = UserKeys::generate();
    let hosts = start(software, &keys);
    let offers: Vec<&Offers> = hosts.iter().map(|host| host.server.offers()).collect();
    let mut axes = Axes::shared(&offers);
    if !expected::skips_wrong_guesses(software) {
        axes.guesses = vec![false];
    }
    let began = Instant::now();
    let mut tally = Tally::new(axes.labels());
    for (number, combination) in combinations(axes.sizes()).into_iter().enumerate() {
        let cell = axes.cell(combination);
        let serves = |host: &&Host| host.kinds.contains(&kind_of(cell.host_key));
        let host = hosts.iter().find(serves).unwrap();
        tally.note(combination, log_in(host, &keys, &cell, number));
    }
    say(&format!(
        "\n{software:?}, {}: {} in {:.1} s\n{}  not offered: {}\n\n",
        offers[0].identification,
        tally.summary(),
        began.elapsed().as_secs_f64(),
        tally.table(),
        expected::not_offered(&axes).join(" "),
    ));
    let missing = expected::missing(software, &axes);
    assert!(
        missing.is_empty(),
        "{software:?} does not share {missing:?}"
    );
    let problems = tally.problems();
    let logs: String = hosts.iter().map(|host| host.server.log()).collect();
    assert!(problems.is_empty(), "{}\n{logs}", problems.join("\n"));
}

/// Logs in, says a value of its own to the server and hears it again, with an exit status of its own.
fn log_in(host: &Host, keys: &UserKeys, cell: &Cell, number: usize) -> Result<Duration, String> {
    let began = Instant::now();
    let login = Login {
        address: host.server.address(),
        user: host.server.user(),
        trust: &host.trust,
        settings: cell.protection.settings(cell.kex),
        host_key_algorithms: vec![cell.host_key],
        guess_key_exchange: cell.guess,
        credential: keys.credential(cell.user_key),
    };
    let status = 1 + number as u32 % 250;
    let mut heard = Vec::new();
    let task = Task {
        command: &format!("echo cell {number}; echo aside >&2; exit {status}"),
        input: None,
        output: &mut |data| heard.extend(data),
    };
    let outcome = login.run(task).map_err(|trouble| trouble.to_string())?;
    let wanted = format!("cell {number}\n");
    match heard == wanted.as_bytes()
        && outcome.stderr == b"aside\n"
        && outcome.status == Some(status)
    {
        true => Ok(began.elapsed()),
        false => Err(format!(
            "{:?}, {outcome:?}",
            String::from_utf8_lossy(&heard)
        )),
    }
}

/// The key exchange and host key that the server itself prefers, with the client's half sent at once.
fn a_right_guess_logs_in(software: Software) {
    let keys = UserKeys::generate();
    let hosts = start(software, &keys);
    let offers = hosts[0].server.offers();
    let axes = Axes::shared(&[offers]);
    let cell = Cell {
        kex: KexAlgorithm::by_name(&offers.kex_algorithms[0]).unwrap(),
        protection: axes.protections[0],
        host_key: signature_algorithms()
            .find(|name| *name == offers.server_host_key_algorithms[0])
            .unwrap(),
        user_key: axes.user_keys[0],
        guess: true,
    };
    let result = log_in(&hosts[0], &keys, &cell, 0);
    assert!(result.is_ok(), "{result:?}; {}", hosts[0].server.log());
}

for_each_software! {
    openssh OpenSsh: all_pairs_log_in a_right_guess_logs_in;
    dropbear Dropbear: all_pairs_log_in a_right_guess_logs_in;
    asyncssh Asyncssh: all_pairs_log_in a_right_guess_logs_in;
    go Go: all_pairs_log_in a_right_guess_logs_in;
    russh Russh: all_pairs_log_in a_right_guess_logs_in;
}

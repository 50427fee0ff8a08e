//! What resolving costs: `cargo bench -p sshoal-ssh-config`.
//!
//! Debian's stock configuration, and one with a thousand `Host` blocks; best of several runs.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use sshoal_ssh_config::{Answers, Config, Environment, Loader, Query, Supply};

const HOSTS: u32 = 1000;
const STOCK: &str =
    "Host *\n  SendEnv LANG LC_*\n  HashKnownHosts yes\n  GSSAPIAuthentication yes\n";

fn main() {
    let mut blocks = String::new();
    for host in 0..HOSTS {
        let _ = writeln!(
            blocks,
            "Host web{host} web{host}.example.com\n  HostName 10.0.{}.{}\n  User u{host}\n  \
             IdentityFile ~/.ssh/id_%h\n",
            host / 256,
            host % 256
        );
    }
    for (label, content) in [
        ("stock", STOCK.to_string()),
        ("1000 blocks", blocks + STOCK),
    ] {
        println!("{label}:");
        let time = best(9, || drop(black_box(load(&content))));
        println!("  load: {:.1} us", time.as_secs_f64() * 1e6);
        let config = load(&content);
        let names: Vec<String> = (0..HOSTS).map(|host| format!("web{host}")).collect();
        let time = best(9, || {
            for host in &names {
                black_box(
                    config
                        .resolve(
                            &Query {
                                host,
                                ..Query::default()
                            },
                            &Answers::default(),
                        )
                        .is_ok(),
                );
            }
        });
        println!(
            "  resolve a host: {:.2} us",
            time.as_secs_f64() * 1e6 / f64::from(HOSTS)
        );
    }
}

fn load(content: &str) -> Config {
    let environment = Environment {
        local_user: "me".into(),
        home: "/home/me".into(),
        local_host: "here".into(),
        ..Environment::default()
    };
    let mut loader = Loader::new(&[], Some("/f"), environment);
    while loader.poll_need().is_some() {
        loader.handle_supply(Supply::Content(content.into()));
    }
    loader.finish().unwrap_or_else(|error| panic!("{error}"))
}

fn best(runs: usize, mut work: impl FnMut()) -> Duration {
    let run = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..runs).map(run).min().unwrap_or_default()
}

//! How long lists of many hosts take: `cargo run --release -p sshoal-targets --example hundred_thousand`.

use std::{hint::black_box, time::Instant};

use sshoal_targets::{Expansion, HostList, Sources, Target, fold, parse_file};

fn main() {
    for hosts in [10_000, 100_000, 1_000_000] {
        println!("{hosts} hosts");
        let one = format!("web[1-{hosts}]");
        let list = expand(&one);
        timed("expand one range", || expand(&one).len());
        let names: Vec<&str> = list.iter().map(|target| target.name.as_str()).collect();
        let single = names.join(",");
        timed("expand names with commas", || expand(&single).len());
        let lines = names.join("\n");
        timed("read a host file", || {
            parse_file("f", lines.as_bytes()).map_or(0, |list| list.len())
        });
        let half = format!("{single}!web[1-{}]", hosts / 2);
        timed("take half of them away", || expand(&half).len());
        timed("fold, one number", || fold(&names).len());
        let rows = hosts / 100;
        let grid: Vec<String> = (0..hosts)
            .map(|n| format!("r{}n{}", n / 100, n % 100))
            .collect();
        timed(&format!("fold, a grid of {rows} by 100"), || {
            fold(&grid).len()
        });
        let sparse: Vec<String> = (0..hosts as u64)
            .map(|n| format!("r{}n{}", mixed(n) % 1000, mixed(n + 1) % 4000))
            .collect();
        timed("fold, two numbers at random", || fold(&sparse).len());
    }
}

fn timed(what: &str, work: impl FnOnce() -> usize) {
    let start = Instant::now();
    let size = black_box(work());
    println!(
        "  {what:<32} {:>9.1} ms  ({size})",
        start.elapsed().as_secs_f64() * 1e3
    );
}

fn expand(list: &str) -> Vec<Target> {
    let list = HostList::parse(list).expect("the list is sound");
    match Sources::default().expand(&list) {
        Ok(Expansion::Targets(targets)) => targets,
        other => panic!("{other:?}"),
    }
}

fn mixed(n: u64) -> u64 {
    let x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

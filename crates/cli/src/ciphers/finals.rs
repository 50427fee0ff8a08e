//! The fastest of the table once more, by themselves: its rounds are short, and what else the machines did has touched them more
//! than what tells two ciphers apart.

use super::advice::{self, ROUNDS};
use super::confirming::Scale;
use super::figures::Row;
use super::pairs::{By, Pair};
use super::trials::{Done, Performed, Trial, Trials};
use super::{MOST_BLOCKS, table};
use crate::watch::Watch;
use sshoal_proto::ServerLists;

/// How many are measured again, of each client.
const FINALISTS: usize = 4;
/// So many times as much is moved as for the table.
const LONGER: u64 = 3;

/// What came of it for a client: a row for each of them, or none if there is nothing to tell apart; or the exit status if a
/// signal has ended it.
pub(super) fn measured(
    trials: &Trials<'_>,
    host: &str,
    scale: &Scale,
    (rows, by): (&[Row], By),
    server: &ServerLists,
) -> Result<Result<Vec<Row>, u8>, Box<dyn std::error::Error>> {
    let pairs = advice::near_the_fastest(rows, by, server, FINALISTS);
    if pairs.len() < 2 {
        return Ok(Ok(Vec::new()));
    }
    let trial = |pair: &Pair| Trial {
        by,
        options: pair.options(),
        blocks: (scale.blocks * LONGER).min(MOST_BLOCKS),
    };
    // Another one is first in each round.
    let number = pairs.len();
    let turn = |round: usize| (0..number).map(move |at| (at + round) % number);
    let order: Vec<usize> = (0..ROUNDS).flat_map(turn).collect();
    let rounds: Vec<Trial> = order.iter().map(|&at| trial(&pairs[at])).collect();
    let number = table::rounds(ROUNDS as u32);
    let watch = Watch::new(format!("{host}: the fastest by {}, {number}", by.name()));
    let done = match trials.perform(&rounds, watch)? {
        Performed::Done(done) => done,
        Performed::CutShort(status) => return Ok(Err(status)),
    };
    let of = |wanted: usize| -> Vec<&Done> {
        let done = order.iter().zip(&done);
        done.filter_map(|(at, done)| (*at == wanted).then_some(done))
            .collect()
    };
    let rows = pairs.iter().enumerate();
    let rows = rows.map(|(at, pair)| Row::new(pair.clone(), by, scale.ways, &of(at)));
    Ok(Ok(rows.collect()))
}

/// What a conclusion is drawn from: those that were measured again, by that alone, and what the client takes anyhow; and the
/// others, which come behind. Where none was, all of them.
pub(super) fn judged<'r>(
    rows: &'r [Row],
    finals: &'r [Row],
    usual: Option<&Pair>,
) -> (Vec<&'r Row>, Vec<&'r Row>) {
    let (mut judged, mut others) = (Vec::new(), Vec::new());
    for row in rows {
        let mut same = finals.iter();
        let again = same.find(|it| (&it.pair, it.by) == (&row.pair, row.by) && it.rate().is_some());
        match again {
            Some(again) => judged.push(again),
            None if finals.is_empty() || Some(&row.pair) == usual => judged.push(row),
            None => others.push(row),
        }
    }
    (judged, others)
}

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

/// Rounds by those alone that may still be the fastest, fewer each time, and longer.
struct Final {
    /// How many take part, of each client.
    places: usize,
    rounds: usize,
    /// So many times as much is moved as for the table.
    longer: u64,
}

/// The first one is there since what was fast may have had bad luck in the table; by the last one it is decided.
const FINALS: [Final; 2] = [
    Final {
        places: 8,
        rounds: 4,
        longer: 1,
    },
    Final {
        places: 4,
        rounds: ROUNDS,
        longer: 3,
    },
];

/// What came of the last of them for a client: a row for each that took part, or none if there is nothing to tell apart; or the
/// exit status if a signal has ended it.
pub(super) fn measured(
    trials: &Trials<'_>,
    host: &str,
    scale: &Scale,
    (rows, by): (&[Row], By),
    server: &ServerLists,
) -> Result<Result<Vec<Row>, u8>, Box<dyn std::error::Error>> {
    let mut last: Option<Vec<Row>> = None;
    for (at, one) in FINALS.iter().enumerate() {
        let so_far = last.as_deref().unwrap_or(rows);
        let pairs = advice::near_the_fastest(so_far, by, server, one.places);
        if pairs.len() < 2 {
            break;
        }
        let is_needless = FINALS
            .get(at + 1)
            .is_some_and(|next| pairs.len() <= next.places);
        if is_needless {
            continue;
        }
        match played(trials, host, scale, (&pairs, by), one)? {
            Ok(rows) => last = Some(rows),
            Err(status) => return Ok(Err(status)),
        }
    }
    Ok(Ok(last.unwrap_or_default()))
}

/// A row for each that takes part.
fn played(
    trials: &Trials<'_>,
    host: &str,
    scale: &Scale,
    (pairs, by): (&[Pair], By),
    this: &Final,
) -> Result<Result<Vec<Row>, u8>, Box<dyn std::error::Error>> {
    let trial = |pair: &Pair| Trial {
        by,
        options: pair.options(),
        blocks: (scale.blocks * this.longer).min(MOST_BLOCKS),
    };
    // Another one is first in each round.
    let number = pairs.len();
    let turn = |round: usize| (0..number).map(move |at| (at + round) % number);
    let order: Vec<usize> = (0..this.rounds).flat_map(turn).collect();
    let rounds: Vec<Trial> = order.iter().map(|&at| trial(&pairs[at])).collect();
    let told = table::rounds(this.rounds as u32);
    let watch = Watch::new(format!(
        "{host}: the {number} fastest by {}, {told}",
        by.name()
    ));
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

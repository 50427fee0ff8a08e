//! The last word on what is recommended: a few rounds more of it and of what the client takes anyhow, one after the other. The
//! fastest of many has had luck, too, and what else the machines did has touched the rounds of the table: these have been chosen
//! by nothing, and the two lie side by side.

use super::advice::Advice;
use super::figures::{Row, Ways};
use super::pairs::{By, Pair};
use super::table;
use super::trials::{Done, Performed, Trial, Trials};
use crate::watch::Watch;

/// Rounds of both. That all of the one are faster by chance alone happens once in 924.
pub(super) const ROUNDS: usize = 6;

/// What the two are measured against each other with.
pub(super) struct Scale {
    pub(super) blocks: u64,
    pub(super) ways: Ways,
}

/// Confirms what would be changed, or takes it back; or the exit status if a signal has ended it.
pub(super) fn confirmed(
    trials: &Trials<'_>,
    host: &str,
    scale: &Scale,
    advice: Advice,
) -> Result<Result<Advice, u8>, Box<dyn std::error::Error>> {
    let (best, Some(usual)) = (advice.best().clone(), advice.usual.clone()) else {
        return Ok(Ok(advice));
    };
    // Where that was not measured there is nothing to compare.
    if !advice.is_change() || advice.gain.is_none() {
        return Ok(Ok(advice));
    }
    let by = advice.by;
    let rounds = duel(&best, &usual, by, scale.blocks);
    let watch = Watch::new(format!(
        "{host}: {}, {}",
        by.name(),
        table::rounds(ROUNDS as u32)
    ));
    let done = match trials.perform(&rounds, watch)? {
        Performed::Done(done) => done,
        Performed::CutShort(status) => return Ok(Err(status)),
    };
    let of = |first: &Pair, last: usize| {
        let done: Vec<&Done> = done.iter().skip(last).step_by(2).collect();
        Row::new(first.clone(), by, scale.ways, &done)
    };
    Ok(Ok(advice.confirmed(&of(&best, 0), &of(&usual, 1))))
}

/// All rounds: the one, then the other.
fn duel(best: &Pair, usual: &Pair, by: By, blocks: u64) -> Vec<Trial> {
    let trial = |pair: &Pair| Trial {
        by,
        options: pair.options(),
        blocks,
    };
    let round = [trial(best), trial(usual)];
    vec![round; ROUNDS].concat()
}

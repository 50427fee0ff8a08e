//! The last word on what is recommended: some rounds more of it and of what the client takes anyhow, in turn. The fastest of many
//! has had luck, too, and what else the machines did has touched the rounds of the table: these have been chosen by nothing, and
//! the two lie side by side.

use super::advice::{Advice, ROUNDS};
use super::figures::{Row, Ways};
use super::pairs::{By, Pair};
use super::table;
use super::trials::{Done, Performed, Trial, Trials};
use crate::watch::Watch;

/// How many may try, one after the other.
const CONTENDERS: usize = 2;

/// What the two are measured against each other with.
pub(super) struct Scale {
    pub(super) blocks: u64,
    pub(super) ways: Ways,
}

/// Has those that were better than the usual try again; or the exit status if a signal has ended it.
pub(super) fn decided(
    trials: &Trials<'_>,
    host: &str,
    scale: &Scale,
    advice: Advice,
) -> Result<Result<Advice, u8>, Box<dyn std::error::Error>> {
    let Some(usual) = advice.usual.clone() else {
        return Ok(Ok(advice));
    };
    let by = advice.by;
    let mut duels = Vec::new();
    for contender in advice.contenders.iter().take(CONTENDERS) {
        let rounds = duel(contender, &usual, by, scale.blocks);
        let number = table::rounds(ROUNDS as u32);
        let watch = Watch::new(format!(
            "{host}: {} by {}, {number}",
            contender.name(),
            by.name()
        ));
        let done = match trials.perform(&rounds, watch)? {
            Performed::Done(done) => done,
            Performed::CutShort(status) => return Ok(Err(status)),
        };
        let row = |pair: &Pair, rounds: &[&Done]| Row::new(pair.clone(), by, scale.ways, rounds);
        let is_whole = |one: &Done| !row(&usual, &[one]).rounds.is_empty();
        // A round counts in which both were measured. Which of them is first changes with every round.
        let rounds = done.chunks_exact(2).enumerate();
        let rounds = rounds.filter(|(_, both)| both.iter().all(is_whole));
        let (of_contender, of_usual): (Vec<&Done>, Vec<&Done>) = rounds
            .map(|(round, both)| match is_turned(round) {
                false => (&both[0], &both[1]),
                true => (&both[1], &both[0]),
            })
            .unzip();
        duels.push((row(contender, &of_contender), row(&usual, &of_usual)));
        if advice.clone().decided(&duels).is_change() {
            break;
        }
    }
    Ok(Ok(advice.decided(&duels)))
}

fn is_turned(round: usize) -> bool {
    round % 2 == 1
}

fn duel(contender: &Pair, usual: &Pair, by: By, blocks: u64) -> Vec<Trial> {
    let trial = |pair: &Pair| Trial {
        by,
        options: pair.options(),
        blocks,
    };
    let rounds = (0..ROUNDS).map(|round| match is_turned(round) {
        false => [trial(contender), trial(usual)],
        true => [trial(usual), trial(contender)],
    });
    rounds.collect::<Vec<_>>().concat()
}

//! The last word on what is recommended: some rounds more of it and of what the client takes anyhow, in turn. The fastest of many
//! has had luck, too, and what else the machines did has touched the rounds of the table: these have been chosen by nothing, and
//! the two lie side by side.

use super::advice::{Advice, ROUNDS};
use super::figures::{Row, Ways};
use super::pairs::Pair;
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
        let trial = |pair: &Pair| Trial {
            by,
            options: pair.options(),
            blocks: scale.blocks,
        };
        let name = format!("{} by {}", contender.name(), by.name());
        let turns = match in_turn(trials, host, &name, [trial(contender), trial(&usual)])? {
            Ok(turns) => turns,
            Err(status) => return Ok(Err(status)),
        };
        let row = |pair: &Pair, rounds: &[&Done]| Row::new(pair.clone(), by, scale.ways, rounds);
        let is_whole = |one: &Done| !row(&usual, &[one]).rounds.is_empty();
        // A round counts in which both were measured.
        let turns = turns.iter();
        let turns = turns.filter(|(one, other)| is_whole(one) && is_whole(other));
        let (of_contender, of_usual): (Vec<&Done>, Vec<&Done>) =
            turns.map(|(one, other)| (one, other)).unzip();
        duels.push((row(contender, &of_contender), row(&usual, &of_usual)));
        if advice.clone().decided(&duels).is_change() {
            break;
        }
    }
    Ok(Ok(advice.decided(&duels)))
}

/// Rounds of two, in their order.
type Turns = Vec<(Done, Done)>;

/// Two that are measured in turn, which of them is first changing with every round; or the exit status if a signal has ended it.
pub(super) fn in_turn(
    trials: &Trials<'_>,
    host: &str,
    name: &str,
    [one, other]: [Trial; 2],
) -> Result<Result<Turns, u8>, Box<dyn std::error::Error>> {
    let is_turned = |round: usize| round % 2 == 1;
    let rounds = (0..ROUNDS).flat_map(|round| match is_turned(round) {
        false => [one.clone(), other.clone()],
        true => [other.clone(), one.clone()],
    });
    let rounds: Vec<Trial> = rounds.collect();
    let number = table::rounds(ROUNDS as u32);
    let watch = Watch::new(format!("{host}: {name}, {number}"));
    let mut done = match trials.perform(&rounds, watch)? {
        Performed::Done(done) => done.into_iter(),
        Performed::CutShort(status) => return Ok(Err(status)),
    };
    let mut turns = Vec::new();
    while let (Some(first), Some(second)) = (done.next(), done.next()) {
        turns.push(match is_turned(turns.len()) {
            false => (first, second),
            true => (second, first),
        });
    }
    Ok(Ok(turns))
}

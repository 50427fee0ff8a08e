//! Which combination to use, and what is gained by it: only what was gained once more when it was tried again.

use sshoal_net::Protection;
use sshoal_proto::ServerLists;

use super::figures::{Cost, Round, Row};
use super::pairs::{By, Pair};
use super::weak;

/// Rates that differ by less are the same: then the processors decide, or else noise would.
const SAME: f64 = 0.03;
/// The same of rates whose rounds do not tell them apart.
const LIKELY_SAME: f64 = 0.15;
/// What was as fast as that part of the fastest, in the short rounds of the table, may be as fast as it.
const NEAR: f64 = 0.7;
/// Rounds of a duel, and how many must be won: by chance alone that happens once in 28.
pub(super) const ROUNDS: usize = 8;
pub(super) const WINS: usize = 7;
/// Of so many rounds one is left out of a comparison that had bad luck.
const ONE_IN: usize = 10;

/// What is recommended for one client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Advice {
    pub(super) by: By,
    /// Best first; what the client takes by itself, where nothing is certain to be better.
    pub(super) ranked: Vec<Pair>,
    /// What the client takes where nothing is configured.
    pub(super) usual: Option<Pair>,
    /// How many times as fast the best one is as that.
    pub(super) gain: Option<f64>,
    pub(super) verdict: Verdict,
    /// What was measured to be better than the usual, which is good itself: best first.
    pub(super) contenders: Vec<Pair>,
}

/// What there is to be gained.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// The best one is faster than the usual, or the usual is not to be recommended or was not measured.
    Faster,
    /// It is as fast, and takes so much less CPU: this part of it.
    Cheaper(f64),
    /// The usual is the best.
    Usual,
    /// The usual is put first: something was so many times as fast, and that is not certain.
    Unsure(Pair, f64),
}

/// The advice for a client, if it has measured anything that may be recommended with this server. `others` come behind, however fast.
pub(super) fn advice(
    (rows, others): (&[&Row], &[&Row]),
    by: By,
    usual: Option<Pair>,
    server: &ServerLists,
) -> Option<Advice> {
    let ranked = by_rate(rows.iter().copied(), by, server);
    let &(fastest, most) = ranked.first()?;
    let is_level = |(row, rate): &(&Row, f64)| {
        let is_likely = *rate >= most * (1.0 - LIKELY_SAME);
        *rate >= most * (1.0 - SAME) || (is_likely && !are_apart(row, fastest))
    };
    let (mut level, slower): (Vec<_>, Vec<_>) = ranked.into_iter().partition(is_level);
    sort_by_cost(&mut level);
    let others = by_rate(others.iter().copied(), by, server);
    let ranked = level.into_iter().chain(slower).chain(others);
    let mut ranked: Vec<&Row> = ranked.map(|(row, _)| row).collect();
    let is_usual = |row: &&Row| Some(&row.pair) == usual.as_ref();
    let now = rows
        .iter()
        .copied()
        .filter(|row| row.by == by)
        .find(is_usual);
    let at = ranked.iter().position(is_usual);
    let contenders = ranked[..at.unwrap_or(0)].iter();
    let contenders = contenders.map(|row| row.pair.clone()).collect();
    let verdict = match (now, at) {
        (Some(_), Some(0)) => Verdict::Usual,
        // Until it has been tried again.
        (Some(now), Some(at)) => {
            let (best, gain) = (ranked[0], times(ranked[0], now));
            ranked[..=at].rotate_right(1);
            Verdict::Unsure(best.pair.clone(), gain.unwrap_or(1.0))
        }
        _ => Verdict::Faster,
    };
    Some(Advice {
        by,
        gain: now.and_then(|now| times(ranked[0], now)),
        ranked: ranked.into_iter().map(|row| row.pair.clone()).collect(),
        usual,
        verdict,
        contenders,
    })
}

/// Those of a client's that may be recommended with this server and were measured, the fastest first.
fn by_rate<'r>(
    rows: impl Iterator<Item = &'r Row>,
    by: By,
    server: &ServerLists,
) -> Vec<(&'r Row, f64)> {
    let measured = rows.filter(|row| {
        let Row { by: of, pair, .. } = row;
        *of == by && pair.is_recommendable() && !weak::is_exposed(&pair.cipher, server)
    });
    let rated = measured.filter_map(|row| row.rate().map(|rate| (row, rate)));
    let mut ranked: Vec<(&Row, f64)> = rated.collect();
    ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    ranked
}

/// Which of a client's may be the fastest, by rounds that are short: at most so many.
pub(super) fn near_the_fastest(
    rows: &[Row],
    by: By,
    server: &ServerLists,
    most: usize,
) -> Vec<Pair> {
    let ranked = by_rate(rows.iter(), by, server);
    let fastest = ranked.first().map_or(0.0, |(_, rate)| *rate);
    let near = ranked.iter().filter(|(_, rate)| *rate >= fastest * NEAR);
    near.take(most).map(|(row, _)| row.pair.clone()).collect()
}

/// The cheapest first, by the ends of which the costs of all are known; of those that cost the same, the fastest.
fn sort_by_cost(rows: &mut [(&Row, f64)]) {
    let all_know =
        |end: fn(&Cost) -> Option<f64>| rows.iter().all(|(row, _)| end(&row.cost()).is_some());
    let ends: [fn(&Cost) -> Option<f64>; 2] = [|cost| cost.client, |cost| cost.server];
    let known: Vec<_> = ends.into_iter().filter(|&end| all_know(end)).collect();
    let cost = |row: &Row| -> f64 { known.iter().filter_map(|end| end(&row.cost())).sum() };
    rows.sort_by(|(one, _), (other, _)| cost(one).total_cmp(&cost(other)));
    let least = rows.first().map_or(0.0, |(row, _)| cost(row));
    let same = rows.partition_point(|(row, _)| cost(row) <= least * (1.0 + SAME));
    rows[..same].sort_by(|(_, one), (_, other)| other.total_cmp(one));
}

fn rates(row: &Row) -> Vec<f64> {
    row.rounds.iter().map(|round| round.rate).collect()
}

fn times(row: &Row, usual: &Row) -> Option<f64> {
    Some(row.rate()? / usual.rate()?)
}

/// What one has over the usual where both were measured in turn: in [`WINS`] rounds at the least.
fn won(row: &Row, usual: &Row) -> Option<Verdict> {
    let gain = times(row, usual)?;
    let rounds = || row.rounds.iter().zip(&usual.rounds);
    let faster = rounds().filter(|(it, usual)| it.rate > usual.rate);
    if gain > 1.0 + SAME && faster.count() >= WINS {
        return Some(Verdict::Faster);
    }
    let is_cheaper = |it: &Round, usual: &Round| {
        let both = it.cost.beside(&usual.cost);
        both.is_some_and(|(it, usual)| it < usual)
    };
    let cheaper = rounds().filter(|(it, usual)| is_cheaper(it, usual));
    let (cost, of_usual) = row.cost().beside(&usual.cost())?;
    let part = cost / of_usual;
    let is_worth_it = gain > 1.0 - SAME && part < 1.0 - SAME;
    (is_worth_it && cheaper.count() >= WINS).then_some(Verdict::Cheaper(part))
}

/// Whether the one is slower than the other beyond doubt: where both were measured in turn, in [`WINS`] of [`ROUNDS`].
fn are_apart(low: &Row, high: &Row) -> bool {
    if [low.rounds.len(), high.rounds.len()] != [ROUNDS; 2] {
        return are_all_below(rates(low), rates(high));
    }
    let rounds = low.rounds.iter().zip(&high.rounds);
    rounds.filter(|(low, high)| low.rate < high.rate).count() >= WINS
}

/// Whether all of the one are below all of the other, but for a tenth of each. A single round does not tell how much it
/// might differ from another.
fn are_all_below(mut low: Vec<f64>, mut high: Vec<f64>) -> bool {
    low.sort_by(f64::total_cmp);
    high.sort_by(f64::total_cmp);
    let highest = low.len().checked_sub(1 + low.len() / ONE_IN);
    let highest = highest.map(|at| low[at]).filter(|_| low.len() > 1);
    let lowest = high.get(high.len() / ONE_IN).filter(|_| high.len() > 1);
    highest.zip(lowest).is_some_and(|(low, high)| low < *high)
}

impl Advice {
    /// After duels with the usual, of the first contenders one after the other: they alone count.
    pub(super) fn decided(mut self, duels: &[(Row, Row)]) -> Advice {
        let Some((first, usual)) = duels.first() else {
            return self;
        };
        let winner = duels.iter().find_map(|(row, usual)| {
            let verdict = won(row, usual)?;
            Some((&row.pair, verdict, times(row, usual)))
        });
        let unsure = || {
            let gain = times(first, usual).unwrap_or(1.0);
            let verdict = Verdict::Unsure(first.pair.clone(), gain);
            (&usual.pair, verdict, Some(1.0))
        };
        let (front, verdict, gain) = winner.unwrap_or_else(unsure);
        self.ranked.retain(|pair| pair != front);
        self.ranked.insert(0, front.clone());
        (self.verdict, self.gain) = (verdict, gain);
        self
    }

    /// Whether there is something to be changed.
    pub(super) fn is_change(&self) -> bool {
        matches!(self.verdict, Verdict::Faster | Verdict::Cheaper(_))
    }

    /// What is to be used.
    pub(super) fn best(&self) -> &Pair {
        // Made of one at least.
        &self.ranked[0]
    }

    /// The lines of ssh_config, the first choice first and what else may be recommended behind it.
    pub(super) fn lines(&self, host: &str) -> Vec<String> {
        let ciphers = self.ranked.iter().map(|pair| pair.cipher.as_str());
        let macs = self.ranked.iter().filter_map(|pair| pair.mac.as_deref());
        let (ciphers, macs) = (each_once(ciphers), each_once(macs));
        let mut lines = vec![
            format!("Host {host}"),
            format!("    Ciphers {}", ciphers.join(",")),
        ];
        if !macs.is_empty() {
            lines.push(format!("    MACs {}", macs.join(",")));
        }
        lines
    }

    /// What sshoal's own client is to offer first.
    pub(super) fn protections(&self) -> Vec<Protection> {
        self.ranked.iter().filter_map(Pair::protection).collect()
    }
}

fn each_once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ciphers::figures::{Direction, Round, median};

    /// The advice by these rows alone.
    fn advice(rows: &[Row], by: By, usual: Option<Pair>, server: &ServerLists) -> Option<Advice> {
        let rows: Vec<&Row> = rows.iter().collect();
        super::advice((&rows, &[]), by, usual, server)
    }

    fn pair(name: &str) -> Pair {
        let (cipher, mac) = match name.split_once(' ') {
            None => (name, None),
            Some((cipher, mac)) => (cipher, Some(mac.to_owned())),
        };
        let cipher = cipher.to_owned();
        Pair { cipher, mac }
    }

    fn row(name: &str, by: By, rate: f64, cpu: f64) -> Row {
        of_rounds(name, by, &[rate; 3], &[cpu; 3])
    }

    fn of_rounds(name: &str, by: By, rates: &[f64], costs: &[f64]) -> Row {
        let direction = Direction {
            rate: median(rates.to_vec()).unwrap(),
            rates: rates.to_vec(),
            client_cpu: median(costs.iter().map(|cost| cost / 2.0).collect()),
            server_cpu: None,
        };
        let rounds = rates.iter().zip(costs);
        let rounds = rounds.map(|(&rate, &cost)| Round {
            rate,
            cost: Cost {
                client: Some(cost),
                server: None,
            },
        });
        Row {
            pair: pair(name),
            by,
            down: Some(direction.clone()),
            up: Some(direction),
            rounds: rounds.collect(),
            failure: None,
        }
    }

    /// A server with strict key exchange.
    fn strict() -> ServerLists {
        ServerLists {
            kex: vec!["kex-strict-s-v00@openssh.com".to_owned()],
            ..ServerLists::default()
        }
    }

    const GCM: &str = "aes128-gcm@openssh.com";
    const UMAC: &str = "aes128-ctr umac-64-etm@openssh.com";
    const CHACHA: &str = "chacha20-poly1305@openssh.com";

    #[test]
    fn the_fastest_of_a_client_is_recommended_and_what_it_gains_told() {
        let rows = [
            row(CHACHA, By::Ssh, 100.0, 1.0),
            row(
                "aes128-cbc hmac-sha2-256-etm@openssh.com",
                By::Ssh,
                900.0,
                1.0,
            ),
            row("aes128-ctr hmac-sha2-256", By::Ssh, 800.0, 1.0),
            row(UMAC, By::Ssh, 300.0, 1.0),
            row(GCM, By::Native, 500.0, 1.0),
            row(CHACHA, By::Native, 400.0, 1.0),
        ];
        let duel = [
            of_rounds(UMAC, By::Ssh, &[300.0; 8], &[1.0; 8]),
            of_rounds(CHACHA, By::Ssh, &[100.0; 8], &[1.0; 8]),
        ];
        let of_ssh = advice(&rows, By::Ssh, Some(pair(CHACHA)), &strict()).unwrap();
        let of_ssh = of_ssh.decided(&[duel.into()]);
        assert_eq!(*of_ssh.best(), pair(UMAC));
        assert_eq!(of_ssh.gain, Some(3.0));
        assert_eq!(
            of_ssh.lines("web1"),
            [
                "Host web1",
                "    Ciphers aes128-ctr,chacha20-poly1305@openssh.com",
                "    MACs umac-64-etm@openssh.com",
            ]
        );
        let native = advice(&rows, By::Native, Some(pair(GCM)), &strict()).unwrap();
        assert_eq!((native.best(), native.gain), (&pair(GCM), Some(1.0)));
        assert_eq!(native.verdict, Verdict::Usual);
        assert!(of_ssh.is_change() && !native.is_change());
        assert_eq!(native.protections().len(), 2);
    }

    #[test]
    fn a_cipher_that_is_weak_with_this_server_is_not_recommended() {
        let rows = [
            row(CHACHA, By::Ssh, 300.0, 1.0),
            row(UMAC, By::Ssh, 100.0, 1.0),
        ];
        let usual = || Some(pair(CHACHA));
        let best = |server: ServerLists| {
            let found = advice(&rows, By::Ssh, usual(), &server).unwrap();
            found.best().clone()
        };
        assert_eq!(best(strict()), pair(CHACHA));
        assert_eq!(best(ServerLists::default()), pair(UMAC));
        assert_eq!(
            advice(&rows[..1], By::Ssh, usual(), &ServerLists::default()),
            None
        );
    }

    #[test]
    fn where_the_network_is_the_limit_the_processors_decide() {
        let rows = [
            row(CHACHA, By::Native, 100.0, 3.0),
            row(GCM, By::Native, 99.0, 1.0),
            row(UMAC, By::Native, 90.0, 0.1),
        ];
        let advice = advice(&rows, By::Native, None, &strict()).unwrap();
        assert_eq!(advice.ranked, [pair(GCM), pair(CHACHA), pair(UMAC)]);
        assert_eq!(advice.gain, None);
    }

    #[test]
    fn of_those_that_their_rounds_do_not_tell_apart_the_cheaper_one_is_first() {
        let found = |rates: &[f64]| {
            let rows = [
                of_rounds(GCM, By::Ssh, &[330.0, 300.0, 360.0], &[3.5; 3]),
                of_rounds(UMAC, By::Ssh, rates, &[3.0; 3]),
            ];
            let advice = advice(&rows, By::Ssh, None, &strict()).unwrap();
            advice.best().clone()
        };
        assert_eq!(found(&[310.0, 290.0, 340.0]), pair(UMAC));
        assert_eq!(found(&[295.0, 290.0, 298.0]), pair(GCM));
        assert_eq!(found(&[270.0, 200.0, 340.0]), pair(GCM));
    }

    #[test]
    fn of_those_that_cost_the_same_the_fastest_is_first() {
        let found = |cost: f64| {
            let rows = [
                row(CHACHA, By::Ssh, 99.0, 3.0),
                row(UMAC, By::Ssh, 98.0, 2.95),
                row(GCM, By::Ssh, 100.0, cost),
            ];
            let advice = advice(&rows, By::Ssh, None, &strict()).unwrap();
            advice.best().clone()
        };
        assert_eq!(found(3.0), pair(GCM));
        assert_eq!(found(3.1), pair(CHACHA));
    }

    #[test]
    fn what_was_measured_in_turn_is_told_apart_by_the_rounds_won() {
        let slower = [90.0, 93.0, 88.0, 101.0, 90.0, 91.0, 92.0, 89.0];
        let mut faster = [97.0, 99.0, 96.0, 110.0, 95.0, 99.0, 100.0, 97.0];
        let found = |faster: &[f64]| {
            let rows = [
                of_rounds(GCM, By::Ssh, faster, &[3.0; 8]),
                of_rounds(UMAC, By::Ssh, &slower, &[1.0; 8]),
            ];
            let advice = advice(&rows, By::Ssh, None, &strict()).unwrap();
            advice.best().clone()
        };
        assert_eq!(found(&faster), pair(GCM));
        (faster[0], faster[5]) = (89.0, 90.0);
        assert_eq!(found(&faster), pair(UMAC));
    }

    #[test]
    fn what_was_not_measured_again_comes_behind_what_was() {
        let rows = [row(GCM, By::Ssh, 90.0, 1.0), row(UMAC, By::Ssh, 80.0, 1.0)];
        let lucky = row(CHACHA, By::Ssh, 99.0, 1.0);
        let rows: Vec<&Row> = rows.iter().collect();
        let found = super::advice((&rows, &[&lucky]), By::Ssh, None, &strict()).unwrap();
        assert_eq!(found.ranked, [pair(GCM), pair(UMAC), pair(CHACHA)]);
    }

    #[test]
    fn few_that_may_be_the_fastest_are_measured_again() {
        let rows = [
            row(CHACHA, By::Ssh, 69.0, 1.0),
            row(UMAC, By::Ssh, 71.0, 1.0),
            row(
                "aes128-cbc hmac-sha2-256-etm@openssh.com",
                By::Ssh,
                95.0,
                1.0,
            ),
            row(GCM, By::Ssh, 100.0, 1.0),
            row(CHACHA, By::Native, 99.0, 1.0),
        ];
        let found = |most| near_the_fastest(&rows, By::Ssh, &strict(), most);
        assert_eq!(found(4), [pair(GCM), pair(UMAC)]);
        assert_eq!(found(1), [pair(GCM)]);
    }

    #[test]
    fn what_was_not_tried_again_is_not_recommended() {
        let found = |rates: &[f64]| {
            let costs = vec![3.0; rates.len()];
            let rows = [
                of_rounds(CHACHA, By::Native, &[64.0, 140.0, 58.0], &[3.0; 3]),
                of_rounds(GCM, By::Native, rates, &costs),
            ];
            advice(&rows, By::Native, Some(pair(CHACHA)), &strict()).unwrap()
        };
        // Twice as fast by its median, and once slower than the usual one was once.
        let unsure = found(&[128.0, 110.0, 150.0]);
        assert_eq!(unsure.ranked, [pair(CHACHA), pair(GCM)]);
        assert_eq!(unsure.verdict, Verdict::Unsure(pair(GCM), 2.0));
        assert_eq!((unsure.gain, unsure.is_change()), (Some(1.0), false));
        // One round may be anything.
        assert_eq!(found(&[1024.0]).verdict, Verdict::Unsure(pair(GCM), 16.0));
    }

    #[test]
    fn duels_decide_and_the_second_may_win_where_the_first_was_lucky() {
        let first = || {
            let rows = [
                row(CHACHA, By::Native, 100.0, 3.0),
                row(GCM, By::Native, 200.0, 3.0),
                row(UMAC, By::Native, 150.0, 3.0),
            ];
            advice(&rows, By::Native, Some(pair(CHACHA)), &strict()).unwrap()
        };
        assert_eq!(first().contenders, [pair(GCM), pair(UMAC)]);
        let usual = || of_rounds(CHACHA, By::Native, &[100.0; 8], &[3.0; 8]);
        let duel = |name: &str, rates: &[f64], costs: &[f64]| {
            (of_rounds(name, By::Native, rates, costs), usual())
        };
        let sure = first().decided(&[duel(GCM, &[120.0; 8], &[3.0; 8])]);
        assert_eq!((sure.best(), sure.gain), (&pair(GCM), Some(1.2)));
        assert_eq!(sure.verdict, Verdict::Faster);
        let cheaper = first().decided(&[duel(GCM, &[100.0; 8], &[1.5; 8])]);
        assert_eq!(cheaper.verdict, Verdict::Cheaper(0.5));
        // One round may have had bad luck, two are too many.
        let mut rates = [120.0; 8];
        rates[3] = 90.0;
        let sure = first().decided(&[duel(GCM, &rates, &[3.0; 8])]);
        assert_eq!(sure.verdict, Verdict::Faster);
        rates[5] = 90.0;
        let lucky = || duel(GCM, &rates, &[3.0; 8]);
        let unsure = first().decided(&[lucky()]);
        assert_eq!(unsure.ranked, [pair(CHACHA), pair(GCM), pair(UMAC)]);
        assert_eq!(unsure.verdict, Verdict::Unsure(pair(GCM), 1.2));
        assert_eq!((unsure.gain, unsure.is_change()), (Some(1.0), false));
        let second = first().decided(&[lucky(), duel(UMAC, &[140.0; 8], &[3.0; 8])]);
        assert_eq!((second.best(), second.gain), (&pair(UMAC), Some(1.4)));
        // Too few were measured.
        let failed = first().decided(&[duel(GCM, &[200.0; 6], &[3.0; 6])]);
        assert_eq!(failed.verdict, Verdict::Unsure(pair(GCM), 2.0));
        assert_eq!(first().decided(&[]), first());
    }

    #[test]
    fn what_is_not_known_of_a_cost_makes_nothing_cheaper() {
        let mut whole = row(UMAC, By::Ssh, 100.0, 2.0);
        for way in [&mut whole.down, &mut whole.up] {
            way.as_mut().unwrap().server_cpu = Some(3.0);
        }
        let part = row(GCM, By::Ssh, 100.0, 3.0);
        let found = advice(&[part, whole], By::Ssh, None, &strict()).unwrap();
        assert_eq!(*found.best(), pair(UMAC), "by the client's alone");
    }

    #[test]
    fn of_many_rounds_one_in_ten_may_be_out_of_the_way() {
        let mut rates = vec![150.0; 20];
        (rates[3], rates[7]) = (1.0, 2.0);
        assert!(are_all_below(vec![100.0; 20], rates.clone()));
        rates[11] = 3.0;
        assert!(!are_all_below(vec![100.0; 20], rates));
        assert!(!are_all_below(vec![1.0], vec![2.0]));
        assert!(!are_all_below(Vec::new(), Vec::new()));
    }

    #[test]
    fn what_the_client_takes_is_no_advice_if_it_is_weak() {
        let usual = pair("aes128-ctr hmac-sha1");
        let rows = [
            row("aes128-ctr hmac-sha1", By::Native, 900.0, 1.0),
            row(GCM, By::Native, 100.0, 1.0),
        ];
        let advice = advice(&rows, By::Native, Some(usual), &strict()).unwrap();
        assert_eq!((advice.best(), advice.is_change()), (&pair(GCM), true));
        assert_eq!(advice.contenders, [], "it is compared with nothing");
    }

    #[test]
    fn a_direction_that_failed_makes_no_winner() {
        let mut half = row(GCM, By::Native, 900.0, 1.0);
        (half.down, half.rounds) = (None, Vec::new());
        let rows = [half, row(CHACHA, By::Native, 100.0, 1.0)];
        let advice = advice(&rows, By::Native, Some(pair(CHACHA)), &strict()).unwrap();
        assert_eq!(advice.ranked, [pair(CHACHA)]);
    }

    #[test]
    fn there_is_no_advice_without_a_measurement() {
        assert_eq!(advice(&[], By::Native, None, &strict()), None);
        let weak = [row(
            "3des-cbc hmac-sha2-256-etm@openssh.com",
            By::Ssh,
            9.0,
            1.0,
        )];
        assert_eq!(advice(&weak, By::Ssh, None, &strict()), None);
    }
}

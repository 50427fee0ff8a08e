//! Which descriptor becomes which in the child, and in an order in which none is overwritten before it was copied.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

/// One descriptor of the child: `source` of the caller becomes `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) source: RawFd,
    pub(crate) target: RawFd,
}

/// The moves of a start, to be made one after the other, in any order.
#[derive(Debug, Default)]
pub(crate) struct Wiring {
    moves: Vec<Move>,
    /// Copies of sources that stood where another move's target is; close-on-exec, closed when the start is over.
    _parked: Vec<OwnedFd>,
}

impl Wiring {
    /// Settles the moves. A source that is the target of another move is first copied, by `duplicate`, to a number
    /// above all targets: `duplicate(source, at_least)`.
    pub(crate) fn new(
        mut moves: Vec<Move>,
        mut duplicate: impl FnMut(RawFd, RawFd) -> Result<OwnedFd, Errno>,
    ) -> Result<Wiring, Errno> {
        let mut parked = Vec::new();
        for position in 0..moves.len() {
            let Move { source, target } = moves[position];
            if source == target || moves.iter().all(|other| other.target != source) {
                continue;
            }
            let above = moves.iter().map(|other| other.target).max().unwrap_or(0) + 1;
            let copy = duplicate(source, above)?;
            moves[position].source = copy.as_raw_fd();
            parked.push(copy);
        }
        Ok(Wiring {
            moves,
            _parked: parked,
        })
    }

    pub(crate) fn moves(&self) -> &[Move] {
        &self.moves
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::fs::File;

    /// What the table of descriptors is after the moves, made in their order, each as dup2 makes it.
    fn simulate(moves: &[Move], table: &mut BTreeMap<RawFd, char>) {
        for Move { source, target } in moves {
            let what = table[source];
            table.insert(*target, what);
        }
    }

    proptest! {
        #[test]
        fn each_target_gets_what_its_source_was(sources in proptest::collection::vec(0..8i32, 1..6), shuffled in Just((0..8).collect::<Vec<i32>>()).prop_shuffle()) {
            let before: BTreeMap<RawFd, char> = (0..8).zip('a'..).collect();
            let wanted: Vec<Move> = sources.iter().zip(&shuffled).map(|(source, target)| Move { source: *source, target: *target }).collect();

            let mut table = before.clone();
            let wiring = Wiring::new(wanted.clone(), |source, above| {
                // A real descriptor, for a real number; what it would be a copy of is noted in the table.
                let copy = OwnedFd::from(File::open("/dev/null").unwrap());
                let copy = rustix::io::fcntl_dupfd_cloexec(&copy, above.max(100)).unwrap();
                table.insert(copy.as_raw_fd(), before[&source]);
                Ok(copy)
            }).unwrap();
            simulate(wiring.moves(), &mut table);

            for Move { source, target } in wanted {
                prop_assert_eq!(table[&target], before[&source]);
            }
        }
    }

    #[test]
    fn a_copy_is_asked_for_above_all_targets() {
        let (source, target) = (3, 9);
        let crossed = vec![
            Move { source, target },
            Move {
                source: target,
                target: source,
            },
        ];
        let mut asked = Vec::new();
        let copied = Wiring::new(crossed, |_, at_least| {
            asked.push(at_least);
            Ok(OwnedFd::from(File::open("/dev/null").unwrap()))
        });
        assert!(copied.is_ok());
        assert_eq!(asked.first(), Some(&10));
    }

    #[test]
    fn nothing_is_copied_where_nothing_is_in_the_way() {
        let plain = vec![
            Move {
                source: 5,
                target: 0,
            },
            Move {
                source: 5,
                target: 2,
            },
            Move {
                source: 1,
                target: 1,
            },
        ];
        let wiring = Wiring::new(plain.clone(), |_, _| panic!("no copy is needed")).unwrap();
        assert_eq!(wiring.moves(), plain);
    }

    #[test]
    fn a_copy_that_fails_is_the_answer() {
        let swap = vec![
            Move {
                source: 0,
                target: 1,
            },
            Move {
                source: 1,
                target: 0,
            },
        ];
        assert_eq!(
            Wiring::new(swap, |_, _| Err(Errno::MFILE)).unwrap_err(),
            Errno::MFILE
        );
    }
}

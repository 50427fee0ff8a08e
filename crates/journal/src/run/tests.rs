#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// All records of a journal that comes in pieces of this size, and how many of its octets add up.
fn read(octets: &[u8], piece: usize) -> Result<(Vec<RunRecord>, u64), RunJournalError> {
    let mut reader = RunReader::default();
    let mut records = Vec::new();
    for piece in octets.chunks(piece) {
        reader.handle_input(piece);
        while let Some(record) = reader.poll_record()? {
            records.push(record);
        }
    }
    Ok((records, reader.valid()))
}

fn ending() -> impl Strategy<Value = Ending> {
    let known = prop::sample::select(vec![
        Known::NotSent,
        Known::Discarded,
        Known::MayHaveRun,
        Known::Ran,
    ]);
    prop_oneof![
        any::<u32>().prop_map(Ending::Exit),
        (".*", any::<bool>(), ".*").prop_map(|(name, core_dumped, message)| Ending::Signal {
            name,
            core_dumped,
            message
        }),
        (".*", ".*", ".*", known).prop_map(|(kind, detail, remedy, known)| Ending::Failed {
            kind,
            detail,
            remedy,
            known
        }),
        Just(Ending::NotStarted),
    ]
}

fn host() -> impl Strategy<Value = PlannedHost> {
    let option = (".{0,9}", ".{0,9}");
    (
        (".{0,9}", ".{0,9}", prop::option::of(".{0,9}"), any::<u16>()),
        prop::collection::vec(option, 0..3),
        (prop::option::of(".{0,9}"), any::<u16>()),
        (".{0,9}", prop::option::of(".{0,9}")),
    )
        .prop_map(
            |((label, name, user, port), options, login, way)| PlannedHost {
                label,
                name,
                user,
                port,
                options,
                login_user: login.0,
                login_port: login.1,
                transport: way.0,
                why: way.1,
            },
        )
}

fn boot() -> impl Strategy<Value = Boot> {
    any::<([u8; 16], bool)>().prop_map(|(id, is_synced)| Boot { id, is_synced })
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Gone),
        Just(Verdict::GoneAfterKill),
        ".{0,9}".prop_map(Verdict::NotConfirmed),
    ]
}

fn record() -> impl Strategy<Value = RunRecord> {
    let octets = || prop::collection::vec(any::<u8>(), 0..40);
    let plan = (
        ".{0,9}",
        ".{0,9}",
        any::<u64>(),
        octets(),
        any::<(bool, u32)>(),
    );
    let file = (
        ".{0,9}",
        octets(),
        any::<u64>(),
        any::<u64>(),
        any::<[u8; 16]>(),
    );
    let times = prop::array::uniform9(prop::option::of(0..u64::MAX));
    prop_oneof![
        plan.prop_map(
            |(version, command, at_ms, folder, (keeps_output, canaries))| RunRecord::Plan(Plan {
                version,
                command,
                at_ms,
                folder,
                keeps_output,
                canaries
            })
        ),
        octets().prop_map(RunRecord::Argument),
        file.prop_map(
            |(role, path, len, modified_ns, hash)| RunRecord::File(FileIdentity {
                role,
                path,
                len,
                modified_ns,
                hash
            })
        ),
        ".{0,9}".prop_map(RunRecord::Once),
        prop::collection::vec(host(), 0..4).prop_map(RunRecord::Hosts),
        Just(RunRecord::Planned),
        (any::<u64>(), any::<u32>(), prop::option::of(boot()))
            .prop_map(|(at_ms, pid, boot)| RunRecord::Began { at_ms, pid, boot }),
        prop::collection::vec(any::<u32>(), 0..4).prop_map(RunRecord::Sent),
        any::<u32>().prop_map(RunRecord::Unsent),
        (any::<u32>(), ending(), any::<u32>(), times).prop_map(
            |(host, ending, attempts, times_us)| RunRecord::Result {
                host,
                ending: HostEnding {
                    ending,
                    attempts,
                    times_us
                }
            }
        ),
        (any::<u32>(), any::<bool>(), octets()).prop_map(|(host, is_stderr, octets)| {
            RunRecord::Output {
                host,
                is_stderr,
                octets,
            }
        }),
        (any::<u64>(), any::<u32>()).prop_map(|(at_ms, signal)| RunRecord::Ended { at_ms, signal }),
        (any::<u32>(), verdict()).prop_map(|(host, verdict)| RunRecord::Killed { host, verdict }),
        any::<u8>().prop_map(RunRecord::Status),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_in_whatever_pieces(
        records in prop::collection::vec(record(), 0..6),
        piece in 1..300usize,
    ) {
        let mut octets = RunReader::header();
        records.iter().for_each(|record| record.put(&mut octets));
        prop_assert_eq!(read(&octets, piece), Ok((records, octets.len() as u64)));
    }

    #[test]
    fn of_a_torn_journal_all_whole_records_are_read(
        records in prop::collection::vec(record(), 1..6),
        torn in any::<prop::sample::Index>(),
    ) {
        let mut octets = RunReader::header();
        let mut ends = vec![octets.len()];
        for record in &records {
            record.put(&mut octets);
            ends.push(octets.len());
        }
        let torn = ends[0] + torn.index(octets.len() - ends[0]);
        let whole = ends.partition_point(|end| *end <= torn) - 1;
        let expected = (records[..whole].to_vec(), ends[whole] as u64);
        prop_assert_eq!(read(&octets[..torn], 64), Ok(expected.clone()));
        // What a disk without these octets may have in their place.
        octets[torn..].fill(0);
        let (read, valid) = read(&octets, 64).unwrap();
        prop_assert!(read.starts_with(&expected.0) && valid >= expected.1);
        // Zeros may be what stood there, but are no further record.
        prop_assert!(read.len() <= whole + 1);
    }
}

#[test]
fn many_hosts_are_in_several_records_and_output_is_in_pieces() {
    let hosts: Vec<PlannedHost> = (0..5000)
        .map(|number| PlannedHost {
            name: format!("host{number}"),
            ..PlannedHost::default()
        })
        .collect();
    let mut octets = RunReader::header();
    put_hosts(hosts.clone(), &mut octets);
    put_sent(7, &mut octets);
    let written = vec![b'x'; MAX_OUTPUT + 1];
    put_output(7, true, &written, &mut octets);
    let (records, valid) = read(&octets, 4096).unwrap();
    assert_eq!(valid, octets.len() as u64);
    let mut state = RunState::default();
    let mut output = Vec::new();
    for record in records {
        if let RunRecord::Output { octets, .. } = &record {
            output.extend_from_slice(octets);
        }
        state.apply(record);
    }
    assert_eq!(output, written);
    assert_eq!(state.hosts, hosts);
    assert_eq!(
        (state.count(Left::MaybeRan), state.states[7].left()),
        (1, Left::MaybeRan)
    );
}

#[test]
fn nothing_behind_a_record_that_does_not_add_up_is_read() {
    let mut reader = RunReader::default();
    let mut octets = RunReader::header();
    RunRecord::Planned.put(&mut octets);
    let valid = octets.len() as u64;
    put_sent(1, &mut octets);
    *octets.last_mut().unwrap() ^= 1;
    reader.handle_input(&octets);
    assert_eq!(reader.poll_record(), Ok(Some(RunRecord::Planned)));
    assert_eq!(reader.poll_record(), Ok(None));
    let mut behind = Vec::new();
    put_sent(2, &mut behind);
    reader.handle_input(&behind);
    assert_eq!((reader.poll_record(), reader.valid()), (Ok(None), valid));
}

/// Whether a journal of these octets is damaged, however it comes.
fn is_damaged(octets: &[u8]) -> bool {
    let of = |piece| {
        let mut reader = RunReader::default();
        for piece in octets.chunks(piece) {
            reader.handle_input(piece);
            while reader.poll_record().unwrap().is_some() {}
        }
        reader.is_damaged()
    };
    assert_eq!(of(7), of(usize::MAX));
    of(7)
}

#[test]
fn a_flipped_bit_is_damage_and_a_torn_tail_is_none() {
    let mut octets = RunReader::header();
    RunRecord::Planned.put(&mut octets);
    let first = octets.len();
    put_sent(1, &mut octets);
    let second = octets.len();
    put_sent(2, &mut octets);
    for len in first..=octets.len() {
        assert!(!is_damaged(&octets[..len]), "{len}");
        let zeros = [&octets[..len], &[0; 4096]].concat();
        assert!(!is_damaged(&zeros), "{len} and zeros");
    }
    for bit in first * 8..second * 8 {
        let mut flipped = octets.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(is_damaged(&flipped), "bit {bit}");
    }
    // More than any record has.
    octets.extend(vec![0xff; MAX_RECORD + 9]);
    assert!(is_damaged(&octets));
}

#[test]
fn a_whole_record_of_an_unknown_kind_is_damage() {
    let mut octets = RunReader::header();
    crate::frame::put(&[200, 1], &mut octets);
    assert!(is_damaged(&octets));
}

#[test]
fn no_journal_and_one_of_another_release_are_told_apart() {
    assert_eq!(read(b"", 9), Ok((Vec::new(), 0)));
    assert_eq!(read(b"sshoal", 2), Ok((Vec::new(), 0)));
    assert_eq!(
        read(b"sshoal J\0\0\0\x01", 3),
        Err(RunJournalError::NoJournal)
    );
    let mut octets = RunReader::header();
    octets[11] = 9;
    assert_eq!(read(&octets, 5), Err(RunJournalError::Version(9)));
    octets[11] = 0;
    assert_eq!(read(&octets, 5), Err(RunJournalError::Version(0)));
}

#[test]
fn a_journal_of_the_first_version_is_read() {
    let mut octets = b"sshoal R\0\0\0\x01".to_vec();
    let began = |boot| RunRecord::Began {
        at_ms: 1,
        pid: 2,
        boot,
    };
    // Kind, time and process, and nothing behind them.
    let body = [&[7][..], &1u64.to_be_bytes(), &2u32.to_be_bytes()].concat();
    crate::frame::put(&body, &mut octets);
    assert_eq!(read(&octets, 5).unwrap().0, [began(None)]);
    let mut written = Vec::new();
    began(None).put(&mut written);
    assert_eq!(octets[12..], written);
    let mut reader = RunReader::default();
    assert_eq!(reader.version(), 0);
    reader.handle_input(&octets);
    reader.poll_record().unwrap();
    assert_eq!(reader.version(), 1);
}

fn ended(ending: Ending) -> HostState {
    HostState::Ended(Box::new(HostEnding {
        ending,
        attempts: 1,
        times_us: [None; 9],
    }))
}

fn lost(known: Known) -> HostState {
    ended(Ending::Failed {
        kind: "lost".to_owned(),
        detail: String::new(),
        remedy: String::new(),
        known,
    })
}

#[test]
fn only_what_is_known_not_to_have_run_is_run_unasked() {
    let refused = ended(Ending::Failed {
        kind: "refused".to_owned(),
        detail: String::new(),
        remedy: String::new(),
        known: Known::NotSent,
    });
    for (state, left) in [
        (HostState::NotSent, Left::ToRun),
        (HostState::Sent, Left::MaybeRan),
        (ended(Ending::Exit(0)), Left::Nothing),
        (ended(Ending::Exit(3)), Left::Nothing),
        (ended(Ending::NotStarted), Left::ToRun),
        (refused, Left::Nothing),
        (lost(Known::NotSent), Left::ToRun),
        (lost(Known::Discarded), Left::ToRun),
        (lost(Known::MayHaveRun), Left::MaybeRan),
        (lost(Known::Ran), Left::MaybeRan),
    ] {
        assert_eq!(state.left(), left, "{state:?}");
    }
}

#[test]
fn that_a_command_did_not_run_this_time_says_nothing_of_the_time_before() {
    let mut state = RunState::default();
    state.apply(RunRecord::Hosts(vec![PlannedHost::default(); 4]));
    let began = |pid| RunRecord::Began {
        at_ms: 1,
        pid,
        boot: None,
    };
    let result = |host, state: HostState| match state {
        HostState::Ended(ending) => RunRecord::Result {
            host,
            ending: *ending,
        },
        _ => unreachable!(),
    };
    state.apply(began(1));
    state.apply(RunRecord::Sent(vec![0, 1, 2]));
    state.apply(result(0, lost(Known::MayHaveRun)));
    assert_eq!(state.count(Left::MaybeRan), 3);
    state.apply(began(2));
    let refused = ended(Ending::Failed {
        kind: "refused".to_owned(),
        detail: String::new(),
        remedy: String::new(),
        known: Known::NotSent,
    });
    state.apply(result(0, refused.clone()));
    state.apply(result(1, ended(Ending::NotStarted)));
    state.apply(RunRecord::Sent(vec![2]));
    state.apply(RunRecord::Unsent(2));
    state.apply(result(3, refused));
    assert_eq!(state.count(Left::MaybeRan), 3);
    assert_eq!(state.states[3].left(), Left::Nothing);
    // What has run now has come to its end.
    state.apply(result(2, ended(Ending::Exit(0))));
    assert_eq!(state.count(Left::MaybeRan), 2);
    state.apply(began(3));
    state.apply(RunRecord::Unsent(2));
    let may_have_run = state.states.iter().map(HostState::may_have_run);
    assert_eq!(may_have_run.collect::<Vec<_>>(), [true, true, false, false]);
}

#[test]
fn the_last_word_on_a_host_counts() {
    let mut state = RunState::default();
    state.apply(RunRecord::Hosts(vec![PlannedHost::default(); 2]));
    let boot = Some(Boot {
        id: [7; 16],
        is_synced: true,
    });
    state.apply(RunRecord::Began {
        at_ms: 1,
        pid: 1,
        boot,
    });
    state.apply(RunRecord::Sent(vec![0, 1, 2]));
    state.apply(RunRecord::Unsent(1));
    assert_eq!(state.states, [HostState::Sent, HostState::NotSent]);
    state.apply(RunRecord::Ended {
        at_ms: 2,
        signal: 0,
    });
    state.apply(RunRecord::Status(3));
    assert_eq!((state.ended, state.status), (Some((2, 0)), Some(3)));
    assert_eq!(state.boot, boot);
    assert!(state.is_halted(), "host 1 has had no turn");
    state.apply(RunRecord::Began {
        at_ms: 3,
        pid: 2,
        boot: None,
    });
    assert_eq!((state.status, state.boot), (None, None));
    assert!(!state.is_halted());
    let mut interrupted = state.clone();
    interrupted.apply(RunRecord::Ended {
        at_ms: 4,
        signal: 2,
    });
    assert!(!interrupted.is_halted());
    let ending = HostEnding {
        ending: Ending::Exit(0),
        attempts: 1,
        times_us: [None; 9],
    };
    state.apply(RunRecord::Result { host: 0, ending });
    assert_eq!((state.sittings, state.ended), (2, None));
    assert_eq!(
        (state.count(Left::Nothing), state.count(Left::ToRun)),
        (1, 1)
    );
}

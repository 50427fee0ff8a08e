//! ExecFate under a connection that breaks at every octet (DESIGN, invariant 3): what the client says of
//! its command is true, and a retry that it allows never runs the command twice.

use sshoal_proto::{ExecFate, LocalChannel};

use crate::support::{Pair, Policy, held, settings};

/// Where octets stop to cross.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// After so many octets of the client's, which is all that it could hand over.
    ToServer(usize),
    /// The same, but the client handed over all that it had: the rest was lost on its way.
    LostToServer(usize),
    /// After so many octets of the server's; the server goes on with what it has.
    ToClient(usize),
}

/// How the client learns of it. Of an error of the transport the connection is not told at all: that is
/// the fate before either of these, and neither may change it.
#[derive(Debug, Clone, Copy)]
enum End {
    /// The byte stream ends.
    Eof,
    /// Nothing happens any more, and the caller says goodbye.
    GivenUp,
}

/// The keys of a login: the server rejects the third, and accepts the second.
const REJECTED: u8 = 3;
const ACCEPTED: u8 = 2;

/// A login with one command.
struct Login {
    policy: Policy,
    keys: &'static [u8],
}

impl Login {
    fn begin(&self) -> (Pair, LocalChannel) {
        let (mut pair, channel) = Pair::with_command(settings(), self.policy.clone(), "print 10");
        pair.credentials = self.keys.iter().map(|seed| held(*seed)).collect();
        (pair, channel)
    }
}

/// Lets octets cross up to the cut. Returns how many crossed each way.
fn run_to(pair: &mut Pair, cut: Cut) -> (usize, usize) {
    let (mut to_server, mut to_client) = (0, 0);
    loop {
        let pending = pair.client.poll_transmit().map_or(0, <[u8]>::len);
        let (handed, arrived) = match cut {
            Cut::ToServer(at) => (pending.min(at - to_server), pending.min(at - to_server)),
            Cut::LostToServer(at) => (pending, pending.min(at - to_server)),
            Cut::ToClient(_) => (pending, pending),
        };
        let octets = pair.client.poll_transmit().unwrap_or_default()[..arrived].to_vec();
        pair.client.transmitted(handed);
        pair.server.feed(&octets);
        to_server += arrived;

        let outbox = &mut pair.server.packets.outbox;
        let len = match cut {
            Cut::ToClient(at) => outbox.len().min(at - to_client),
            _ => outbox.len(),
        };
        let octets: Vec<u8> = outbox.drain(..len).collect();
        pair.feed(&octets);
        to_client += len;
        if arrived == 0 && len == 0 {
            return (to_server, to_client);
        }
    }
}

/// The connection ends. Returns what the client says of its command, which stays its last word.
fn end(pair: &mut Pair, cut: Cut, end: End, channel: LocalChannel) -> ExecFate {
    let fate = pair.client.exec_fate(channel);
    match end {
        End::Eof => {
            pair.client.handle_eof();
        }
        End::GivenUp => pair.client.disconnect(),
    }
    // A caller with the fate in its hands still writes what there is, and the server still reads.
    if !matches!(cut, Cut::LostToServer(_))
        && let Some(octets) = pair.client.poll_transmit().map(<[u8]>::to_vec)
    {
        pair.client.transmitted(octets.len());
        pair.server.feed(&octets);
    }
    assert_eq!(pair.client.exec_fate(channel), fate, "it changed its mind");
    fate
}

fn check(login: &Login, cut: Cut, how: End) -> ExecFate {
    let (mut pair, channel) = login.begin();
    run_to(&mut pair, cut);
    let fate = end(&mut pair, cut, how, channel);
    let executions = pair.server.executions.len();
    match fate {
        ExecFate::NotSent | ExecFate::ProvenDiscarded => {
            assert_eq!(executions, 0, "{fate:?} is untrue, {cut:?} {how:?}");
        }
        ExecFate::Ran => assert_eq!(executions, 1, "{fate:?} is untrue, {cut:?} {how:?}"),
        ExecFate::MayHaveRun => assert!(executions <= 1),
    }
    fate
}

/// Where the undisturbed octet streams begin to be encrypted, and where they end.
fn undisturbed(login: &Login) -> [(usize, usize); 2] {
    let (mut pair, _) = login.begin();
    pair.trusts = false;
    let begin = run_to(&mut pair, Cut::ToClient(usize::MAX));
    let (mut pair, _) = login.begin();
    let end = run_to(&mut pair, Cut::ToClient(usize::MAX));
    [begin, end]
}

/// Cuts everywhere, and expects just these fates. Where they allow another try, it succeeds, and so the
/// command has run once in all.
fn cut_everywhere(login: &Login, expected: &[ExecFate]) {
    let [begin, whole] = undisturbed(login);
    let to_server = (begin.0..=whole.0).flat_map(|at| [Cut::ToServer(at), Cut::LostToServer(at)]);
    // The server's NEWKEYS, and what came with it, was said already by then.
    let to_client = (begin.1 - 200..=whole.1).map(Cut::ToClient);
    let mut met = Vec::new();
    for cut in to_server.chain(to_client) {
        for how in [End::Eof, End::GivenUp] {
            let fate = check(login, cut, how);
            assert!(expected.contains(&fate), "{fate:?} {cut:?} {how:?}");
            met.push(fate);
        }
    }
    for fate in expected {
        assert!(met.contains(fate), "{fate:?} was never met");
    }
}

#[test]
fn a_merged_flight_cut_at_every_octet() {
    let login = Login {
        policy: Policy::openssh(),
        keys: &[REJECTED, ACCEPTED],
    };
    // What was discarded is on its way again at once: it is ProvenDiscarded only while no key is left.
    let expected = [ExecFate::NotSent, ExecFate::MayHaveRun, ExecFate::Ran];
    cut_everywhere(&login, &expected);
}

#[test]
fn a_merged_flight_without_a_key_that_is_accepted_cut_at_every_octet() {
    let login = Login {
        policy: Policy::openssh(),
        keys: &[REJECTED],
    };
    let expected = [
        ExecFate::NotSent,
        ExecFate::MayHaveRun,
        ExecFate::ProvenDiscarded,
    ];
    cut_everywhere(&login, &expected);
}

#[test]
fn single_messages_cut_at_every_octet() {
    let login = Login {
        policy: Policy::unknown(),
        keys: &[REJECTED, ACCEPTED],
    };
    let expected = [ExecFate::NotSent, ExecFate::MayHaveRun, ExecFate::Ran];
    cut_everywhere(&login, &expected);
}

#[test]
fn a_refused_session_cut_at_every_octet() {
    for mut policy in [Policy::openssh(), Policy::unknown()] {
        policy.max_sessions = 0;
        let login = Login {
            policy,
            keys: &[ACCEPTED],
        };
        let merged = login.policy.identification == Policy::openssh().identification;
        let expected = [
            ExecFate::NotSent,
            ExecFate::ProvenDiscarded,
            ExecFate::MayHaveRun,
        ];
        cut_everywhere(&login, &expected[..if merged { 3 } else { 2 }]);
    }
}

#[test]
fn a_retry_that_a_fate_allows_runs_the_command_once_in_all() {
    let login = Login {
        policy: Policy::openssh(),
        keys: &[REJECTED, ACCEPTED],
    };
    let [begin, whole] = undisturbed(&login);
    for at in (begin.0..=whole.0).step_by(7) {
        let mut executions = 0;
        for cut in [Cut::ToServer(at), Cut::ToClient(usize::MAX)] {
            let (mut pair, channel) = login.begin();
            run_to(&mut pair, cut);
            let fate = end(&mut pair, cut, End::GivenUp, channel);
            executions += pair.server.executions.len();
            if !fate.safe_to_resend() {
                break;
            }
        }
        assert!(executions <= 1, "{at}");
    }
}

#[test]
fn a_rekeying_in_the_midst_of_a_rejected_merged_flight_cut_at_every_octet() {
    let login = Login {
        policy: Policy::openssh(),
        keys: &[REJECTED, ACCEPTED],
    };
    // The server's KEXINIT comes behind its UNIMPLEMENTED: the command waits for the new keys.
    let begin = || {
        let (mut pair, channel) = login.begin();
        for flight in 1..=3 {
            pair.flight();
            if flight == 3 {
                pair.server.rekey();
            }
            pair.answer();
        }
        (pair, channel)
    };
    let (mut pair, _) = begin();
    let (whole, _) = run_to(&mut pair, Cut::ToClient(usize::MAX));
    assert_eq!(pair.server.kex.finished, 2);
    assert_eq!(pair.server.executions.len(), 1);
    for at in 0..=whole {
        let cut = Cut::ToServer(at);
        let (mut pair, channel) = begin();
        run_to(&mut pair, cut);
        let fate = end(&mut pair, cut, End::GivenUp, channel);
        let executions = pair.server.executions.len();
        match fate.safe_to_resend() {
            true => assert_eq!(executions, 0, "{fate:?} at {at}"),
            false => assert!(executions <= 1),
        }
    }
}

#[test]
fn a_command_is_not_sent_until_its_last_octet_has_left() {
    let mut pair = crate::support::logged_in(settings(), Policy::openssh());
    pair.server.policy.answers_channels = false;
    let mut request = sshoal_proto::SessionRequest::exec("true");
    // No EOF comes behind the command: its end is the queue's.
    request.standard_input = true;
    let channel = pair.open(request);
    pair.run();
    pair.server.say(sshoal_wire::ChannelOpenConfirmation {
        recipient_channel: 0,
        sender_channel: 0,
        initial_window_size: 0,
        maximum_packet_size: 0,
        data: b"",
    });
    pair.answer();
    let queued = pair.client.poll_transmit().unwrap().len();
    for _ in 1..queued {
        pair.client.transmitted(1);
        assert_eq!(pair.client.exec_fate(channel), ExecFate::NotSent);
    }
    pair.client.transmitted(1);
    assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);
}

#[test]
fn an_error_of_ours_keeps_a_queued_command_from_leaving() {
    let login = Login {
        policy: Policy::openssh(),
        keys: &[ACCEPTED],
    };
    let (mut pair, channel) = login.begin();
    for _ in 0..2 {
        pair.flight();
        pair.answer();
    }
    // NEWKEYS, login and command are queued, nothing of them has left, and the server garbles a packet.
    assert!(pair.client.poll_transmit().is_some());
    assert_eq!(pair.client.exec_fate(channel), ExecFate::NotSent);
    pair.feed(&[0xff; 64]);
    assert!(pair.error.is_some());
    assert_eq!(pair.client.exec_fate(channel), ExecFate::NotSent);
    pair.run();
    assert!(pair.server.executions.is_empty());
}

//! Which file further channels write to.

use super::resuming::MOST_UNPROVEN;
use super::tests::{PART, Story, entry, file, noise, plan};
use super::*;
use crate::fake_server::{FakeServer, MODIFIED, Node};

/// Octets of the file: many for one channel, enough for several.
const LEN: usize = 20 << 20;
/// What lies elsewhere, and what a link leads to.
const OTHER: &[u8] = b"/etc/passwd";
/// When the host writes.
const NOW: u32 = MODIFIED + 77;

fn story(channels: usize) -> Story {
    let server = FakeServer {
        written_at: Some(NOW),
        ..FakeServer::with(&[(OTHER, Node::File(b"root".to_vec()))])
    };
    let mut story = Story::new(server, vec![noise(LEN)]);
    story.channels = channels;
    story
}

fn one_file(preserve: bool) -> UploadPlan {
    UploadPlan {
        preserve,
        ..plan(b"/f", vec![entry(b"", file(LEN), None)])
    }
}

/// It arrives, and with these times.
fn arrives(story: &mut Story, preserve: bool) {
    let told = story.play(one_file(preserve));
    assert_eq!(told.failed, []);
    assert!(story.server.file(b"/f") == Some(&noise(LEN)[..]));
    assert_eq!(story.server.file(OTHER), Some(&b"root"[..]));
    assert_eq!(story.parts(), 0);
    let times = story.server.attributes(b"/f").and_then(|it| it.times);
    let expected = match preserve {
        true => (5, MODIFIED),
        false => (NOW, NOW),
    };
    assert_eq!(times, Some(expected));
}

/// Times that have been set, but for those of the file that is kept.
fn times_set(story: &Story) -> Vec<(u32, u32)> {
    let set = story.server.set.iter();
    set.filter_map(|(_, attributes)| attributes.times).collect()
}

#[test]
fn further_channels_write_the_part_that_is_marked_and_its_times_are_right_at_the_end() {
    for preserve in [true, false] {
        let mut story = story(3);
        arrives(&mut story, preserve);
        assert_eq!(story.server.opened_again, 2);
        assert!(story.sent.iter().all(|&sent| sent > LEN / 6));
        let set = times_set(&story);
        assert_eq!(set.len(), 2, "its mark, and its own: {set:?}");
        assert!(set[0].0 > 2_000_000_000, "of the future");
    }
}

#[test]
fn what_one_channel_sends_is_not_marked() {
    let mut alone = story(1);
    arrives_unmarked(&mut alone, LEN);
    // Nor is what is too small to be divided.
    arrives_unmarked(&mut story(3), 7 << 20);
}

fn arrives_unmarked(story: &mut Story, len: usize) {
    story.contents = vec![noise(len)];
    let told = story.play(plan(b"/f", vec![entry(b"", file(len), None)]));
    assert_eq!(told.failed, []);
    assert!(story.server.file(b"/f") == Some(&noise(len)[..]));
    assert_eq!(story.server.set, []);
}

#[test]
fn what_a_link_leads_to_that_has_the_parts_place_gets_no_octet() {
    // A file as it is, and one whose time is of the future, as another transfer's part has it.
    for accessed in [MODIFIED, 2_100_000_000] {
        for preserve in [true, false] {
            let mut story = story(3);
            story.server.opens_instead = Some(OTHER.to_vec());
            story.server.accessed.insert(OTHER.to_vec(), accessed);
            arrives(&mut story, preserve);
            assert_eq!(story.server.opened_again, 2, "each has tried once");
            assert!(story.sent[1..].iter().all(|&sent| sent < 1000));
            assert_eq!(story.server.accessed[OTHER], accessed);
            assert!(story.server.set.iter().all(|(path, _)| path == PART));
        }
    }
}

#[test]
fn what_is_no_file_is_not_written_to_whatever_time_it_has() {
    let mut foreseen = story(2);
    arrives(&mut foreseen, false);
    let (mark, _) = times_set(&foreseen)[0];
    let mut story = story(2);
    let device = b"/dev/sda".to_vec();
    let node = Node::Device(vec![7; LEN]);
    story.server.nodes.insert(device.clone(), node.clone());
    story.server.accessed.insert(device.clone(), mark);
    story.server.opens_instead = Some(device.clone());
    arrives(&mut story, false);
    assert!(story.server.nodes[&device] == node);
}

#[test]
fn where_marks_are_not_kept_or_cannot_be_set_one_channel_sends_a_file() {
    for (forgets, refuses) in [(true, 0), (false, 1)] {
        let mut story = story(3);
        story.server.forgets_access = forgets;
        story.server.refuses_attributes = refuses;
        let told = story.play(one_file(false));
        assert_eq!(told.failed, []);
        assert!(story.server.file(b"/f") == Some(&noise(LEN)[..]));
        assert_eq!(story.server.opened_again, 0);
        assert!(story.sent[1..].iter().all(|&sent| sent < 1000));
        let times = story.server.attributes(b"/f").and_then(|it| it.times);
        assert_eq!(times, Some((NOW, NOW)));
    }
}

#[test]
fn a_part_that_an_earlier_run_has_marked_does_not_keep_that_time() {
    let half = LEN as u64 / 2;
    let mut story = story(1);
    let found = noise(LEN)[..half as usize].to_vec();
    story.server.nodes.insert(PART.to_vec(), Node::File(found));
    story.server.accessed.insert(PART.to_vec(), 2_100_000_000);
    let mut proven = Segments::default();
    proven.insert(0..half);
    story.proven = Some(proven);
    arrives(&mut story, false);
    assert!(story.sent[0] < LEN * 3 / 4, "it was gone on with");
}

#[test]
fn where_nothing_is_unforeseeable_one_channel_sends_a_file() {
    let mut story = story(3);
    story.seed = None;
    arrives_unmarked(&mut story, LEN);
    assert_eq!(story.server.opened_again, 0);
}

/// Empty files that the first channel begins, and a large one, which the second one does.
fn begun_by_second() -> (Vec<Entry>, Vec<Vec<u8>>) {
    let mut entries = vec![entry(b"", Kind::Folder, None)];
    let mut contents = vec![vec![]];
    for number in 0..64usize {
        entries.push(entry(number.to_string().as_bytes(), file(0), Some(0)));
        contents.push(vec![]);
    }
    entries.push(entry(b"large", file(LARGE), Some(0)));
    contents.push(noise(LARGE));
    (entries, contents)
}

const LARGE: usize = 10 << 20;

/// Its maker's channel is lost in this round; returns how many octets were confirmed, and how often what is there was opened.
fn arrives_in_spite_of_loss(
    round: usize,
    seed: Option<u64>,
    instead: Option<&[u8]>,
) -> (u64, usize) {
    let (entries, contents) = begun_by_second();
    let server = FakeServer::with(&[
        (b"/srv", Node::Folder),
        (OTHER, Node::File(b"root".to_vec())),
    ]);
    let mut story = Story::new(server, contents);
    story.server.opens_instead = instead.map(<[u8]>::to_vec);
    (story.channels, story.seed) = (3, seed);
    story.lost = vec![(round, 1)];
    let told = story.play(UploadPlan {
        method: Method::Sftp,
        ..plan(b"/srv", entries)
    });
    assert_eq!(told.failed, [], "lost in round {round}");
    assert_eq!(told.done.len(), 66);
    let large = story.server.file(b"/srv/site/large");
    assert!(large == Some(&noise(LARGE)[..]), "lost in round {round}");
    assert_eq!(story.server.file(OTHER), Some(&b"root"[..]));
    assert_eq!(story.parts(), 0);
    (told.tally.octets, story.server.opened_again)
}

#[test]
fn a_marked_part_is_gone_on_with_when_its_makers_channel_is_lost() {
    let mut taken_over = 0;
    for round in (0..80).step_by(4) {
        let (octets, opened) = arrives_in_spite_of_loss(round, Some(1), None);
        let is_taken_over = octets == LARGE as u64 && opened > 0;
        taken_over += usize::from(is_taken_over);
    }
    assert!(taken_over > 10, "{taken_over}");
}

#[test]
fn a_part_that_cannot_be_told_from_another_file_is_made_anew_when_its_makers_channel_is_lost() {
    for round in (0..80).step_by(4).chain(240..270) {
        arrives_in_spite_of_loss(round, Some(1), Some(OTHER));
        let (_, opened) = arrives_in_spite_of_loss(round, None, None);
        assert_eq!(opened, 0);
    }
}

#[test]
fn of_a_part_without_a_mark_what_is_proven_is_not_sent_again() {
    const LARGE: usize = 4 * CHECKPOINT as usize;
    let (mut entries, mut contents) = begun_by_second();
    (entries[65].kind, contents[65]) = (file(LARGE), noise(LARGE));
    let mut story = Story::new(FakeServer::with(&[(b"/srv", Node::Folder)]), contents);
    (story.channels, story.seed) = (2, None);
    story.proven = Some(Segments::default());
    story.lost = vec![(700, 1)];
    let plan = UploadPlan {
        method: Method::Sftp,
        ahead: 16,
        ..plan(b"/srv", entries)
    };
    let told = story.play(plan);
    assert_eq!(told.failed, []);
    assert!(story.server.file(b"/srv/site/large") == Some(&noise(LARGE)[..]));
    let twice = told.tally.octets - LARGE as u64;
    assert!((1..=MOST_UNPROVEN).contains(&twice), "{twice}");
    assert_eq!(story.server.opened_again, 1);
}

#[test]
fn when_the_last_channel_is_lost_that_has_the_part_open_it_is_made_anew() {
    let (entries, contents) = begun_by_second();
    let mut story = Story::new(FakeServer::with(&[(b"/srv", Node::Folder)]), contents);
    let other = Node::File(b"root".to_vec());
    story.server.nodes.insert(OTHER.to_vec(), other.clone());
    // The third channel has the part open; the first one has another file, twice.
    story.server.opens_instead = Some(OTHER.to_vec());
    (story.server.opens_right, story.channels) = (2, 3);
    story.lost = vec![(50, 1), (80, 2)];
    let told = story.play(UploadPlan {
        method: Method::Sftp,
        ..plan(b"/srv", entries)
    });
    assert_eq!(told.failed, []);
    assert!(story.server.file(b"/srv/site/large") == Some(&noise(LARGE)[..]));
    assert!(told.tally.octets > LARGE as u64, "it was made anew");
    assert_eq!(story.server.opened_again, 3);
    assert_eq!(story.server.nodes[OTHER], other);
}

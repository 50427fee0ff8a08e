//! Owners of what is sent: when they are set, and which.

#![allow(clippy::unwrap_used)]

use super::tests::{Story, entry, file, noise, plan, tree};
use super::*;
use crate::Remote;
use crate::fake_server::{FakeServer, MODIFIED, Node};
use crate::owners::{Account, AccountKind, Names, Owner, Owners};
use crate::sftp::Attributes;

const NUMBERS: Owners = Owners::Kept { by_name: false };

fn server() -> FakeServer {
    FakeServer {
        account: Some((5, 6)),
        ..FakeServer::with(&[(b"/srv", Node::Folder)])
    }
}

/// A tree with modes and times, and owners.
fn kept(owners: Owners) -> (UploadPlan, Vec<Vec<u8>>) {
    let (entries, contents) = tree();
    let plan = UploadPlan {
        preserve: true,
        owners,
        ..plan(b"/srv", entries)
    };
    (plan, contents)
}

/// Everything in the tree belongs to these.
fn all_belong_to(story: &Story, owner: (u32, u32)) {
    for path in [
        &b"/srv/site"[..],
        b"/srv/site/a",
        b"/srv/site/a/x",
        b"/srv/site/a/empty",
        b"/srv/site/\xff\n",
        b"/srv/site/link",
    ] {
        let shown = String::from_utf8_lossy(path);
        assert_eq!(story.server.owners.get(path), Some(&owner), "{shown}");
    }
}

fn owners_set(story: &Story) -> usize {
    let set = story.server.set.iter();
    set.filter(|(_, attributes)| attributes.owner.is_some())
        .count()
}

#[test]
fn owners_are_set_before_modes_and_names() {
    let (plan, contents) = kept(NUMBERS);
    let mut story = Story::new(server(), contents);
    let told = story.play(plan.clone());
    assert_eq!(told.failed, []);
    all_belong_to(&story, (1000, 100));
    for path in [&b"/srv/site/a/.x.00000007.part"[..], b"/srv/site/a"] {
        let set = story.server.set.iter().filter(|(it, _)| it == path);
        let set: Vec<&Attributes> = set.map(|(_, attributes)| attributes).collect();
        assert_eq!(set.len(), 2, "{set:?}");
        assert!(set[0].owner.is_some() && set[0].mode.is_none());
        assert!(set[1].owner.is_none() && set[1].mode.is_some());
    }
    let link = &b"/srv/site/.link.00000007.part"[..];
    assert!(story.server.set.iter().any(|(path, _)| path == link));
    // The first file's other name is the same file.
    story.server.set.clear();
    let again = story.play(plan);
    assert_eq!((again.tally.unchanged, again.tally.octets), (7, 0));
    assert_eq!(owners_set(&story), 0, "all have their owners");
}

#[test]
fn what_is_unchanged_gets_its_owner_and_is_not_sent() {
    let (plan, contents) = kept(NUMBERS);
    let mut story = Story::new(server(), contents);
    story.play(plan.clone());
    story.server.owners.clear();
    story.server.set.clear();
    let told = story.play(plan.clone());
    // The folders have got something.
    assert_eq!((told.tally.unchanged, told.tally.octets), (5, 0));
    all_belong_to(&story, (1000, 100));
    let of_file = |(path, _): &&(Vec<u8>, Attributes)| path == b"/srv/site/a/x";
    assert_eq!(story.server.set.iter().filter(of_file).count(), 1);
    // Set-user-ID goes with the owner: it is set again, and not where the owner is refused.
    let mut with_bits = plan;
    with_bits.entries[2].mode = 0o4640;
    let modes = (0o4640, MODIFIED);
    story.server.modes.insert(b"/srv/site/a/x".to_vec(), modes);
    for refuses in [true, false] {
        story.server.owners.clear();
        story.server.set.clear();
        story.server.refuses_owners = refuses;
        let told = story.play(with_bits.clone());
        assert_eq!(told.tally.unchanged, if refuses { 0 } else { 5 });
        let set = story.server.set.iter().filter(of_file);
        let set: Vec<_> = set.map(|(_, it)| (it.owner, it.mode)).collect();
        let both = [(Some((1000, 100)), None), (None, Some(0o4640))];
        assert_eq!(set, &both[..if refuses { 1 } else { 2 }]);
    }
}

fn given(user: Option<Account>, group: Option<Account>) -> Owners {
    Owners::Given { user, group }
}

#[test]
fn half_an_owner_leaves_the_other_half() {
    for (owners, owner) in [
        (given(None, Some(Account::Number(9))), (5, 9)),
        (given(Some(Account::Number(8)), None), (8, 6)),
    ] {
        for preserve in [true, false] {
            let (plan, contents) = kept(owners.clone());
            let plan = UploadPlan { preserve, ..plan };
            let mut story = Story::new(server(), contents);
            let told = story.play(plan);
            assert_eq!(told.failed, []);
            all_belong_to(&story, owner);
            assert_eq!(story.parts(), 0);
        }
    }
}

#[test]
fn a_server_that_tells_of_no_owners_gets_none_by_halves() {
    let mut story = Story::new(FakeServer::default(), vec![noise(10)]);
    let plan = UploadPlan {
        owners: given(None, Some(Account::Number(9))),
        ..plan(b"/f", vec![entry(b"", file(10), None)])
    };
    let told = story.play(plan);
    let [(_, Trouble::Remote { why, .. })] = told.failed.as_slice() else {
        panic!("{:?}", told.failed);
    };
    assert!(matches!(why, Remote::Unsupported(_)));
    assert_eq!((story.parts(), story.server.file(b"/f")), (0, None));
}

#[test]
fn a_host_that_refuses_keeps_what_it_has() {
    let mut story = Story::new(server(), vec![noise(10)]);
    story.server.refuses_owners = true;
    let old = Node::File(b"old".to_vec());
    story.server.nodes.insert(b"/f".to_vec(), old);
    let plan = UploadPlan {
        owners: NUMBERS,
        ..plan(b"/f", vec![entry(b"", file(10), None)])
    };
    let told = story.play(plan);
    let owner = Owner::of((1000, 100));
    let why = Remote::Denied;
    let trouble = Trouble::Owner { owner, why };
    assert!(trouble.to_string().contains("1000:100"));
    assert!(trouble.remedy().contains("needs root"));
    assert_eq!(told.failed, [(b"/f".to_vec(), trouble)]);
    assert_eq!(story.server.file(b"/f"), Some(&b"old"[..]));
    assert_eq!(story.parts(), 0);
}

/// A host with lists of its accounts.
fn with_lists() -> FakeServer {
    let mut server = server();
    for (path, list) in [
        (&b"/etc/passwd"[..], &b"alice:x:7:7::/:/bin/sh\n"[..]),
        (b"/etc/group", b"wheel:x:3:\n"),
    ] {
        let list = Node::File(list.to_vec());
        server.nodes.insert(path.to_vec(), list);
    }
    server
}

#[test]
fn owners_are_kept_by_the_names_that_the_host_knows() {
    for (says, group, is_told) in [
        (
            &b"Hello!\nsshoal-ready\nsshoal-id web:x:55:\n"[..],
            55,
            false,
        ),
        (b"sshoal-ready\nsshoal-id \n", 100, true),
        (b"This account is closed.\n", 100, true),
    ] {
        let (plan, contents) = kept(Owners::Kept { by_name: true });
        let plan = UploadPlan {
            names: Names {
                users: [(1000, b"alice".to_vec())].into(),
                groups: [(100, b"web".to_vec())].into(),
            },
            ..plan
        };
        let mut story = Story::new(with_lists(), contents);
        story.accounts = says;
        let told = story.play(plan);
        assert_eq!(told.failed, []);
        all_belong_to(&story, (7, group));
        assert_eq!(told.tally.why_numbers.is_some(), is_told);
    }
}

#[test]
fn a_name_that_is_given_must_be_known() {
    let name = |name: &[u8]| Some(Account::Name(name.to_vec()));
    let (plan, contents) = kept(given(name(b"alice"), name(b"wheel")));
    let mut story = Story::new(with_lists(), contents);
    assert_eq!(story.play(plan).failed, []);
    all_belong_to(&story, (7, 3));

    for (lists, says, part) in [
        (true, &b"sshoal-ready\nsshoal-id \n"[..], "getent"),
        (true, b"", "no command can be run"),
        (false, b"", "cannot be read"),
    ] {
        let (plan, contents) = kept(given(name(b"alice"), name(b"bob")));
        let mut server = with_lists();
        if !lists {
            server.nodes.remove(&b"/etc/group"[..]);
        }
        let mut story = Story::new(server, contents);
        story.accounts = says;
        let told = story.play(plan);
        let [(path, Trouble::NoAccount { kind, name, why })] = told.failed.as_slice() else {
            panic!("{:?}", told.failed);
        };
        assert_eq!((path.as_slice(), *kind), (&b"/srv"[..], AccountKind::Group));
        assert!(name == "bob" && why.contains(part), "{name}: {why}");
        assert_eq!(told.tally.failed, 7);
        assert!(!story.server.nodes.contains_key(&b"/srv/site"[..]));
    }
}

#[test]
fn whenever_channels_are_lost_owners_are_set() {
    for round in 0..40 {
        let mut entries = vec![entry(b"", Kind::Folder, None)];
        let mut contents = vec![vec![]];
        for number in 0..30usize {
            let path = number.to_string();
            entries.push(entry(path.as_bytes(), file(number * 997), Some(0)));
            contents.push(noise(number * 997));
        }
        let plan = UploadPlan {
            preserve: true,
            owners: given(None, Some(Account::Number(9))),
            ..plan(b"/srv", entries)
        };
        let mut story = Story::new(server(), contents);
        // Some are there, and lack their owners alone.
        for number in (0..30usize).step_by(3) {
            let path = format!("/srv/site/{number}").into_bytes();
            let modes = story.server.modes.insert(path.clone(), (0o640, MODIFIED));
            assert!(modes.is_none());
            story
                .server
                .nodes
                .insert(path, Node::File(noise(number * 997)));
        }
        story.channels = 4;
        story.lost = vec![(round, 1 + round % 3)];
        let told = story.play(plan);
        assert_eq!(told.failed, []);
        for number in 0..30 {
            let path = format!("/srv/site/{number}");
            let owner = story.server.owners.get(path.as_bytes());
            assert_eq!(owner, Some(&(5, 9)), "{path}, lost in {round}");
        }
        assert_eq!(told.done.len(), 31);
    }
}

#[test]
fn a_block_device_keeps_its_owner_and_what_it_holds() {
    let mut story = Story::new(server(), vec![noise(10)]);
    let device = Node::Device(vec![7; 512]);
    story
        .server
        .nodes
        .insert(b"/dev/x".to_vec(), device.clone());
    let plan = UploadPlan {
        owners: NUMBERS,
        writes_devices: true,
        ..plan(b"/dev/x", vec![entry(b"", file(10), None)])
    };
    let told = story.play(plan);
    assert_eq!(told.failed, [(b"/dev/x".to_vec(), Trouble::DeviceOwner)]);
    assert_eq!(story.server.nodes[&b"/dev/x"[..]], device);
}

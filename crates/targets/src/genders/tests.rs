#![allow(clippy::unwrap_used)]

use crate::*;

const FILE: &[u8] = b"# comment\nweb[1-3],db1 all,rack=a,ib=%n-ib\nweb3   pdsh_all_skip # not now\ndb1\tdb,pdsh_rcmd_type=root@ssh,altname=db1-e\nbare\n";

fn names(targets: Result<Vec<Target>, TargetError>) -> String {
    let specs: Vec<String> = targets.unwrap().iter().map(Target::to_string).collect();
    specs.join(" ")
}

#[test]
fn queries_pick_hosts() {
    let genders = Genders::parse("genders", FILE).unwrap();
    for (query, picked) in [
        ("all", "web1 web2 web3 root@db1-e"),
        ("all--db", "web1 web2 web3"),
        ("all && ~ ( db || pdsh_all_skip )", "web1 web2"),
        ("db||all&&rack=b", ""),
        ("ib=web2-ib", "web2"),
        ("ib", "web1 web2 web3 root@db1-e"),
        ("ib=web2-ib,db", "web2 root@db1-e"),
        ("~all", "bare"),
        ("nosuch", ""),
    ] {
        assert_eq!(
            names(genders.query(query, NodeName::Alternate)),
            picked,
            "{query}"
        );
    }
    assert_eq!(names(genders.query("db", NodeName::Canonical)), "root@db1");
    assert_eq!(
        names(genders.all(NodeName::Canonical)),
        "web1 web2 web3 root@db1 bare"
    );
    assert_eq!(
        names(genders.all_but_skipped(NodeName::Canonical)),
        "web1 web2 root@db1 bare"
    );
    for query in [
        "",
        "a||",
        "(a",
        "a)",
        "a b",
        "&&a",
        "~",
        "-a",
        &"(".repeat(1000),
    ] {
        assert!(
            genders.query(query, NodeName::Alternate).is_err(),
            "{query}"
        );
    }
}

#[test]
fn attributes_are_groups() {
    let genders = Genders::parse("genders", FILE).unwrap();
    let mut sources = Sources::default();
    sources.add_table("genders", genders.table(NodeName::Canonical).unwrap());
    let list = HostList::parse("@rack!@pdsh_all_skip,@genders:*&b*").unwrap();
    let Expansion::Targets(targets) = sources.expand(&list).unwrap() else {
        panic!()
    };
    assert_eq!(names(Ok(targets)), "bare");
}

#[test]
fn mistakes_have_their_line() {
    for (file, message) in [
        (
            "a x\na y,x\n",
            "genders:2: \"y,x\": a node has the attribute \"x\" twice",
        ),
        (
            "a x,x\n",
            "genders:1: \"x,x\": a node has the attribute \"x\" twice",
        ),
        (
            "a =x\n",
            "genders:1: \"=x\": an attribute or its value is empty",
        ),
        (
            "a x=\n",
            "genders:1: \"x=\": an attribute or its value is empty",
        ),
        ("a x,,y\n", "an attribute or its value is empty"),
        ("a x, y\n", "genders:1: \"x, y\": a space in the attributes"),
        ("\na[ x\n", "genders:2: \"a[\": '[' is not closed"),
    ] {
        let error = Genders::parse("genders", file.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{file}: {error}");
    }
    assert_eq!(
        Genders::parse("genders", b"a,a x\n").unwrap().nodes.len(),
        1
    );
}

//! Where this crate and ClusterShell differ, and why. Each line is tested: one that stops being a difference
//! has to leave the list.

use serde_json::json;
use sshoal_targets::{GroupTable, Sources};

use crate::{
    oracle::{Answer, Oracle},
    ours,
};

/// What either makes of a list: names with commas, or an error.
struct Difference {
    list: &'static str,
    ours: Result<&'static str, ()>,
    theirs: Result<&'static str, ()>,
    /// The reason, for readers.
    #[allow(dead_code)]
    why: &'static str,
}

const fn differ(
    list: &'static str,
    ours: Result<&'static str, ()>,
    theirs: Result<&'static str, ()>,
    why: &'static str,
) -> Difference {
    Difference {
        list,
        ours,
        theirs,
        why,
    }
}

const DIFFERENCES: &[Difference] = &[
    differ(
        "a,,b,",
        Ok("a,b"),
        Err(()),
        "commas left over by scripts do no harm",
    ),
    differ(
        "a b",
        Ok("a,b"),
        Ok("a b"),
        "a space separates, as it does on nodeset's own command line",
    ),
    differ(
        "a ^b",
        Err(()),
        Ok("a,b"),
        "pdsh's users mean a file, nodeset's an operation: it is asked for",
    ),
    differ(
        "a,^b",
        Err(()),
        Err(()),
        "a file (which is needed here, and missing); no operand there",
    ),
    differ(
        "a,-b",
        Ok("a"),
        Ok("-b,a"),
        "pdsh's exclusion; no host name begins with a dash",
    ),
    differ(
        "a-[-2-1]",
        Err(()),
        Ok("a--1,a--2,a-0,a-1"),
        "a dash before a number belongs to the name",
    ),
    differ(
        "n[1-2][3-4]",
        Ok("n13,n14,n23,n24"),
        Err(()),
        "brackets multiply, with text between them or not",
    ),
    differ(
        "n1[8-10]",
        Ok("n110,n18,n19"),
        Ok(N_18_TO_110),
        "digits beside brackets are text; there they join each bound",
    ),
    differ(
        "n0[9-10]",
        Ok("n010,n09"),
        Err(()),
        "the same, where the joined bounds have two widths",
    ),
    differ(
        "n[1-5/2]0",
        Ok("n10,n30,n50"),
        Err(()),
        "the same, where a step is given",
    ),
    differ(
        "n[+1]",
        Err(()),
        Ok("n1"),
        "Python's int() takes signs and underscores",
    ),
    differ("n[1_0]", Err(()), Ok("n10"), "the same"),
    differ(
        "n[7-1-2]",
        Err(()),
        Ok("n-1,n0,n1,n2"),
        "not a range; there the first number is dropped and -1 begins",
    ),
    differ(
        "n[0-00]",
        Err(()),
        Ok("n0"),
        "two widths; there the width of an end that is 0 is not looked at",
    ),
    differ(
        "a/b",
        Err(()),
        Ok("a/b"),
        "what ssh refuses in a host name is refused before it is run",
    ),
    differ("a;b", Err(()), Ok("a;b"), "the same"),
    differ(
        "a,A",
        Ok("a"),
        Ok("A,a"),
        "host names are the same in any ASCII case",
    ),
    differ(
        "u@a,b",
        Ok("a,b"),
        Ok("b,u@a"),
        "user@host:port names a user and a port here",
    ),
    differ(
        "a!",
        Err(()),
        Err(()),
        "both want an operand; listed to show that only commas are lenient",
    ),
    differ(
        "n1234567890123456789[1-2]",
        Ok("n12345678901234567891,n12345678901234567892"),
        Ok("n12345678901234567891,n12345678901234567892"),
        "the same names, but digits past MAX_DIGITS are text here and stay apart when folded",
    ),
];

const N_18_TO_110: &str = "n100,n101,n102,n103,n104,n105,n106,n107,n108,n109,n110,n18,n19,n20,n21,n22,n23,n24,n25,\
    n26,n27,n28,n29,n30,n31,n32,n33,n34,n35,n36,n37,n38,n39,n40,n41,n42,n43,n44,n45,n46,n47,n48,n49,n50,n51,n52,n53,\
    n54,n55,n56,n57,n58,n59,n60,n61,n62,n63,n64,n65,n66,n67,n68,n69,n70,n71,n72,n73,n74,n75,n76,n77,n78,n79,n80,n81,\
    n82,n83,n84,n85,n86,n87,n88,n89,n90,n91,n92,n93,n94,n95,n96,n97,n98,n99";

/// The same with groups: `@g` is `a! b`, and `a`, `b`, `c` are all hosts.
#[test]
fn known_differences_with_groups_are_these() {
    let mut oracle = Oracle::start();
    let lists = [
        (
            "@g",
            Ok("a"),
            Err(()),
            "a space after an operation; there it ends the operand in groups, though not elsewhere",
        ),
        (
            "@nosuch",
            Err(()),
            Ok(""),
            "a slip of the pen in a group's name is not an empty group",
        ),
        (
            "z&*",
            Ok("z"),
            Ok(""),
            "right of an operation a glob picks from what stands left, which needs no list of all",
        ),
        ("a,z!*", Ok(""), Ok("z"), "the same"),
        (
            "@t:*",
            Ok("a,b"),
            Ok("b"),
            "without all, the union of the groups; there one group's operations act on others",
        ),
        (
            "A*",
            Ok("a"),
            Ok(""),
            "host names are the same in any ASCII case",
        ),
    ];
    for (list, here, theirs, _why) in lists {
        let mut table = GroupTable::default();
        table.insert_list("g", "a! b");
        table.insert_list("all", "a,b,c");
        let mut sources = Sources::default();
        sources.add_table("s", table);
        let mut table = GroupTable::default();
        table.insert_list("g1", "a");
        table.insert_list("g2", "b!a");
        sources.add_table("t", table);
        let found = ours(list, Some(sources))
            .map(|names| names.join(","))
            .map_err(drop);
        assert_eq!(found, here.map(str::to_owned), "here: {list}");
        let there =
            json!({ "s": { "g": "a! b", "all": "a,b,c" }, "t": { "g1": "a", "g2": "b!a" } });
        let answer = match oracle.expand(&json!({ "expand": list, "sources": there })) {
            Answer::Hosts { names, .. } => Ok(names.join(",")),
            Answer::Error(_) => Err(()),
        };
        assert_eq!(answer, theirs.map(str::to_owned), "there: {list}");
    }
}

#[test]
fn known_differences_are_what_the_list_says() {
    let mut oracle = Oracle::start();
    for Difference {
        list,
        ours: here,
        theirs,
        ..
    } in DIFFERENCES
    {
        let sorted = |mut names: Vec<String>| {
            names.sort_unstable();
            names.join(",")
        };
        let found = ours(list, None).map(sorted).map_err(drop);
        assert_eq!(found, here.map(str::to_owned), "here: {list}");
        let answer = match oracle.expand(&json!({ "expand": list })) {
            Answer::Hosts { names, .. } => Ok(sorted(names)),
            Answer::Error(_) => Err(()),
        };
        assert_eq!(answer, theirs.map(str::to_owned), "there: {list}");
    }
}

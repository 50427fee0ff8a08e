#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::{Item, fold, parse_list};

fn expand(list: &str) -> Vec<String> {
    let spec = |item| match item {
        Item::Target(target) => target.to_string(),
        Item::File(path) => panic!("unexpected file {path}"),
    };
    parse_list(list).unwrap().into_iter().map(spec).collect()
}

#[test]
fn known_folds() {
    for (names, folded) in [
        ("web3 web1 web2 web42", "web[1-3,42]"),
        ("web1 db1", "db1,web1"),
        ("web10 web9 web2", "web[2,9-10]"),
        ("n08 n09 n10", "n[08-10]"),
        ("n098 n099 n100", "n[098-100]"),
        ("n9 n10 n09", "n[9,09-10]"),
        ("n05 n99 n100", "n[05,99,100]"),
        ("n05 n06 n99 n100", "n[05-06,99-100]"),
        ("n7 n07 n007", "n[7,07,007]"),
        ("web1.lan web2.lan web3", "web3,web[1-2].lan"),
        ("r1n1 r1n2 r2n1 r2n2", "r[1-2]n[1-2]"),
        ("r1n1 r1n2 r2n1", "r1n[1-2],r2n1"),
        ("r1c1 r2c2 r3c1", "r[1,3]c1,r2c2"),
        ("10.0.1.1 10.0.0.1 10.0.0.2 10.0.1.2", "10.0.[0-1].[1-2]"),
        ("a a a", "a"),
        (
            "u1@web1:22 u1@web2:22 u2@web1:22",
            "u1@web[1-2]:22,u2@web1:22",
        ),
        ("[::1]:22 [::2]:22", "[::1]:22,[::2]:22"),
        ("fd00::1 fd00::2", "fd00::[1-2]"),
        (
            "1234567890123456789 1234567890123456790",
            "1234567890123456789,1234567890123456790",
        ),
    ] {
        assert_eq!(fold(names.split(' ')), folded, "{names}");
    }
    assert_eq!(fold([""; 0]), "");
}

fn names() -> impl Strategy<Value = Vec<String>> {
    let name = prop_oneof![
        "[ab]?[0-9]{1,3}",
        "[a-b][0-2]{1,2}-[0-2]{1,2}",
        "w0{0,2}[0-9]{1,2}(\\.x[0-2])?",
        "(u[12]@)?w[0-3](:2[2-4])?",
        "fd00::[0-9]{1,2}",
        "(u@)?\\[::[0-9]\\]:2[23]",
        "x[0-9]{17,20}",
    ];
    proptest::collection::vec(name, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The law: expansion gives back exactly the names, each once.
    #[test]
    fn expansion_inverts_folding(names in names()) {
        let folded = fold(&names);
        let expanded = expand(&folded);
        let set: BTreeSet<String> = expanded.iter().cloned().collect();
        prop_assert_eq!(expanded.len(), set.len(), "twice in {}", folded);
        prop_assert_eq!(set, names.into_iter().collect::<BTreeSet<_>>(), "{}", folded);
    }

    #[test]
    fn folding_does_not_depend_on_the_order(names in names(), seed: u64) {
        let folded = fold(&names);
        let mut turned = names;
        let middle = seed as usize % turned.len().max(1);
        turned.rotate_left(middle);
        turned.reverse();
        prop_assert_eq!(fold(&turned), folded);
    }

    /// One family, one number: as short as it can be, and in natural order.
    #[test]
    fn one_family_folds_to_one_sorted_element(numbers in proptest::collection::btree_set(0u32..300, 1..80)) {
        let folded = fold(numbers.iter().rev().map(|number| format!("web{number}")));
        let expected: Vec<String> = numbers.iter().map(|number| format!("web{number}")).collect();
        prop_assert_eq!(expand(&folded), expected);
        let gaps = numbers.iter().zip(numbers.iter().skip(1)).filter(|(a, b)| *a + 1 != **b).count();
        prop_assert_eq!(folded.matches(',').count(), gaps);
    }
}

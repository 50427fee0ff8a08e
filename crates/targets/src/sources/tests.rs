#![allow(clippy::unwrap_used)]

use crate::*;

/// A source `s` with these groups.
fn sources(groups: &[(&str, &str)]) -> Sources {
    let mut table = GroupTable::default();
    for (group, list) in groups {
        table.insert_list(*group, *list);
    }
    let mut sources = Sources::default();
    sources.add_table("s", table);
    sources
}

fn expand(sources: &mut Sources, list: &str) -> Result<String, String> {
    match sources.expand(&HostList::parse(list).unwrap()) {
        Ok(Expansion::Targets(targets)) => {
            let specs: Vec<String> = targets.iter().map(Target::to_string).collect();
            Ok(specs.join(" "))
        }
        Ok(Expansion::Needs(needs)) => Err(format!("{needs:?}")),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn operations_go_from_left_to_right_and_by_name() {
    let mut none = Sources::default();
    for (list, targets) in [
        ("a,b!a,a", "b a"),
        ("a[1-4]!a2&a[2-9]", "a3 a4"),
        ("a[1-3]^a[2-4]", "a1 a4"),
        ("root@a:22,b!A", "b"),
        ("root@a,a,ROOT@a,root@a", "root@a a ROOT@a"),
        ("-b,a,b,c", "a c"),
        ("web[1-5],-web[2-3],web2", "web1 web4 web5"),
        ("web[1-12]&*2", "web2 web12"),
        ("web[1-12]!/[02468]$/", "web1 web3 web5 web7 web9 web11"),
        ("web[1-3],-/2/", "web1 web3"),
        ("web[1-12]&w?b[1-2]?", "web10 web11 web12"),
        (r"a1,b1&/^(a|\/)/", "a1"),
        ("", ""),
    ] {
        assert_eq!(expand(&mut none, list).as_deref(), Ok(targets), "{list}");
    }
}

#[test]
fn groups_nest_and_keep_to_their_source() {
    let mut sources = sources(&[
        ("web", "web[1-2]:22"),
        ("db", "db1 @web"),
        ("r1", "x"),
        ("r2", "@db!@web"),
    ]);
    let mut other = GroupTable::default();
    other.insert(
        "web",
        vec![Target {
            user: Some("u".into()),
            ..Target::named("other")
        }],
    );
    sources.add_table("t", other);
    assert_eq!(
        expand(&mut sources, "@db").as_deref(),
        Ok("db1 web1:22 web2:22")
    );
    assert_eq!(
        expand(&mut sources, "@t:web,@r[1-2]").as_deref(),
        Ok("u@other x db1")
    );
    assert_eq!(expand(&mut sources, "@t:*").as_deref(), Ok("u@other"));
    assert_eq!(
        expand(&mut sources, "web*").as_deref(),
        Ok("web1:22 web2:22")
    );
    sources.set_default("t");
    assert_eq!(expand(&mut sources, "@web").as_deref(), Ok("u@other"));
    sources.set_candidates(vec![Target::named("webx"), Target::named("y")]);
    assert_eq!(expand(&mut sources, "/WEB/").as_deref(), Ok("webx"));
    let names =
        |names: &[&str]| Names::Names(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(
        sources.group_names(Some("s")).unwrap(),
        names(&["db", "r1", "r2", "web"])
    );
    assert_eq!(
        sources.groups_of("WEB2", Some("s")).unwrap(),
        names(&["db", "web"])
    );
}

#[test]
fn what_is_wrong_with_groups_is_said_with_their_names() {
    let deep: Vec<(String, String)> = (0..70)
        .map(|n| (format!("d{n}"), format!("@d{}", n + 1)))
        .collect();
    let mut groups: Vec<(&str, &str)> = deep
        .iter()
        .map(|(group, list)| (&**group, &**list))
        .collect();
    groups.extend([
        ("a", "@b"),
        ("b", "x,@s:a"),
        ("me", "@me"),
        ("bad", "x["),
        ("file", "^x"),
        ("minus", "a,-b"),
        ("d70", "x"),
    ]);
    let mut sources = sources(&groups);
    for (list, message) in [
        ("@a", "a group contains itself: @s:a > @s:b > @s:a"),
        ("@me", "a group contains itself: @s:me > @s:me"),
        ("@d0", "nested deeper than 64"),
        ("@bad", "@s:bad: \"x[\": '[' is not closed"),
        ("@file", "@s:file: \"^x\": a file cannot name another file"),
        (
            "@minus",
            "@s:minus: \"b\": a host or user name cannot begin with '-'",
        ),
        (
            "@nosuch",
            "\"@nosuch\": there is no group \"nosuch\" in the source \"s\"; there are: a, b, bad, d0,",
        ),
        ("@t:a", "there is no group source \"t\"; there are: s"),
    ] {
        let error = expand(&mut sources, list).unwrap_err();
        assert!(error.contains(message), "{list}: {error}");
    }
    assert_eq!(expand(&mut sources, "@d10").as_deref(), Ok("x"));
    let error = expand(&mut Sources::default(), "@a").unwrap_err();
    assert!(error.contains("no groups are configured"), "{error}");
    let error = expand(&mut Sources::default(), "a*").unwrap_err();
    assert!(
        error.contains("there are no hosts to choose from"),
        "{error}"
    );
}

/// A list of all hosts that is chosen from all hosts; a fuzzer found it.
#[test]
fn all_hosts_cannot_be_chosen_from_themselves() {
    for all in ["*", "a,x*", "@*", "@g"] {
        let mut sources = sources(&[("all", all), ("g", "@*")]);
        for list in ["*", "@*", "@g", "@all"] {
            let error = expand(&mut sources, list).unwrap_err();
            assert!(
                error.contains("a group contains itself: @s:"),
                "{list}: {error}"
            );
        }
    }
}

/// Each group twice the one before: 2^60 hosts if every mention were expanded.
#[test]
fn groups_that_repeat_each_other_are_expanded_once() {
    let groups: Vec<(String, String)> = (1..60)
        .map(|n| (format!("g{n}"), format!("@g{0},@g{0}", n - 1)))
        .collect();
    let mut groups: Vec<(&str, &str)> = groups
        .iter()
        .map(|(group, list)| (&**group, &**list))
        .collect();
    groups.push(("g0", "a,b"));
    assert_eq!(expand(&mut sources(&groups), "@g59").as_deref(), Ok("a b"));
}

fn conf(text: &str) -> Sources {
    let mut sources = Sources::new(vec!["/etc/cs/groups.conf".into()]);
    let need = Need::File {
        path: "/etc/cs/groups.conf".into(),
    };
    assert_eq!(
        sources.expand(&HostList::parse("@x").unwrap()).unwrap(),
        Expansion::Needs(vec![need.clone()])
    );
    sources.handle_supply(need, Supply::Content(text.into()));
    sources
}

#[test]
fn programs_are_asked_for_with_their_variables_and_all_at_once() {
    let mut sources = conf(
        "[Main]\ndefault=a\n[a,b]\nmap: m $GROUP ${SOURCE} $$ $X $CFGDIR\nreverse: r $NODE\nlist: l\n",
    );
    let program = |command: &str| Need::Program {
        command: command.into(),
        directory: Some("/etc/cs".into()),
    };
    let (x, y) = (program("m x a $ $X /etc/cs"), program("m y b $ $X /etc/cs"));
    let list = HostList::parse("@x,@b:y,@x,^f").unwrap();
    let file = Need::File { path: "f".into() };
    assert_eq!(
        sources.expand(&list).unwrap(),
        Expansion::Needs(vec![x.clone(), y.clone(), file.clone()])
    );
    sources.handle_supply(x.clone(), Supply::Content(b"n1 n2\n@z\n".into()));
    sources.handle_supply(y, Supply::Content(b"".into()));
    sources.handle_supply(file, Supply::Content(b"host Port=2222".into()));
    let z = program("m z a $ $X /etc/cs");
    assert_eq!(
        sources.expand(&list).unwrap(),
        Expansion::Needs(vec![z.clone()])
    );
    sources.handle_supply(z, Supply::Content(b"n3".into()));
    assert_eq!(
        expand(&mut sources, "@x,@b:y,@x,^f").as_deref(),
        Ok("n1 n2 n3 host:2222")
    );
    sources.handle_supply(x, Supply::Failed("exit status 3".into()));
    let error = expand(&mut sources, "@x").unwrap_err();
    assert_eq!(error, "m x a $ $X /etc/cs: cannot be read: exit status 3");
    let reverse = program("r n1");
    assert_eq!(
        sources.groups_of("n1", None).unwrap(),
        Names::Needs(vec![reverse.clone()])
    );
    sources.handle_supply(reverse, Supply::Content(b"x g[1-2]".into()));
    let names = ["g1", "g2", "x"].map(str::to_owned).to_vec();
    assert_eq!(sources.groups_of("n1", None).unwrap(), Names::Names(names));
    assert!(sources.groups_of("n1;id", None).is_err());
}

#[test]
fn what_a_program_prints_cannot_reach_a_shell() {
    let mut sources = conf("[a]\nmap: m $GROUP\nlist: l\n");
    let list = Need::Program {
        command: "l".into(),
        directory: Some("/etc/cs".into()),
    };
    sources.handle_supply(list, Supply::Content(b"ok $(id)".into()));
    let error = expand(&mut sources, "@*").unwrap_err();
    assert!(
        error.contains("'$' cannot stand in a group's name"),
        "{error}"
    );
}

#[test]
fn mistakes_in_groups_conf_have_their_line() {
    for (text, message) in [
        (
            "a: b\n",
            "/etc/cs/groups.conf:1: \"a: b\": no section begins before this line",
        ),
        (
            "[a]\nmap: x\nmap: y\n",
            "/etc/cs/groups.conf:3: \"map: y\": it stands twice",
        ),
        (
            "[a]\nmap: x\n[b]\nmap: x\n[a]\n",
            "/etc/cs/groups.conf:5: \"[a]\": it stands twice",
        ),
        (
            "[a]\nmap\n",
            "/etc/cs/groups.conf:2: \"map\": neither a section nor an option",
        ),
        (
            "[a]\nlist: x\n",
            "/etc/cs/groups.conf: the group source [a] has no map",
        ),
        (
            "[a]\nmap: x\n[b,a]\nmap: y\n",
            "two group sources are called \"a\"",
        ),
        (
            "[Main]\ndefault: q\n[a]\nmap: x\n",
            "there is no group source \"q\"; there are: a",
        ),
        ("[Main]\nconfdir: \"x\n", "a quote is not closed"),
    ] {
        let error = expand(&mut conf(text), "@g").unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn yaml_is_limited_and_its_mistakes_have_their_line() {
    let yaml = |text: &str| {
        let mut sources = conf("[Main]\nautodir: /d\n");
        let directory = Need::Directory {
            path: "/d".into(),
            suffix: ".yaml".into(),
        };
        sources.handle_supply(directory, Supply::Paths(vec!["/d/g.yaml".into()]));
        sources.handle_supply(
            Need::File {
                path: "/d/g.yaml".into(),
            },
            Supply::Content(text.into()),
        );
        expand(&mut sources, "@s:g")
    };
    assert_eq!(yaml("s:\n  g: a[1-2]\n").as_deref(), Ok("a1 a2"));
    assert_eq!(
        yaml("s: {g: [a, 'b,c'], 'on': x, '5': y}\n").as_deref(),
        Ok("a b c")
    );
    assert_eq!(
        yaml("x: &x {g: a}\ns:\n  <<: *x\n  h: b\n").as_deref(),
        Ok("a")
    );
    let bomb: String = (1..30)
        .map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1))
        .collect();
    let deep = format!("s: {}{}", "[".repeat(100), "]".repeat(100));
    for (text, message) in [
        (
            "s:\n  5: a\n".to_owned(),
            "/d/g.yaml:2: the name is not a text: put it in quotes",
        ),
        (
            "s:\n  on: a\n".to_owned(),
            "/d/g.yaml:2: the name is not a text",
        ),
        (
            "- a\n".to_owned(),
            "/d/g.yaml:1: something else stands where there should be sources",
        ),
        (
            "s:\n- a\n".to_owned(),
            "/d/g.yaml:2: something else stands where there should be groups",
        ),
        (
            "s:\n  g: {a: b}\n".to_owned(),
            "/d/g.yaml:2: something else stands where there should be hosts",
        ),
        ("s: [\n".to_owned(), "not YAML"),
        (format!("a0: &a0 x\n{bomb}"), "/d/g.yaml:"),
        (deep, "nested deeper than 64"),
        (
            "s: &a [*a]\n".to_owned(),
            "the alias repeats something that is not complete yet",
        ),
    ] {
        let error = yaml(&text).unwrap_err();
        assert!(error.contains(message), "{text:.60}: {error}");
    }
}

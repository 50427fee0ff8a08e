#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use crate::*;

fn targets(list: &str) -> Vec<Target> {
    let target = |item| match item {
        Item::Target(target) => target,
        Item::File(path) => panic!("unexpected file {path}"),
    };
    parse_list(list).unwrap().into_iter().map(target).collect()
}

fn specs(list: &str) -> Vec<String> {
    targets(list).iter().map(Target::to_string).collect()
}

fn problem(list: &str) -> TargetProblem {
    parse_list(list).unwrap_err().problem
}

#[test]
fn ranges_keep_order_padding_and_steps() {
    assert_eq!(specs("web[1-3,7]"), ["web1", "web2", "web3", "web7"]);
    assert_eq!(specs("n[008-010]"), ["n008", "n009", "n010"]);
    assert_eq!(specs("n[08-11]x"), ["n08x", "n09x", "n10x", "n11x"]);
    assert_eq!(specs("n[98-101]"), ["n98", "n99", "n100", "n101"]);
    assert_eq!(specs("n[1-9/2]"), ["n1", "n3", "n5", "n7", "n9"]);
    assert_eq!(specs("n[1-10/4]"), ["n1", "n5", "n9"]);
    assert_eq!(specs("n[ 1 - 3 , 5 ]"), ["n1", "n2", "n3", "n5"]);
    assert_eq!(specs("n[1-2][3-4]"), ["n13", "n14", "n23", "n24"]);
    assert_eq!(specs("n[00-02]"), ["n00", "n01", "n02"]);
    assert_eq!(specs("r[1-2]n[1-2]"), ["r1n1", "r1n2", "r2n1", "r2n2"]);
    assert_eq!(
        specs("[1-2].example.com"),
        ["1.example.com", "2.example.com"]
    );
    assert_eq!(specs("10.0.0.[254-255]"), ["10.0.0.254", "10.0.0.255"]);
    assert_eq!(specs("a[1]b[2,2]"), ["a1b2", "a1b2"]);
}

#[test]
fn users_ports_and_addresses() {
    assert_eq!(
        targets("root@web1:2222"),
        [Target {
            name: "web1".into(),
            user: Some("root".into()),
            port: Some(2222),
            ..Target::default()
        }]
    );
    assert_eq!(
        targets("jo@corp.example@web1")[0].user.as_deref(),
        Some("jo@corp.example")
    );
    assert_eq!(
        targets("[::1]:22"),
        [Target {
            name: "::1".into(),
            user: None,
            port: Some(22),
            ..Target::default()
        }]
    );
    assert_eq!(
        specs("u@[fe80::1%eth0]:22,::1,[::2]"),
        ["u@[fe80::1%eth0]:22", "::1", "::2"]
    );
    assert_eq!(specs("[1:2:3:4:5:6:7:8]:22"), ["[1:2:3:4:5:6:7:8]:22"]);
    // As known_hosts writes them; a range stays one.
    assert_eq!(
        specs("[127.0.0.2]:2233,u@[web_1]:22,[web-1.lan]:7"),
        ["127.0.0.2:2233", "u@web_1:22", "web-1.lan:7"]
    );
    assert_eq!(specs("[1-2]:22,[7]:8"), ["1:22", "2:22", "7:8"]);
    assert_eq!(specs("fd00::[9-10]"), ["fd00::9", "fd00::10"]);
    assert_eq!(specs("u@web[1-2]:22"), ["u@web1:22", "u@web2:22"]);
}

#[test]
fn lists_split_at_commas_and_spaces_and_return_files() {
    assert_eq!(specs(" a,, b\tc\n,d "), ["a", "b", "c", "d"]);
    assert_eq!(specs(""), [""; 0]);
    let items = parse_list("a,^dir/more hosts,b").unwrap();
    let name = |name: &str| Item::Target(Target::named(name));
    assert_eq!(
        items,
        [
            name("a"),
            Item::File("dir/more".into()),
            name("hosts"),
            name("b")
        ]
    );
    assert_eq!(problem("a,^"), TargetProblem::EmptyFile);
}

#[test]
fn mistakes_are_named() {
    use TargetProblem::*;
    let range = |text: &str| Range(text.into());
    for (list, expected) in [
        (
            "web[9-1]",
            Downwards {
                first: "9".into(),
                last: "1".into(),
            },
        ),
        ("web[1-010]", Padding("1-010".into())),
        ("web[1", UnclosedBracket),
        ("web1]", StrayBracket),
        ("web[1[2]]", StrayBracket),
        ("web[]", EmptyRange),
        ("web[1,]", EmptyRange),
        ("web[a-c]", range("a-c")),
        ("web[1-2-3]", range("1-2-3")),
        ("web[1-]", range("1-")),
        ("web[5/2]", range("5/2")),
        ("web[1-5/0]", range("1-5/0")),
        ("web[1-5/]", range("1-5/")),
        ("web[01-100]", Padding("01-100".into())),
        ("web[1-1000000000000000000]", NumberTooLong),
        ("web[1-1000001]", TooMany),
        ("a[1-999999999]b[1-999999999]c[1-999999999]", TooMany),
        ("web[1-600000],db[1-600000]", TooMany),
        ("-oProxyCommand=x", OptionAsHost),
        ("-l@web1", LeadingDash),
        ("@nodes", NotPlain),
        ("root@", EmptyName),
        (":22", EmptyName),
        ("a/b", NameCharacter('/')),
        ("root@@web", UserOfGroup),
        ("@", EmptyGroup),
        ("@racks:", EmptyGroup),
        ("@a;b", GroupCharacter(';')),
        ("@a$(b)", GroupCharacter('$')),
        ("@-a", LeadingDash),
        ("a!b", NotPlain),
        ("a!", MissingOperand),
        ("!a", MissingOperand),
        ("a&,b", MissingOperand),
        ("a ^b", SpacedCaret),
        ("/web", UnclosedRegex),
        ("u@web*", GlobCharacter('@')),
        ("w[1-2000]*", TooManyGlobs(1000)),
        ("web*", NotPlain),
        ("web1;id", NameCharacter(';')),
        ("w\u{1b}[1]", NameCharacter('\u{1b}')),
        ("web$1", NameCharacter('$')),
        ("a;b@web1", UserCharacter(';')),
        ("u[1-2]@web1", UserCharacter('[')),
        ("web1:0", Port("0".into())),
        ("web1:+22", Port("+22".into())),
        ("web1:65536", Port("65536".into())),
        ("web1:", Port(String::new())),
        ("[::1]22", Address("[::1]22".into())),
        ("a:b:c", Address("a:b:c".into())),
        ("fe80::1%", Address("fe80::1%".into())),
        ("a Port=22", OptionAsHost),
    ] {
        assert_eq!(problem(list), expected, "{list}");
    }
    let long = "x".repeat(MAX_NAME_LEN + 1);
    assert_eq!(problem(&long), NameTooLong);
}

#[test]
fn an_error_quotes_what_was_written() {
    let error = parse_list("a,web[9-1],b").unwrap_err();
    assert_eq!(
        error.to_string(),
        r#""web[9-1]": the range 9-1 runs downwards: write 1-9"#
    );
    let error = parse_list(&format!("{}\u{7}", "x".repeat(200))).unwrap_err();
    assert!(error.to_string().len() < 200, "{error}");
    assert!(
        error
            .to_string()
            .contains(r#"'\u{7}' cannot stand in a host name"#),
        "{error}"
    );
}

#[test]
fn a_file_holds_a_spec_a_line() {
    let contents = b"\xef\xbb\xbf# the web\r\nweb[1-2]\r\n\r\n  root@db1:2222  # main\n\na,b\nlast";
    let read = parse_file("hosts", contents).unwrap();
    let read: Vec<String> = read.iter().map(Target::to_string).collect();
    assert_eq!(read, ["web1", "web2", "root@db1:2222", "a", "b", "last"]);
    assert_eq!(parse_file("empty", b"").unwrap(), []);
}

#[test]
fn a_file_s_mistakes_have_their_line() {
    let message = |contents: &[u8]| parse_file("my hosts", contents).unwrap_err().to_string();
    assert_eq!(
        message(b"a\nb\nweb[\n"),
        r#"my hosts:3: "web[": '[' is not closed: write a range such as [1-100,150]"#
    );
    assert!(message(b"10.0.0.1 web1").starts_with("my hosts:1: \"10.0.0.1 web1\": a space"));
    assert!(message(b"a\n^b").contains("my hosts:2: \"^b\": a file cannot name another file"));
    assert!(message(b"a\nb\xff\n").contains("my hosts:2:"));
    assert!(message(b"a\0b").contains("cannot stand in a host name"));
    assert!(message(b"web[1-600000]\nweb[1-600000]").contains("more than 1000000 hosts"));
}

#[test]
fn the_first_of_duplicates_is_kept() {
    let list = targets("b,a,B,root@a,a:22,A,b");
    let kept: Vec<String> = distinct(list).iter().map(Target::to_string).collect();
    assert_eq!(kept, ["b", "a", "root@a", "a:22"]);
}

#[test]
fn exclusions_go_by_name() {
    let left = exclude(
        targets("root@web[1-4]:22,db1"),
        &targets("WEB[2-3],nobody@db1"),
    );
    let left: Vec<String> = left.iter().map(Target::to_string).collect();
    assert_eq!(left, ["root@web1:22", "root@web4:22"]);
}

#[test]
fn labels_are_names_unless_they_would_repeat() {
    assert_eq!(
        labels(&targets("root@a,b:22,admin@a,a")),
        ["root@a", "b", "admin@a", "a"]
    );
}

#[test]
fn a_hundred_thousand_hosts() {
    let list = targets("web[000001-100000]");
    assert_eq!(
        (list.len(), list[99_999].name.as_str()),
        (100_000, "web100000")
    );
    let names = list.iter().rev().map(|target| &target.name);
    assert_eq!(fold(names), "web[000001-100000]");
    let rows = targets("r[1-100]-n[1-1000]");
    assert_eq!(
        fold(rows.iter().map(|target| &target.name)),
        "r[1-100]-n[1-1000]"
    );
    assert_eq!(distinct(exclude(list, &rows)).len(), 100_000);
}

proptest! {
    /// Whatever is typed is a list or an error, and what it yields parses back to itself.
    #[test]
    fn any_text_parses_or_fails(list in r"[-a-c0-9\[\]@:,/ ^.]{0,24}") {
        for item in parse_list(&list).unwrap_or_default() {
            if let Item::Target(target) = item {
                prop_assert_eq!(targets(&target.to_string()), vec![target]);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_file_or_an_error(contents: Vec<u8>) {
        if let Err(error) = parse_file("f", &contents) {
            prop_assert!(error.place.is_some());
        }
    }

    #[test]
    fn natural_order_is_total(a in "[ab0-3]{0,5}", b in "[ab0-3]{0,5}", c in "[ab0-3]{0,5}") {
        prop_assert_eq!(natural_cmp(&a, &b), natural_cmp(&b, &a).reverse());
        prop_assert_eq!(natural_cmp(&a, &b).is_eq(), a == b);
        if natural_cmp(&a, &b).is_le() && natural_cmp(&b, &c).is_le() {
            prop_assert!(natural_cmp(&a, &c).is_le());
        }
    }
}

fn written(targets: &[Target]) -> String {
    let text = |target: &Target| {
        let options = target.options.iter();
        let options: Vec<String> = options
            .map(|(name, value)| format!("{{{name}={value}}}"))
            .collect();
        format!("{target}{}", options.concat())
    };
    targets.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_line_of_a_file_may_hold_options() {
    let read = |text: &str| parse_file("f", text.as_bytes()).map(|targets| written(&targets));
    assert_eq!(
        read("a, u@b:1 User=x port=22 IdentityFile='my #key' # c\nc\n").unwrap(),
        "x@a:22{IdentityFile=my #key} u@b:1{IdentityFile=my #key} c"
    );
    for (line, message) in [
        ("a User=", "\"User=\": the value of User is empty"),
        ("a Port=0", "\"Port=0\": \"0\" is not a port"),
        ("a User=x b", "\"b\": a space inside a line"),
        ("a b User=x", "\"a b\": a space inside a line"),
        ("a User='x", "a quote is not closed"),
        ("a User=;", "';' cannot stand in a user name"),
    ] {
        let error = read(line).unwrap_err().to_string();
        assert!(error.contains(message), "{line}: {error}");
    }
    let many = format!("a{}", " SetEnv=A=b".repeat(65));
    assert!(
        read(&many)
            .unwrap_err()
            .to_string()
            .contains("more than 64 options")
    );
}

#[test]
fn known_hosts_and_ssh_config_have_plain_names() {
    let known_hosts = b"web1,10.0.0.1 ssh-ed25519 AAAA\n[web2]:2222,[10.0.0.2]:2222 ssh-rsa AAAA x\n|1|abc|def ssh-rsa AAAA\n\
        @cert-authority *.lan ssh-rsa AAAA\n# a b c\n10.0.0.3 ssh-rsa AAAA\n*.x,!y,z ssh-rsa AAAA\nbroken\n::1 ssh-rsa AAAA\n";
    assert_eq!(
        written(&known_hosts_names(known_hosts)),
        "web1 web2:2222 10.0.0.3 z ::1"
    );
    let config = b"Host a *.b !c d\n  HostName x\nhost=\"e\" f # comment\nInclude more/*.conf ~/x\nMatch host g\n";
    let found = ssh_config_names(config);
    assert_eq!(written(&found.names), "a d e f");
    assert_eq!(found.includes, ["more/*.conf", "~/x"]);
}

#[test]
fn json_and_csv_are_lists() {
    let json = |text: &str| parse_json("j", text.as_bytes()).map(|targets| written(&targets));
    for (text, targets) in [
        (r#"["u@a:22", "b[1-2]"]"#, "u@a:22 b1 b2"),
        (
            r#"[{"host": "a", "user": "u", "port": 22, "options": {"ForwardAgent": "yes"}, "x": []}]"#,
            "u@a:22{ForwardAgent=yes}",
        ),
        ("{\"host\":\"a\",\"exit\":1}\n{\"name\":\"b\"}\n", "a b"),
        (r#"{"hosts": ["a"]}"#, "a"),
        ("", ""),
        ("[]", ""),
    ] {
        assert_eq!(json(text).unwrap(), targets, "{text}");
    }
    for text in [
        "[1]",
        "[{}]",
        "{",
        r#"["a b"]"#,
        r#"[{"host": "a", "port": 0}]"#,
    ] {
        assert!(json(text).is_err(), "{text}");
    }
    let csv = |text: &str| parse_csv("c", text.as_bytes()).map(|targets| written(&targets));
    assert_eq!(csv("a,x\n\"b[1,3]\"\n\n").unwrap(), "a b1 b3");
    assert_eq!(
        csv("id,Host,User,port,option:HostName\n7,a,u,22,10.0.0.1\n8, b ,,,\n").unwrap(),
        "u@a:22{hostname=10.0.0.1} b"
    );
    let error = csv("host,port\na,1\n,2\n").unwrap_err().to_string();
    assert_eq!(error, "c:3: the host name is missing");
    let error = csv("host\na;b\n").unwrap_err().to_string();
    assert!(error.starts_with("c:2: \"a;b\""), "{error}");
}

#[test]
fn pick_and_split_keep_the_order() {
    let list = targets("n[1-10]");
    let mut state = 7u64;
    let mut random = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state ^ (state >> 33)
    };
    let mut seen = [0; 10];
    for _ in 0..1000 {
        let picked = pick(list.clone(), 3, &mut random);
        assert_eq!(picked.len(), 3);
        let at: Vec<usize> = picked
            .iter()
            .map(|target| target.name[1..].parse().unwrap())
            .collect();
        assert!(at.is_sorted_by(|a, b| a < b), "{at:?}");
        at.iter().for_each(|n| seen[n - 1] += 1);
    }
    assert!(
        seen.iter().all(|count| (200..400).contains(count)),
        "{seen:?}"
    );
    assert_eq!(pick(list.clone(), 99, &mut random), list);
    assert_eq!(pick(list.clone(), 0, &mut random), []);
    let sizes = |parts| {
        split(&list, parts)
            .iter()
            .map(|run| run.len())
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(3), [4, 3, 3]);
    assert_eq!(sizes(20), [1; 10]);
    assert_eq!(sizes(0), [0; 0]);
    assert_eq!(split(&list, 3).concat(), list);
}

proptest! {
    /// A list that parses is printed so that it parses to the same, and prints the same again.
    #[test]
    fn printing_and_parsing_are_inverse(list in r"([-@^!&,/ *?]|[a-c]|\[[1-3](-[3-9])?\]|@g|/a/|\^f|s:){0,12}") {
        if let Ok(parsed) = HostList::parse(&list) {
            let printed = parsed.to_string();
            prop_assert_eq!(HostList::parse(&printed), Ok(parsed), "{} printed as {}", list, printed);
        }
    }
}

#![allow(clippy::unwrap_used)]

use crate::*;

/// `user@name:port{Keyword=value}` of each host of a list over the inventory.
fn hosts(inventory: &Result<Inventory, TargetError>, list: &str) -> String {
    let mut sources = Sources::default();
    sources.add_table("inventory", inventory.as_ref().unwrap().table().unwrap());
    let list = HostList::parse(list).unwrap();
    let Expansion::Targets(targets) = sources.expand(&list).unwrap() else {
        panic!()
    };
    let text = |target: &Target| {
        let options: Vec<String> = target
            .options
            .iter()
            .map(|(name, value)| format!("{{{name}={value}}}"))
            .collect();
        format!("{target}{}", options.concat())
    };
    targets.iter().map(text).collect::<Vec<_>>().join(" ")
}

const INI: &[u8] = b"\
; comment
alone ansible_host=10.0.0.9
[web]
www[01:03:2].lan:2222 ansible_user=root   # comment
db-[a:b] ansible_ssh_private_key_file='~/my key'
[::1]:23
[db]
db-a
[prod:children]
web
late
[late]
x ansible_port=7
[prod:vars]
ansible_user = prod
ansible_port=99
[web:vars]
ansible_user='web'
other={{ template }}
[all:vars]
ansible_user=everyone
";

#[test]
fn ini_has_ranges_groups_children_and_variables() {
    let ini = Inventory::parse_ini("hosts", INI);
    assert_eq!(
        hosts(&ini, "@*"),
        "everyone@alone{HostName=10.0.0.9} root@www01.lan:2222 root@www03.lan:2222 \
         web@db-a:99{IdentityFile=~/my key} web@db-b:99{IdentityFile=~/my key} web@[::1]:23 prod@x:7"
    );
    assert_eq!(hosts(&ini, "@db"), "web@db-a:99{IdentityFile=~/my key}");
    assert_eq!(
        hosts(&ini, "@ungrouped"),
        "everyone@alone{HostName=10.0.0.9}"
    );
    assert_eq!(hosts(&ini, "@prod!@web"), "prod@x:7");
    assert_eq!(hosts(&ini, "@all&w*1*"), "root@www01.lan:2222");
}

const YAML: &[u8] = b"\
all:
  hosts:
    alone:
  children:
    web:
      hosts:
        www[1:2]:
          ansible_port: 2222
      vars: {ansible_user: web}
    prod:
      children:
        web:
        db: {hosts: {db1: {ansible_host: 10.0.0.1}}, vars: {ansible_user: db}}
      vars:
        ansible_user: prod
";

#[test]
fn yaml_has_the_same() {
    let yaml = Inventory::parse_yaml("hosts.yaml", YAML);
    assert_eq!(
        hosts(&yaml, "@*"),
        "alone web@www1:2222 web@www2:2222 db@db1{HostName=10.0.0.1}"
    );
    assert_eq!(
        hosts(&yaml, "@prod&/1$/"),
        "web@www1:2222 db@db1{HostName=10.0.0.1}"
    );
    assert_eq!(hosts(&yaml, "@ungrouped"), "alone");
}

const LIST: &[u8] = br#"{
  "web": {"hosts": ["w1", "w2"], "vars": {"ansible_user": "web"}, "children": ["late"]},
  "db": ["d1", "w2"], "late": {"hosts": ["l1"]},
  "_meta": {"hostvars": {"w1": {"ansible_host": "10.0.0.1", "ansible_port": 2222}, "nobody": {}}}
}"#;

#[test]
fn programs_list_the_same_in_json() {
    let list = Inventory::parse_list("program --list", LIST);
    assert_eq!(
        hosts(&list, "@web"),
        "web@w2 web@l1 web@w1:2222{HostName=10.0.0.1}"
            .split(' ')
            .collect::<Vec<_>>()
            .join(" ")
    );
    assert_eq!(hosts(&list, "@db"), "d1 web@w2");
    assert_eq!(hosts(&list, "@late"), "web@l1");
}

#[test]
fn priority_decides_among_groups_of_one_depth() {
    let ini = |priority: &str| {
        let text = format!(
            "[a]\nx\n[b]\nx\n[a:vars]\nansible_user=a\n{priority}\n[b:vars]\nansible_user=b\n"
        );
        hosts(&Inventory::parse_ini("hosts", text.as_bytes()), "@*")
    };
    assert_eq!(ini(""), "b@x");
    assert_eq!(ini("ansible_group_priority=10"), "a@x");
}

#[test]
fn mistakes_say_where_they_are() {
    for (text, message) in [
        ("a\n[web\n", "hosts:2: \"[web\": not a section"),
        ("[web:hosts]\n", "hosts:1: \"[web:hosts]\": not a section"),
        (
            "[a:children]\nb\n",
            "hosts:2: \"b\": the group is not defined",
        ),
        (
            "[a:children]\nb\n[b:children]\na\n",
            "hosts: a group contains itself: a > b > a",
        ),
        ("a b\n", "hosts:1: \"a b\": not a variable"),
        ("a b='c\n", "hosts:1: \"a b='c\": a quote is not closed"),
        ("a[1:]\n", "hosts:1: \"a[1:]\": \"1:\" is not a range"),
        ("a[3:1]\n", "\"3:1\" is not a range"),
        ("a[01:100]\n", "\"01:100\" is not a range"),
        ("a[Y:b]\n", "\"Y:b\" is not a range"),
        ("a[1:999999999]\n", "more than 1000000 hosts"),
        ("a[1:1000][1:1001]\n", "more than 1000000 hosts"),
        ("a;b\n", "';' cannot stand in a host name"),
        ("-x\n", "cannot begin with '-'"),
    ] {
        let error = Inventory::parse_ini("hosts", text.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    for (text, message) in [
        (
            "a ansible_port=x\n",
            "\"ansible_port of a\": \"x\" is not a port",
        ),
        (
            "a ansible_host='{{ x }}'\n",
            "\"ansible_host of a\": a template",
        ),
    ] {
        let inventory = Inventory::parse_ini("hosts", text.as_bytes()).unwrap();
        let error = inventory.targets().unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    let error = Inventory::parse_yaml("h", b"all:\n  host:\n    a:\n")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("h:2: something else stands where there should be hosts, children"),
        "{error}"
    );
    for json in [
        "[]",
        "{",
        r#"{"a": 1}"#,
        r#"{"a": {"hosts": [1]}}"#,
        r#"{"a": {"hosts": ["-x"]}}"#,
    ] {
        assert!(
            Inventory::parse_list("p", json.as_bytes()).is_err(),
            "{json}"
        );
    }
}

/// Ansible's VARIABLE_PRECEDENCE: what the inventory says of groups, files of groups, the host, files of the host.
#[test]
fn variables_beside_an_inventory_count_more_than_its_own() {
    let mut ini = Inventory::parse_ini("hosts", INI).unwrap();
    let names: Vec<&str> = ini.group_names().collect();
    assert_eq!(names, ["all", "ungrouped", "db", "late", "prod", "web"]);
    assert_eq!(ini.host_names().next(), Some("alone"));
    let mut group = |name, text: &str| ini.read_group_vars(name, "file", text.as_bytes());
    group("prod", "ansible_user: prodfile\nother: {a: [b]}\n").unwrap();
    group("prod", "{\"ansible_private_key_file\": \"k\"}").unwrap();
    group("all", "ansible_user: allfile\nansible_host: 10.0.0.1\n").unwrap();
    group("ungrouped", "ansible_port: 7\n").unwrap();
    group("db", "$ANSIBLE_VAULT;1.1;AES256\n6162\n").unwrap();
    group("db", "").unwrap();
    assert!(group("db", "- a\n").is_err());
    ini.read_host_vars("x", "file", b"ansible_port: 8\n")
        .unwrap();
    ini.read_host_vars("stranger", "file", b"ansible_port: 9\n")
        .unwrap();
    assert_eq!(
        hosts(&Ok(ini), "@ungrouped,@prod!db-a!db-b!::1"),
        "allfile@alone:7{HostName=10.0.0.9} root@www01.lan:2222{HostName=10.0.0.1}{IdentityFile=k} \
         root@www03.lan:2222{HostName=10.0.0.1}{IdentityFile=k} prodfile@x:8{HostName=10.0.0.1}{IdentityFile=k}"
    );
}

/// As `ansible-inventory -i one -i two --list` has it.
#[test]
fn of_several_inventories_the_later_counts() {
    let one = "a ansible_user=one ansible_port=1\n[web]\nw1 ansible_user=w\n[web:vars]\nansible_port=10\n";
    let two = "a ansible_user=two\n[web]\nw2\nw1\n[prod:children]\nweb\n[prod:vars]\nansible_user=prod\n\
               [web:vars]\nansible_port=20\n";
    let earlier = Inventory::parse_ini("one", one.as_bytes()).unwrap();
    let later = Inventory::parse_ini_after(&earlier, "two", two.as_bytes()).unwrap();
    let both = earlier.clone().merge("two", later);
    assert_eq!(hosts(&both, "@*"), "two@a:1 w@w1:20 prod@w2:20");
    assert_eq!(hosts(&both, "@prod"), "w@w1:20 prod@w2:20");
    assert_eq!(hosts(&both, "@ungrouped"), "two@a:1");
    // A child of the first alone, and a cycle that both make together.
    let child = "[prod:children]\nweb\n";
    assert!(Inventory::parse_ini("two", child.as_bytes()).is_err());
    let cycle = "[up:children]\nweb\n[down:children]\nup\n";
    let below = Inventory::parse_ini_after(&earlier, "two", cycle.as_bytes()).unwrap();
    let first = "[down]\nx\n[web:children]\ndown\n";
    let first = Inventory::parse_ini("one", first.as_bytes()).unwrap();
    let error = first.merge("two", below).unwrap_err().to_string();
    assert!(error.contains("two: a group contains itself"), "{error}");
}

#[test]
fn arguments_for_ssh_are_settings_or_refused() {
    let of = |arguments: &str| {
        let text = format!("[all:vars]\n{arguments}\n[web]\nw ansible_port=7\n");
        Inventory::parse_ini("hosts", text.as_bytes())
    };
    let common = |arguments: &str| of(&format!("ansible_ssh_common_args='{arguments}'"));
    for (arguments, expected) in [
        ("", "w:7"),
        ("-J u@gate:22,b", "w:7{ProxyJump=u@gate:22,b}"),
        (
            "-o ProxyJump=gate -oForwardAgent=yes",
            "w:7{ProxyJump=gate}{ForwardAgent=yes}",
        ),
        (
            r#"-o ProxyCommand="ssh -W %h:%p -q gate""#,
            "w:7{ProxyCommand=ssh -W %h:%p -q gate}",
        ),
        (r#"-o "ConnectTimeout 5""#, "w:7{ConnectTimeout=5}"),
        ("-o ForwardX11=no", "w:7{ForwardX11=no}"),
        (r#"-o "ConnectTimeout = 5""#, "w:7{ConnectTimeout=5}"),
        (
            "-p 8 -l me -i k1 -ik2",
            "me@w:7{IdentityFile=k1}{IdentityFile=k2}",
        ),
    ] {
        assert_eq!(hosts(&common(arguments), "@*"), expected, "{arguments}");
    }
    let both = "ansible_ssh_extra_args=-o Compression=no\nansible_ssh_common_args=-J gate";
    assert_eq!(
        hosts(&of(both), "@*"),
        "w:7{ProxyJump=gate}{Compression=no}"
    );
    for (arguments, word) in [
        ("-C", "\"-C\" is not understood"),
        ("-o Foo", "\"-o Foo\" is not understood"),
        ("-o", "\"-o\" is not understood"),
        ("gate", "\"gate\" is not understood"),
        ("--", "\"--\" is not understood"),
        ("-p x", "\"x\" is not a port"),
        ("-o \"a", "quote"),
        ("-J {{ gate }}", "template"),
    ] {
        let inventory = common(arguments).unwrap();
        let error = inventory.targets().unwrap_err().to_string();
        assert!(
            error.contains("ansible_ssh_common_args of w") && error.contains(word),
            "{arguments}: {error}"
        );
    }
}

//! Where hosts come from besides plain lists: groups, genders, inventories, programs, and what these say of a host.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;
use support::program::{Ended, Running};
use support::{Shoal, User};

/// A user with a file in the home directory.
fn written(user: &User, name: &str, text: &str) -> String {
    let path = user.home().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn executable(user: &User, name: &str, text: &str) -> String {
    let path = written(user, name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A dry run without ssh_config.
fn dry_run(user: &User, arguments: &[&str]) -> Ended {
    let mut command = user.run(&["-F", "none", "--dry-run", "-l", "me"]);
    command
        .args(arguments)
        .arg("true")
        .env("PDSH_GENDERS_DIR", user.home());
    Running::start(&mut command).wait()
}

/// The hosts of a dry run, in order.
#[track_caller]
fn hosts(user: &User, arguments: &[&str]) -> Vec<String> {
    let stdout = dry_run(user, arguments).expect(0).stdout();
    let name = |line: &str| line.split(": ").next().unwrap().to_owned();
    stdout.lines().map(name).collect()
}

/// A user with groups of ClusterShell: a program's, and a file's.
fn with_groups() -> User {
    let user = User::new();
    let conf = "[Main]\ndefault: prog\nautodir: $CFGDIR/groups.d\n\
                [prog]\nmap: cat $CFGDIR/map.$GROUP\nall: echo web[1-4] db1\nlist: echo web db broken\n";
    written(&user, ".config/clustershell/groups.conf", conf);
    written(&user, ".config/clustershell/map.web", "web[1-3]\n");
    written(&user, ".config/clustershell/map.db", "@web\ndb1\n");
    written(
        &user,
        ".config/clustershell/groups.d/racks.yaml",
        "racks:\n  r1: 'web[1-2]'\n  r2: 'web3,db1'\n",
    );
    user
}

#[test]
fn groups_are_clush_s() {
    let user = with_groups();
    assert_eq!(hosts(&user, &["-w", "@web"]), ["web1", "web2", "web3"]);
    assert_eq!(hosts(&user, &["-w", "@db!@web"]), ["db1"]);
    assert_eq!(hosts(&user, &["-g", "racks:r[1-2]", "-X", "web"]), ["db1"]);
    assert_eq!(
        hosts(&user, &["-g", "web,db"]),
        ["web1", "web2", "web3", "db1"]
    );
    assert_eq!(hosts(&user, &["-a", "-x", "web[1-3]"]), ["web4", "db1"]);
    assert_eq!(hosts(&user, &["-w", "*4"]), ["web4"]);
    assert_eq!(
        hosts(&user, &["-w", "@racks:*&/[13]$/"]),
        ["web1", "web3", "db1"]
    );
    assert_eq!(hosts(&user, &["-w", "@web", "-x", "*[1-2]"]), ["web3"]);
    // $CLUSTERSHELL_CFGDIR goes before all others.
    let other = written(
        &user,
        "cfg/groups.conf",
        "[Main]\ndefault: x\n[x]\nmap: echo $GROUP$CFGDIR\n",
    );
    let directory = PathBuf::from(other);
    let mut command = user.run(&["-F", "none", "--dry-run", "-w", "@web", "true"]);
    command.env("CLUSTERSHELL_CFGDIR", directory.parent().unwrap());
    Running::start(&mut command)
        .wait()
        .expect(2)
        .says(&["@x:web"]);
}

#[test]
fn programs_that_fail_are_named_and_nothing_is_run() {
    let user = with_groups();
    dry_run(&user, &["-w", "@broken"]).expect(2).says(&[
        "cat",
        "map.broken",
        "exit status: 1",
        "No such file",
    ]);
    dry_run(&user, &["-w", "@racks:r9"])
        .expect(2)
        .says(&["r9", "racks", "r1, r2"]);
    dry_run(&user, &["-w", "@nowhere:x"])
        .expect(2)
        .says(&["nowhere", "prog"]);
    dry_run(&user, &["--hosts-from", "echo web1; echo why >&2; exit 4"])
        .expect(2)
        .says(&["exit 4", "exit status: 4", "why"]);
    dry_run(&user, &["--hosts-from", "echo 'web[1'"])
        .expect(2)
        .says(&["web[1"]);
}

#[test]
fn genders_are_pdsh_s() {
    let user = User::new();
    written(
        &user,
        "genders",
        "web[1-3] web,rack=a\ndb1 db,rack=a,altname=db1-ib,pdsh_rcmd_type=root@ssh\nold1 web,pdsh_all_skip\n",
    );
    assert_eq!(
        hosts(&user, &["-g", "web"]),
        ["web1", "web2", "web3", "old1"]
    );
    assert_eq!(hosts(&user, &["-a"]), ["web1", "web2", "web3", "db1-ib"]);
    assert_eq!(hosts(&user, &["-g", "rack=a&&db"]), ["db1-ib"]);
    assert_eq!(hosts(&user, &["-a", "-X", "rack=a&&web"]), ["db1-ib"]);
    assert_eq!(hosts(&user, &["-w", "@genders:*", "-X", "db"]).len(), 4);
    // Left out by its own name, too.
    let left = hosts(&user, &["-w", "db1,db1-ib,web1", "-X", "db"]);
    assert_eq!(left, ["web1"]);
    let root = dry_run(&user, &["-g", "db"]).expect(0).stdout();
    assert_eq!(root, "db1-ib: root@db1-ib port 22: true\n");
    dry_run(&user, &["-g", "&&"])
        .expect(2)
        .says(&["genders query"]);
}

/// The cases of pdsh's own tests of its module dshgroup, and ours.
#[test]
fn dsh_groups_are_pdsh_s() {
    let user = User::new();
    let group = |name: &str, text: &str| written(&user, &format!(".dsh/group/{name}"), text);
    group("groupA", "foo0\nfoo1\nfoo2\nfoo3\nfoo10\n");
    let path = group("groupB", "foo5\nfoo4 # a comment\nfoo3\n");
    group("groupAB", "#include groupA\n#include groupB\nfoo8\n");
    group("groupB2", &format!("#include {path}\n"));
    group("groupX", "#include groupY\nfoo1\n");
    group("groupY", "#include groupX\nroot@foo2:23 IdentityFile=k\n");
    group(".hidden", "[\n");
    let folded = |arguments: &[&str]| {
        let mut command = user.command(env!("CARGO_BIN_EXE_sshoal"));
        command.args(["hosts", "fold"]).args(arguments);
        command.env("CLUSTERSHELL_CFGDIR", user.home());
        command.env("PDSH_GENDERS_DIR", user.home());
        Running::start(&mut command).wait()
    };
    // Debian's clustershell brings a default source, behind which dsh's groups stand: they are named then.
    written(
        &user,
        "groups.conf",
        "[Main]\ndefault: other\n[other]\nmap: echo other\n",
    );
    for (arguments, hosts) in [
        (["-g", "dsh:groupA"].as_slice(), "foo[0-3,10]\n"),
        (&["-g", "dsh:groupA,dsh:groupB"], "foo[0-5,10]\n"),
        (&["-g", "dsh:groupA", "-X", "dsh:groupB"], "foo[0-2,10]\n"),
        (&["-g", "dsh:groupAB"], "foo[0-5,8,10]\n"),
        (&["-w", "@dsh:groupB2"], "foo[3-5]\n"),
        (&["-w", "@dsh:groupX"], "foo1,root@foo2:23\n"),
        (
            &["-w", "@dsh:*&@dsh:groupA!*1*"],
            "foo[0,2-3],root@foo2:23\n",
        ),
        (&["-g", "groupA"], "other\n"),
    ] {
        assert_eq!(folded(arguments).expect(0).stdout(), hosts, "{arguments:?}");
    }
    folded(&["-g", "dsh:nosuch"])
        .expect(2)
        .says(&["nosuch", "groupA"]);
    group("broken", "#include nosuch\n");
    folded(&["-g", "dsh:groupA"])
        .expect(2)
        .says(&["broken", "#include nosuch"]);
}

/// `user@name:port Keyword=value` of each host.
fn hosts_with_options(user: &User, arguments: &[&str]) -> Vec<String> {
    let mut command = user.command(env!("CARGO_BIN_EXE_sshoal"));
    command.args(["hosts", "expand", "--json"]).args(arguments);
    let stdout = Running::start(&mut command).wait().expect(0).stdout();
    let targets: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    let written = |target: &Value| {
        let Value::Object(target) = target else {
            return target.as_str().unwrap().to_owned();
        };
        let user = target
            .get("user")
            .map(|user| format!("{}@", user.as_str().unwrap()));
        let port = target.get("port").map(|port| format!(":{port}"));
        let options = target.get("options").and_then(Value::as_object);
        let options: Vec<String> = options
            .into_iter()
            .flatten()
            .map(|(name, value)| format!(" {name}={}", value.as_str().unwrap()))
            .collect();
        let name = target["host"].as_str().unwrap();
        let (user, port) = (user.unwrap_or_default(), port.unwrap_or_default());
        format!("{user}{name}{port}{}", options.concat())
    };
    targets.iter().map(written).collect()
}

#[test]
fn an_inventory_says_how_its_hosts_are_reached() {
    let user = User::new();
    let ini = "[web]\nweb[1:2] ansible_user=www\n[db]\ndb1 ansible_host=10.0.0.9 ansible_port=2222\n\
               [all:vars]\nansible_user=root\n";
    let ini = written(&user, "inventory", ini);
    let all = "web1: www@web1 port 22: true\nweb2: www@web2 port 22: true\ndb1: root@10.0.0.9 port 2222: true\n";
    let said = |arguments: &[&str]| dry_run(&user, arguments).expect(0).stdout();
    assert_eq!(said(&["--inventory", &ini, "-a"]), all);
    assert_eq!(said(&["--inventory", &ini, "-g", "web,db"]), all);
    // A name in a list is the inventory's host, too; what is typed with it counts.
    assert_eq!(
        said(&["--inventory", &ini, "-w", "x@db1,other"]),
        "db1: x@10.0.0.9 port 2222: true\nother: me@other port 22: true\n"
    );
    assert_eq!(
        hosts(&user, &["--inventory", &ini, "-w", "*", "-x", "@web"]),
        ["db1"]
    );
    let yaml = "all:\n  hosts:\n    web1: {ansible_user: www}\n";
    let yaml = written(&user, "inventory.yml", yaml);
    assert_eq!(
        said(&["--inventory", &yaml, "-a"]),
        "web1: www@web1 port 22: true\n"
    );
    dry_run(&user, &["--inventory", "/", "-a"])
        .expect(2)
        .says(&["directory"]);
    dry_run(&user, &["--inventory", &ini])
        .expect(2)
        .says(&["no hosts were named", "-a"]);
}

#[test]
fn several_inventories_are_one_and_tell_the_way_through_a_bastion() {
    let user = User::new();
    let folder = user.home().join("inventories");
    let file = |name: &str, content: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let one = file(
        "one/hosts",
        "[web]\nweb1 ansible_user=www\n[all:vars]\nansible_ssh_common_args='-J gate'\n",
    );
    let two = file(
        "two/hosts",
        "[web]\nweb1 ansible_user=root\nweb2\n[prod:children]\nweb\n",
    );
    // Beside one of them, and about a host of the other.
    file("one/host_vars/web2", "ansible_port: 7\n");
    let both = ["--inventory", &one, "--inventory", &two, "-g", "prod"];
    assert_eq!(
        hosts_with_options(&user, &both),
        [
            "root@web1 ProxyJump=gate".to_owned(),
            "web2:7 ProxyJump=gate".to_owned()
        ]
    );
    // In the defaults file it is what a typed one replaces.
    let default = format!("[run]\ninventory = [\"{one}\"]\n");
    let config = user.home().join(".config/sshoal/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, default).unwrap();
    let said = |arguments: &[&str]| dry_run(&user, arguments).expect(0).stdout();
    assert_eq!(said(&["-a"]), "web1: www@web1 port 22: true\n");
    let typed = said(&["--inventory", &two, "-w", "web1"]);
    assert_eq!(typed, "web1: root@web1 port 22: true\n");
    let three = file("three", "web3 ansible_ssh_extra_args='-C -J gate'\n");
    dry_run(&user, &["--inventory", &three, "-a"])
        .expect(2)
        .says(&["ansible_ssh_extra_args of web3", "\"-C\"", "ssh_config"]);
}

/// Expected is what `ansible-inventory --list` of ansible-core 2.19 says of the same files.
#[test]
fn variables_beside_an_inventory_count_as_they_do_for_ansible() {
    let user = User::new();
    let folder = user.home().join("beside");
    let file = |name: &str, content: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ini = file(
        "hosts",
        "solo\n[web]\nweb[01:02]\n[web:vars]\nansible_user=fromini\nansible_port=1000\n\
         [db]\ndb1 ansible_port=5555\ndb2\n[top:children]\nweb\ndb\n",
    );
    file(
        "group_vars/all.yml",
        "ansible_user: all\nansible_private_key_file: ~/all\n",
    );
    file("group_vars/top", "ansible_user: top\n");
    file("group_vars/ungrouped.yml", "ansible_port: 9\n");
    // A folder comes before a file of the same name with an ending.
    file("group_vars/web/x.yml", "ansible_host: webdir\n");
    file("group_vars/web.yml", "ansible_port: 2000\n");
    file("group_vars/db/a.yml", "ansible_port: 3000\n");
    file("group_vars/db/deeper/b.yaml", "ansible_host: 10.9.9.9\n");
    file("group_vars/db/c.yml~", "ansible_host: backup\n");
    file("group_vars/db/.d.yml", "ansible_host: hidden\n");
    file("group_vars/db/e.txt", "ansible_host: text\n");
    file(
        "group_vars/db/vault.yml",
        "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
    );
    file("host_vars/db1.yml", "ansible_port: 4000\nother: {a: [b]}\n");
    file("host_vars/db2.txt", "ansible_port: 1\n");
    file("host_vars/db2.json", "{\"ansible_port\": 2}\n");
    file("host_vars/web01", "---\n");
    file("host_vars/stranger.yml", "ansible_port: 3\n");
    let said = hosts_with_options(&user, &["--inventory", &ini, "-a"]);
    let all = "IdentityFile=~/all";
    assert_eq!(
        said,
        [
            format!("all@solo:9 {all}"),
            format!("top@web01:1000 HostName=webdir {all}"),
            format!("top@web02:1000 HostName=webdir {all}"),
            format!("top@db1:4000 HostName=10.9.9.9 {all}"),
            format!("top@db2:2 HostName=10.9.9.9 {all}"),
        ]
    );
    let json = file("list.json", r#"{"web": {"hosts": ["web01"]}}"#);
    let said = hosts_with_options(&user, &["--inventory", &json, "-a"]);
    assert_eq!(said, ["web01"], "all is in there already");
    file("host_vars/db2.json", "- no variables\n");
    dry_run(&user, &["--inventory", &ini, "-a"])
        .expect(2)
        .says(&["host_vars/db2.json:1", "variables"]);
}

#[test]
fn an_inventory_may_be_a_program() {
    let user = User::new();
    let json = r#"{"web": {"hosts": ["w1"]}, "_meta": {"hostvars": {"w1": {"ansible_port": 23}}}}"#;
    let program = executable(
        &user,
        "dynamic",
        &format!("#!/bin/sh\n[ \"$1\" = --list ] && echo '{json}'\n"),
    );
    let said = dry_run(&user, &["--inventory", &program, "-g", "web"]).expect(0);
    assert_eq!(said.stdout(), "w1: me@w1 port 23: true\n");
    // As old ones do it: the variables of each host by a question of its own.
    let old = executable(
        &user,
        "old",
        "#!/bin/sh\ncase $1 in --list) echo '{\"web\": {\"hosts\": [\"w1\", \"w2\", \"w3\"]}}' ;;\n\
         --host) [ $2 = w3 ] || echo '{\"ansible_user\": \"'of-$2'\"}' ;; esac\n",
    );
    assert_eq!(
        hosts_with_options(&user, &["--inventory", &old, "-g", "web"]),
        ["of-w1@w1", "of-w2@w2", "w3"]
    );
    let refusing = executable(
        &user,
        "refusing",
        "#!/bin/sh\n[ $1 = --list ] && echo '{\"web\": [\"w1\"]}'\n",
    );
    dry_run(&user, &["--inventory", &refusing, "-a"])
        .expect(2)
        .says(&["refusing --host w1", "exit status: 1"]);
    let failing = executable(&user, "failing", "#!/bin/sh\necho no token >&2\nexit 1\n");
    dry_run(&user, &["--inventory", &failing, "-a"])
        .expect(2)
        .says(&["failing --list", "exit status: 1", "no token"]);
}

#[test]
fn names_that_ssh_knows_are_sources_too() {
    let user = User::new();
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    written(
        &user,
        ".ssh/known_hosts",
        &format!("kh1,10.0.0.1 {key}\n[kh2]:2222 {key}\n"),
    );
    written(&user, ".ssh/config", "Include more\nHost one *.example\n");
    written(&user, ".ssh/more", "Host two\n");
    // This machine's own files may name others.
    let known = hosts(&user, &["-w", "@known_hosts:*"]);
    assert!(
        known.starts_with(&["kh1".into(), "kh2".into()]),
        "{known:?}"
    );
    assert_eq!(hosts(&user, &["-w", "@known_hosts:*&kh*2"]), ["kh2"]);
    let configured = hosts(&user, &["-w", "@ssh_config:*"]);
    assert!(
        configured.starts_with(&["one".into(), "two".into()]),
        "{configured:?}"
    );
}

#[test]
fn a_random_few_are_a_few_of_them() {
    let user = User::new();
    let picked = hosts(
        &user,
        &["-w", "web[1-50]", "-x", "web[1-10]", "--pick", "7"],
    );
    assert_eq!(picked.len(), 7);
    let numbers: Vec<u32> = picked
        .iter()
        .map(|name| name[3..].parse().unwrap())
        .collect();
    assert!(numbers.iter().all(|number| *number > 10) && numbers.is_sorted());
    assert_eq!(hosts(&user, &["-w", "web[1-3]", "--pick", "9"]).len(), 3);
}

#[test]
fn files_and_programs_may_print_json_and_csv() {
    let user = User::new();
    let csv = written(
        &user,
        "hosts.csv",
        "host,user,option:HostName\na,root,10.0.0.1\nb,,\n",
    );
    let said = |arguments: &[&str]| dry_run(&user, arguments).expect(0).stdout();
    let expected = "a: root@10.0.0.1 port 22: true\nb: me@b port 22: true\n";
    assert_eq!(said(&["-f", &csv]), expected);
    let json = r#"echo '[{"host":"a","user":"root","options":{"HostName":"10.0.0.1"}},"b"]'"#;
    assert_eq!(said(&["--hosts-from", json]), expected);
}

#[test]
fn what_a_host_file_says_reaches_the_connection_and_the_retry() {
    let shoal = Shoal::simulated(2, &["1=auth-denied@1"]);
    let file = shoal.file("aliases");
    let port = shoal.hosts.addresses()[0].port();
    let text = format!(
        "# -o says otherwise, and -l does\none HostName={} Port={port}\ntwo User=admin HostName={} Port={port}\n",
        shoal.name(0),
        shoal.name(1)
    );
    fs::write(&file, text).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = shoal.configured(&["-o", "Port=1", "-o", "HostName=127.0.0.1"]);
        Running::start(command.args(arguments)).wait()
    };
    let ended = run(&["-f", &file, "hostname"])
        .expect(3)
        .says(&["auth-denied: two"]);
    assert_eq!(ended.stdout(), "one: sim0\n");
    let ended = run(&["--retry-failed", "auth-denied", "--json", "echo %u@%h"]).expect(0);
    let record: serde_json::Value =
        serde_json::from_str(ended.stdout().lines().next().unwrap()).unwrap();
    assert_eq!(record["target"], format!("admin@two:{port}"));
    assert_eq!(record["options"]["HostName"], shoal.name(1));
    assert_eq!(record["stdout"], format!("admin@{}\n", shoal.name(1)));

    fs::write(&file, "one NoSuchKeyword=1\n").unwrap();
    run(&["-f", &file, "hostname"]).expect(2).says(&[
        "one",
        "given with the host",
        "nosuchkeyword",
    ]);
}

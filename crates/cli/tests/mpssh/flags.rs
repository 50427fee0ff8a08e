//! Flags and lines of host files that mpssh.py has not, and how its own are read.

use super::*;

#[test]
fn both_names_are_the_same_program() {
    let scene = Scene::new(1);
    let alone = scene.run("web1\n", &["-e", "echo %h"]).expect(0);
    let mut command = scene.shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    let config = format!("F{}", scene.config());
    let list = scene.list("web1\n");
    command.args([
        "mpssh",
        "-d",
        "0",
        "-u",
        &scene.user,
        "-O",
        &config,
        "-f",
        &list,
    ]);
    let below = Running::start(command.args(["-e", "echo %h"]))
        .wait()
        .expect(0);
    assert!(
        alone
            .stdout()
            .contains("web1 -> %h\nweb1 =: SSH exit code 0\n")
    );
    assert_eq!(alone.stdout(), below.stdout());
    let third = scene.shoal.dir.path().join("mpssh.py");
    std::os::unix::fs::symlink(&scene.program, &third).unwrap();
    let third = Scene {
        program: third,
        ..scene
    };
    let alone_too = third.run("web1\n", &["-e", "echo %h"]).expect(0);
    assert_eq!(alone.stdout(), alone_too.stdout());
    let scene = third;
    let versions = format!("MPSSH.py 1.2\nsshoal {}\n", env!("CARGO_PKG_VERSION"));
    let version = |flag| Running::start(&mut scene.plain(&[flag])).wait().expect(0);
    assert_eq!(version("-V").stdout(), versions);
    assert_eq!(version("--vers").stdout(), versions);
}

#[test]
fn flags_may_stand_behind_the_command_and_be_shortened() {
    let scene = Scene::new(1);
    let (config, list) = (format!("F{}", scene.config()), scene.list("web1\n"));
    let arguments = [
        "echo a",
        "--noh",
        "--del=0",
        "--use",
        &scene.user,
        "--sshopt",
        &config,
    ];
    let arguments = [&arguments[..], &["-ef", &list, "-p9"]].concat();
    let ended = Running::start(&mut scene.plain(&arguments))
        .wait()
        .expect(0);
    assert_eq!(ended.stdout(), "web1 -> a\nweb1 =: SSH exit code 0\n");
}

#[test]
fn wrong_usage_is_told_with_the_programs_own_name() {
    let scene = Scene::new(1);
    let list = scene.list("web1\n");
    for (arguments, words) in [
        (&["true"][..], &["no host file", "-f"][..]),
        (&["-f", &list], &["no command"]),
        (
            &["-f", &list, "echo", "two words"],
            &["two words", "Usage: mpssh"],
        ),
        (&["-f", &list, "-p", "0", "true"], &["--procs", "from 1 to"]),
        (
            &["-f", &list, "-p", "-1", "true"],
            &["--procs", "from 1 to"],
        ),
        (
            &["-f", &list, "-l", "-1", "true"],
            &["--maxlen", "from 1 to"],
        ),
        (&["-f", &list, "-l", "0", "true"], &["--maxlen"]),
    ] {
        let ended = Running::start(&mut scene.plain(arguments)).wait();
        ended.expect(2).says(words);
    }
    for (arguments, words) in [
        (
            &["-f", "/nonexistent/list", "true"][..],
            &["host list /nonexistent/list"][..],
        ),
        (
            &["-f", &list, "-O", "-p 22", "true"],
            &["-O \"-p 22\"", "without its dash"],
        ),
        (
            &["-f", &list, "-O", "o Prot=22", "true"],
            &["prot", "command line"],
        ),
    ] {
        let ended = Running::start(&mut scene.plain(arguments)).wait();
        assert_eq!(ended.stdout(), "");
        ended.expect(1).says(words);
    }
    let script = scene.shoal.file("long.sh");
    fs::write(&script, "'".repeat(100_000)).unwrap();
    let arguments = ["-f", &list, "--script", &script];
    let ended = Running::start(&mut scene.plain(&arguments)).wait();
    ended.expect(1).says(&["longer than", "copy what is long"]);
    let latin = scene.shoal.file("latin");
    fs::write(&latin, b"web1\n\n\xe4\n").unwrap();
    let ended = Running::start(&mut scene.plain(&["-f", &latin, "true"])).wait();
    ended.expect(1).says(&[&format!("{latin}:3"), "UTF-8"]);
}

#[test]
fn flags_of_ssh_are_honoured_natively() {
    let scene = Scene::new(1);
    let port = scene.shoal.hosts.addresses()[0].port();
    let files = ["id_ed25519", "known_hosts"].map(|name| scene.shoal.file(name));
    let list = scene.list(&format!("{}\n", scene.address(0)));
    let options = [
        "F none".to_owned(),
        format!("p {port}"),
        format!("i {}", files[0]),
        format!("o UserKnownHostsFile={}", files[1]),
        "o StrictHostKeyChecking=yes".to_owned(),
        format!("l {}", scene.user),
        "4TxC".to_owned(),
    ];
    let options: Vec<&str> = options.iter().flat_map(|text| ["-O", text]).collect();
    // A user in -O goes before -u, as with ssh.
    let ours = [
        "-d",
        "0",
        "-H",
        "-u",
        "nobody-else",
        "-f",
        &list,
        "echo $USER",
    ];
    // Were an ssh started, it would be this one.
    ssh_program::write_script(&scene.shoal.file("ssh"), "exit 9");
    let path = format!(
        "{}:{}",
        scene.shoal.dir.path().display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = scene.plain(&[&ours[..], &options].concat());
    let ended = Running::start(command.env("PATH", path)).wait();
    let (host, user) = (scene.address(0), &scene.user);
    assert_eq!(ended.expect(0).stdout(), format!("{host} -> {user}\n"));
}

#[test]
fn what_the_flags_of_ssh_say_goes_before_a_line_of_the_list_as_with_ssh() {
    let scene = Scene::new(1);
    let port = scene.shoal.hosts.addresses()[0].port();
    let host = scene.address(0);
    let line = format!("nobody-else@{host}:1");
    for user in [
        format!("l {}", scene.user),
        format!("o User={}", scene.user),
    ] {
        for port in [format!("p {port}"), format!("o Port={port}")] {
            let flags = ["-H", "-O", &user, "-O", &port, "echo $USER"];
            let expected = format!("{line} -> {}\n", scene.user);
            assert_eq!(scene.run(&line, &flags).expect(0).stdout(), expected);
            let by_ssh = [&["-S", "ssh", "-O", "q"], &flags[..]].concat();
            assert_eq!(scene.run(&line, &by_ssh).expect(0).stdout(), expected);
        }
    }
}

#[test]
fn a_line_of_the_list_is_no_flag_of_the_ssh_that_is_started() {
    let scene = Scene::new(1);
    let (ssh, started) = (scene.shoal.file("ssh"), scene.shoal.file("started"));
    ssh_program::write_script(&ssh, &format!("touch {started}"));
    for (line, words) in [
        ("-oProxyCommand=true@web1", "is not a user name"),
        ("a;b@web1", "is not a user name"),
        ("-h", "is not a host name"),
        ("root@-h", "is not a host name"),
        ("$(b)", "is not a host name"),
    ] {
        let ended = scene.run(&format!("web1\n{line}\n"), &["-S", &ssh, "true"]);
        assert_eq!(ended.stdout(), "");
        ended.expect(1).says(&[words]);
    }
    assert!(!std::path::Path::new(&started).exists());
    scene.run("web1\n", &["-S", &ssh, "true"]).expect(0);
    assert!(std::path::Path::new(&started).exists());
}

#[test]
fn what_a_server_says_stands_with_the_line_it_was_said_to() {
    let folder = support::shared_folder();
    let banner = folder.path().join("banner");
    fs::write(&banner, "Keep out.\n").unwrap();
    let mut spec = SshdSpec::new(1);
    spec.lines = vec![format!("Banner {}", banner.display())];
    let scene = Scene::of(&spec);
    // Two lines for one host.
    let port = scene.shoal.hosts.addresses()[0].port();
    let address = scene.address(0);
    let lines = [format!("{address}:{port}"), format!("[{address}]:{port}")];
    let ended = scene.run(&lines.join("\n"), &["-p", "1", "true"]).expect(0);
    let width = lines[1].len();
    for line in lines {
        let said = format!("{line:width$} => Keep out.\n");
        let shown = ended.stdout();
        assert_eq!(shown.matches(&said).count(), 1, "{shown}");
    }
}

#[test]
fn a_key_file_that_cannot_be_used_is_told_of_and_done_without_as_with_ssh() {
    let scene = Scene::new(1);
    let (missing, garbage) = (scene.shoal.file("missing"), scene.shoal.file("garbage"));
    fs::write(&garbage, "no key\n").unwrap();
    fs::set_permissions(
        &garbage,
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    for key in [&missing, &garbage] {
        let option = format!("o IdentityFile={key}");
        // The configuration has another one that will do.
        let ended = scene
            .run("web1\nweb1\n", &["-H", "-O", &option, "echo in"])
            .expect(0);
        assert_eq!(ended.stdout(), "web1 -> in\nweb1 -> in\n");
        let told = ended.stderr();
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(
            told.contains(key.as_str()) && told.contains("do without it"),
            "{told}"
        );
        let by_ssh = scene.run(
            "web1\n",
            &["-H", "-S", "ssh", "-O", "q", "-O", &option, "echo in"],
        );
        assert_eq!(by_ssh.expect(0).stdout(), "web1 -> in\n");
    }
    let options: Vec<String> = (0..5).map(|n| format!("i {missing}{n}")).collect();
    let options: Vec<&str> = options.iter().flat_map(|text| ["-O", text]).collect();
    let ended = scene.run("web1\n", &[&options, &["-H", "echo in"][..]].concat());
    let ended = ended
        .expect(0)
        .says(&["missing0", "missing2", "2 more key files"]);
    assert!(!ended.stderr().contains("missing3"), "{}", ended.stderr());
}

#[test]
fn the_c_programs_flags_have_their_long_names() {
    let scene = Scene::new(2);
    let list = "%one\nweb1\n%two\nweb2\n";
    let run = |arguments: &[&str]| {
        let arguments = [&["-H"], arguments].concat();
        scene.run(list, &arguments).expect(0)
    };
    let both = "echo out; echo err >&2";
    let label = ["--label", "two"];
    let shown = |flags: &[&str]| run(&[&label, flags, &[both]].concat()).stdout();
    assert_eq!(shown(&[]), "web2 -> out\nweb2 => err\n");
    assert_eq!(shown(&["--no-err"]), "web2 -> out\n");
    assert_eq!(shown(&["--no-out"]), "web2 => err\n");
    assert_eq!(shown(&["--blind", "--exit"]), "web2 =: SSH exit code 0\n");
    let dir = scene.shoal.file("out");
    assert_eq!(shown(&["--blind", "--outdir", &dir]), "");
    let written = |name: &str| fs::read_to_string(format!("{dir}/{name}")).unwrap();
    assert_eq!(
        (written("web2.out"), written("web2.err")),
        ("out\n".into(), "err\n".into())
    );
    let script = scene.shoal.file("script.sh");
    ssh_program::write_script(&script, "echo \"script for $1$USER\"");
    let ended = run(&["--label", "one", "--script", &script]);
    assert_eq!(
        ended.stdout(),
        format!("web1 -> script for {}\n", scene.user)
    );
}

#[test]
fn the_c_programs_flags_for_ssh_are_flags_of_ssh() {
    let scene = Scene::new(1);
    let port = scene.shoal.hosts.addresses()[0].port();
    let line = format!("{}@{}:{port}", scene.user, scene.address(0));
    let list = scene.list(&line);
    let identity = scene.shoal.file("id_ed25519");
    let arguments = [
        "-d0",
        "-H",
        "-O",
        "F none",
        "-f",
        &list,
        "--identity",
        &identity,
    ];
    let shown = |more: &[&str]| {
        let mut command = scene.plain(&[&arguments[..], more, &["echo in"]].concat());
        Running::start(&mut command).wait().expect(0).stdout()
    };
    let known = format!(
        "o UserKnownHostsFile={}",
        scene.shoal.file("new_known_hosts")
    );
    let failed = format!("{line} =: SSH exit code 255 (possible SSH failure)\n");
    assert_eq!(shown(&["--quiet", "-O", &known]), failed);
    let told = shown(&["-O", &known]);
    let (last, words) = ("Host key verification failed.", "no known_hosts line for");
    assert!(told.contains(words) && told.contains(last), "{told}");
    assert_eq!(
        shown(&["--nokeychk", "-O", &known]),
        format!("{line} -> in\n")
    );
}

#[test]
fn defaults_come_from_a_table_of_its_own() {
    let scene = Scene::new(1);
    let folder = scene.shoal.user.home().join(".config/sshoal");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("config.toml"),
        "[mpssh]\nnoheader = true\nmaxlen = 3\n",
    )
    .unwrap();
    let ended = scene.run("web1\n", &["echo abcde"]).expect(0);
    assert_eq!(ended.stdout(), "web1 -> abc\nweb1 -> de\n");
    let ended = scene.run("web1\n", &["-l", "4", "echo abcde"]).expect(0);
    assert_eq!(ended.stdout(), "web1 -> abcd\nweb1 -> e\n");
    // Of options the first counts: the one that is typed.
    let text = "[mpssh]\nnoheader = true\nsshopt = [\"o SetEnv=A=file\", \"o Port=1\"]\n";
    fs::write(folder.join("config.toml"), text).unwrap();
    let port = format!("p {}", scene.shoal.hosts.addresses()[0].port());
    let ended = scene.run("web1\n", &["-O", &port, "echo in"]).expect(0);
    assert_eq!(ended.stdout(), "web1 -> in\n");
    let ended = scene.run("web1\n", &["true"]).expect(0);
    assert!(
        ended.stdout().contains("port 1: Connection refused"),
        "{}",
        ended.stdout()
    );
}

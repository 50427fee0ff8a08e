//! What mpssh.py 1.2 prints, byte by byte. With a path to it in MPSSH_PY these tests are about that program in place of
//! ours: so they were proven.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use super::*;
use crate::support::shared_folder;

/// The scene, with the original in it if there is one.
fn scene(hosts: u32) -> Scene {
    with_original(Scene::new(hosts))
}

fn with_original(mut scene: Scene) -> Scene {
    if let Some(original) = std::env::var_os("MPSSH_PY") {
        scene.program = PathBuf::from(original);
    }
    scene
}

/// What is printed for one host, header and closing line left out.
#[track_caller]
fn prints(scene: &Scene, flags: &[&str], command: &str, expected: &[u8]) {
    let arguments = [flags, &["-H", command]].concat();
    let ended = scene.run("web1\n", &arguments).expect(0);
    let shown = String::from_utf8_lossy(expected);
    assert!(
        ended.stdout == expected,
        "{command}: {} and not {shown}",
        ended.stdout()
    );
    assert_eq!(ended.stderr(), "", "{command}");
}

#[test]
fn a_run_has_a_header_and_a_closing_line() {
    let scene = scene(1);
    let user = scene.user.clone();
    let ended = scene
        .run("# all\n\n  web1  \n", &["echo \"a  b\""])
        .expect(0);
    let (begin, end) = (header(1, 1, "echo \"a  b\"", &user), closing(1, 0, 0));
    assert_eq!(ended.stdout(), format!("{begin}web1 -> a  b\n{end}"));
    assert_eq!(ended.stderr(), "");
    // Nothing that was not said is shown.
    let ended = scene.run("web1", &["/bin/true    "]).expect(0);
    let begin = header(1, 1, "/bin/true    ", &user);
    assert_eq!(ended.stdout(), format!("{begin}{}", closing(1, 0, 0)));
    let ended = scene.run("# nobody\n", &["true"]).expect(0);
    let begin = header(0, 0, "true", &user);
    assert_eq!(ended.stdout(), format!("{begin}{}", closing(0, 0, 0)));
}

#[test]
fn hosts_of_all_kinds_stand_in_lines_of_their_own() {
    let scene = scene(2);
    let hosts = "web1\nweb2\nrefused\nno-such-host.invalid\ndenied\nweb1\n";
    let command = "echo out; echo err >&2; exit 3";
    let ended = scene.run(hosts, &["-p", "4", command]).expect(0);
    let text = ended.stdout();
    let (begin, end) = (header(6, 4, command, &scene.user), closing(0, 3, 3));
    let lines = text
        .strip_prefix(&begin)
        .and_then(|text| text.strip_suffix(&end));
    let mut lines: Vec<&str> = lines.expect(&text).lines().collect();
    lines.sort_unstable();
    let (address, user) = (scene.address(0), &scene.user);
    let mut expected = Vec::new();
    for web in ["web1", "web1", "web2"] {
        for line in ["-> out", "=> err", "=: SSH exit code 3"] {
            expected.push(format!("{web:<20} {line}"));
        }
    }
    for (host, words) in [
        (
            "refused",
            format!("ssh: connect to host {address} port 1: Connection refused"),
        ),
        (
            "no-such-host.invalid",
            "ssh: Could not resolve hostname no-such-host.invalid: Name or service not known"
                .to_owned(),
        ),
        (
            "denied",
            format!("{user}@{address}: Permission denied (publickey,password)."),
        ),
    ] {
        expected.push(format!("{host:<20} => {words}"));
        expected.push(format!(
            "{host:<20} =: SSH exit code 255 (possible SSH failure)"
        ));
    }
    expected.sort_unstable();
    assert_eq!(lines, expected);
    assert_eq!(ended.stderr(), "");
}

#[test]
fn what_a_server_says_before_a_login_is_its_standard_error() {
    let folder = shared_folder();
    let banner = folder.path().join("banner");
    fs::write(&banner, "Keep out.\n\nReally.\n").unwrap();
    let mut spec = SshdSpec::new(1);
    spec.lines = vec![format!("Banner {}", banner.display())];
    let scene = with_original(Scene::of(&spec));
    let shown = b"web1 => Keep out.\nweb1 => \nweb1 => Really.\nweb1 =: SSH exit code 5\n";
    prints(&scene, &[], "exit 5", shown);
    prints(&scene, &["-O", "q"], "exit 5", b"web1 =: SSH exit code 5\n");
}

#[test]
fn a_host_that_does_not_answer_is_timed_out() {
    let scene = scene(1);
    let shoal = Shoal::simulated(1, &["0=connect-hang"]);
    let name = shoal.name(0);
    let port = shoal.hosts.addresses()[0].port();
    let config = format!("F{}", shoal.file("ssh_config"));
    let hosts = shoal.file("hosts");
    let arguments = [
        "-H",
        "-d",
        "0",
        "-O",
        &config,
        "-O",
        "o ConnectTimeout=1",
        "-f",
        &hosts,
    ];
    let mut command = scene.plain(&[&arguments[..], &["true"]].concat());
    let ended = Running::start(&mut command).wait().expect(0);
    let words = format!("ssh: connect to host {name} port {port}: Connection timed out");
    let lines = [words.as_str(), "SSH exit code 255 (possible SSH failure)"];
    let broken = |line: &str| match line.split_at_checked(80) {
        Some((first, rest)) if !rest.is_empty() => format!("{first}\n{name} => {rest}"),
        _ => line.to_owned(),
    };
    assert_eq!(
        ended.stdout(),
        format!("{name} => {}\n{name} =: {}\n", broken(lines[0]), lines[1])
    );
}

#[test]
fn exit_codes_are_shown_as_the_flags_say() {
    let scene = scene(1);
    prints(&scene, &[], "exit 2", b"web1 =: SSH exit code 2\n");
    prints(&scene, &["-E"], "exit 2", b"");
    prints(&scene, &[], "true", b"");
    prints(&scene, &["-e"], "true", b"web1 =: SSH exit code 0\n");
    prints(&scene, &["--zeroexit", "--ignexit"], "exit 9", b"");
    let failure = b"web1 =: SSH exit code 255 (possible SSH failure)\n";
    prints(&scene, &["-E"], "exit 255", failure);
    prints(&scene, &["-E"], "kill -KILL $$", failure);
}

#[test]
fn each_stream_keeps_its_order() {
    let scene = scene(1);
    let command = "echo err 1 >&2; echo out 1; echo err 2 >&2; echo out 2; exit 111";
    let text = scene.run("web1\n", &["-H", command]).expect(0).stdout();
    let of = |sign: &str| {
        text.lines()
            .filter(|line| line.contains(sign))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("->"), ["web1 -> out 1", "web1 -> out 2"]);
    assert_eq!(of("=>"), ["web1 => err 1", "web1 => err 2"]);
    assert!(text.ends_with("web1 =: SSH exit code 111\n"), "{text}");
    assert_eq!(text.lines().count(), 5);
}

#[test]
fn ends_of_lines_are_those_of_python() {
    let scene = scene(1);
    for (text, lines) in [
        (r"\n\nlala\n\n\n", &["", "", "lala", "", ""][..]),
        (r"\n\nlala\n", &["", "", "lala"]),
        (r"\n\nlala", &["", "", "lala"]),
        ("lala", &["lala"]),
        (r"a\r\nb\rc\n\rd", &["a", "b", "c", "", "d"]),
        (r"a\013b\014c\n", &["abc"]),
    ] {
        let expected: String = lines
            .iter()
            .map(|line| format!("web1 -> {line}\n"))
            .collect();
        prints(
            &scene,
            &["-B"],
            &format!("printf '{text}'"),
            expected.as_bytes(),
        );
    }
}

#[test]
fn what_does_not_print_is_left_out_and_counted() {
    let scene = scene(1);
    let command = r"printf 'test\001\r\n\002\177m\177est\n'";
    let warning = "web1 =: 4 non-printable characters were ignored\n";
    let stripped = "web1 -> test\nweb1 -> mest\n";
    prints(
        &scene,
        &[],
        command,
        format!("{stripped}{warning}").as_bytes(),
    );
    prints(&scene, &["-B"], command, stripped.as_bytes());
    let raw = b"web1 -> test\x01\nweb1 -> \x02\x7fm\x7fest\n";
    prints(&scene, &["-b"], command, raw);
    prints(&scene, &["-b", "-B"], command, raw);
    // Tabs and what is not ASCII stay.
    let command = r"printf 'a\tb\377\303\244\033\n'";
    let shown = b"web1 -> a\tb\xff\xc3\xa4\nweb1 =: 1 non-printable characters were ignored\n";
    prints(&scene, &[], command, shown);
    let command = r"printf '\033[31m\n' >&2";
    let shown = b"web1 => [31m\nweb1 =: 1 non-printable characters were ignored\n";
    prints(&scene, &[], command, shown);
}

#[test]
fn long_lines_are_broken() {
    let scene = scene(1);
    let line = |length: usize| format!("web1 -> {}\n", "x".repeat(length));
    let command = "printf '%0200d' 0 | tr 0 x";
    let lines = [line(80), line(80), line(40)].concat();
    prints(&scene, &[], command, lines.as_bytes());
    prints(
        &scene,
        &["-l", "40"],
        command,
        line(40).repeat(5).as_bytes(),
    );
    prints(&scene, &["--maxlen=1000"], command, line(200).as_bytes());
    // A line that fills the last one has no empty one behind it, and what is left out has filled it.
    let command = r"printf '%0158d\001\001\nb\n' 0 | tr 0 x";
    let lines = [line(80), line(78), "web1 -> b\n".to_owned()].concat();
    prints(&scene, &["-B"], command, lines.as_bytes());
}

#[test]
fn much_output_is_shown_to_its_last_octet() {
    let scene = scene(1);
    let shown = |command: &str| {
        let text = scene.run("web1\n", &["-H", command]).expect(0).stdout();
        let texts = text.lines().map(|line| line.strip_prefix("web1 -> "));
        texts
            .map(|text| text.unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    // A machine that is busy may make a pause, which ends a line: so what is one line may be more.
    let lines = shown("head -c 1000000 /dev/zero | tr '\\0' x");
    assert!(lines.len() >= 12_500 && lines.iter().all(|line| line.len() <= 80));
    assert_eq!(lines.concat(), "x".repeat(1_000_000));
    let lines = shown("seq 20000");
    assert!(lines.len() >= 20_000);
    let numbers: String = (1..=20_000).map(|number: u32| number.to_string()).collect();
    assert_eq!(lines.concat(), numbers);
}

#[test]
fn a_pause_ends_a_line() {
    let scene = scene(1);
    let marks = shared_folder();
    let mark = marks.path().join("go-on");
    let line = format!(
        "printf 'working'; while [ ! -e {} ]; do sleep 0.1; done; echo done",
        mark.display()
    );
    let mut command = scene.command("web1\n", &["-H", &line]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    assert_eq!(first, "web1 -> working\n");
    fs::write(&mark, "").unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "web1 -> done\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn commands_read_nothing() {
    let scene = scene(1);
    let mut shell = scene.shoal.user.shell(
        "printf '1\\n2\\n' | while read n; do \"$MPSSH\" -H -d 0 -u $U -O \"F$C\" -f $L \"cat; echo $n\"; done",
    );
    shell
        .env("MPSSH", &scene.program)
        .env("U", &scene.user)
        .env("C", scene.config())
        .env("L", scene.list("web1"));
    let ended = Running::start(&mut shell).wait().expect(0);
    assert_eq!(ended.stdout(), "web1 -> 1\nweb1 -> 2\n");
}

#[test]
fn the_current_user_is_the_user_whatever_ssh_config_says() {
    let scene = scene(1);
    let who = Command::new("id").arg("-un").output().unwrap();
    let who = String::from_utf8(who.stdout).unwrap();
    let who = who.trim();
    let config = scene.shoal.file("user_config");
    let usual = fs::read_to_string(scene.config()).unwrap();
    fs::write(&config, format!("Host *\n    User somebody-else\n{usual}")).unwrap();
    let (config, list) = (format!("F{config}"), scene.list("web1"));
    let mut command = scene.plain(&["-d0", "-O", &config, "-f", &list, "echo $USER"]);
    let ended = Running::start(&mut command).wait().expect(0);
    let begin = header(1, 1, "echo $USER", who);
    assert_eq!(
        ended.stdout(),
        format!("{begin}web1 -> {who}\n{}", closing(1, 0, 0))
    );
}

#[test]
fn verbose_names_the_ssh_and_its_flags() {
    let scene = scene(1);
    let list = scene.list("web1\n");
    let config = format!("F{}", scene.config());
    let (ours, theirs) = (["o it's=1", "o a\"b=2"], "\"-o it's=1\", '-o a\"b=2'");
    let arguments = [
        "-v",
        "-d",
        "0",
        "-S",
        "/bin/true",
        "-u",
        "me",
        "-O",
        &config,
    ];
    let options = ["-O", ours[0], "-O", ours[1], "-f", &list, "true"];
    let mut command = scene.plain(&[&arguments[..], &options].concat());
    let text = Running::start(&mut command).wait().expect(0).stdout();
    let shown = format!(
        "  [*] SSH binary : /bin/true\n  [*] SSH options: ['-o NumberOfPasswordPrompts=0', '-{config}', {theirs}]\n"
    );
    let whole = header(1, 1, "true", "me") + &closing(1, 0, 0);
    assert_eq!(text.replace(&shown, ""), whole);
    assert!(text.contains(&shown), "{text}");
}

#[test]
fn another_ssh_gets_the_same_words() {
    let scene = scene(1);
    let (begin, end) = (header(3, 2, "command1 arg1 arg2", "me"), closing(3, 0, 0));
    let list = scene.list("host1\nmachine1\nhost1\n");
    let arguments = [
        "-d",
        "0",
        "-p",
        "2",
        "-S",
        "/bin/echo",
        "-u",
        "me",
        "-O",
        "o Port=1",
    ];
    let arguments = [&arguments[..], &["-f", &list, "command1 arg1 arg2"]].concat();
    let text = Running::start(&mut scene.plain(&arguments))
        .wait()
        .expect(0)
        .stdout();
    let lines = text
        .strip_prefix(&begin)
        .and_then(|text| text.strip_suffix(&end));
    let mut lines: Vec<&str> = lines.expect(&text).lines().collect();
    lines.sort_unstable();
    let words = "-o NumberOfPasswordPrompts=0 -o Port=1";
    let expected = ["host1   ", "host1   ", "machine1"].map(|name| {
        let host = name.trim();
        format!("{name} -> {words} me@{host} command1 arg1 arg2")
    });
    assert_eq!(lines, expected);
}

#[test]
fn an_ssh_that_dies_or_is_none_is_a_failure_of_each_host() {
    let scene = scene(1);
    let list = scene.list("a\nbb\n");
    let shown = |program: &str| {
        let arguments = [
            "-d", "0", "-p", "1", "-S", program, "-f", &list, "-H", "true",
        ];
        Running::start(&mut scene.plain(&arguments))
            .wait()
            .expect(0)
            .stdout()
    };
    for (program, error) in [
        ("/", "13): Permission denied"),
        ("/nonexistent/ssh", "2): No such file or directory"),
    ] {
        let line = |host| format!("{host} =: exec({program}) error({error}\n");
        assert_eq!(shown(program), line("a ") + &line("bb"));
    }
    for (number, name) in [(9, "KILL"), (15, "TERM"), (7, "BUS"), (24, "XCPU")] {
        let program = scene.shoal.file("dies");
        super::ssh_program::write_script(&program, &format!("kill -{name} $$"));
        let line = |host| format!("{host} =: SSH killed with signal {number}\n");
        assert_eq!(shown(&program), line("a ") + &line("bb"));
    }
}

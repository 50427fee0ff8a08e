//! `split`, and who is served by what it writes.

use super::*;

/// The flags of the script that famzah's posts show.
#[test]
fn split_takes_the_flags_of_the_script_it_stands_in_for() {
    let desk = Desk::new(&lines_of_all_kinds());
    let list = desk.user.home().join("list");
    fs::write(&list, "web1\n[git.example.com]:7999\n").unwrap();
    let known_hosts = desk.known_hosts();
    let said = desk.run(&[
        "split",
        "--known-hosts-file",
        known_hosts.to_str().unwrap(),
        "--input-file",
        list.to_str().unwrap(),
        "--dot-ssh-output-dir",
        "known_hosts_single",
        "--progress",
    ]);
    said.expect(0).says(&["known_hosts_single: 2"]);
}

#[test]
fn ssh_is_served_by_the_files_that_split_writes() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let known = fs::read_to_string(shoal.file("known_hosts")).unwrap();
    let desk = Desk::new(&known);
    let hosts = desk.user.home().join("hosts");
    let address = shoal.hosts.addresses()[0];
    fs::write(
        &hosts,
        format!(
            "# one\n[{}]:{}\nmissing.invalid\n",
            address.ip(),
            address.port()
        ),
    )
    .unwrap();
    let input = hosts.to_str().unwrap();
    for hashed in [false, true] {
        if hashed {
            desk.run(&["hash"]).expect(0);
        }
        let folder = if hashed { "hashed" } else { "plain" };
        let seed = [
            "split",
            "--known-hosts-file",
            desk.known_hosts().to_str().unwrap(),
        ]
        .map(str::to_owned);
        let mut arguments: Vec<&str> = seed.iter().map(String::as_str).collect();
        arguments.extend([
            "--input-file",
            input,
            "--dot-ssh-output-dir",
            folder,
            "--progress",
        ]);
        let shown = desk.run(&[&arguments[..], &["-n"]].concat()).expect(0);
        let path = desk.user.home().join(".ssh").join(folder);
        assert!(shown.stdout().contains(path.to_str().unwrap()) && !path.exists());
        let done = desk
            .run(&arguments)
            .expect(0)
            .says(&[": 1\n", "missing.invalid"]);
        let names: Vec<_> = fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, [address.ip().to_string().as_str()]);
        let file = path.join(&names[0]);
        let modes = [&file, &path].map(|path| fs::metadata(path).unwrap().mode() & 0o777);
        assert_eq!(modes, [0o600, 0o700]);
        let output = ssh(&shoal, &done.stdout());
        assert!(output.status.success(), "hashed: {hashed}, {output:?}");
        let other = fs::read_to_string(shoal.file("known_hosts")).unwrap();
        fs::write(
            &file,
            other.replace(&address.ip().to_string(), "127.99.99.99"),
        )
        .unwrap();
        assert!(
            !ssh(&shoal, &done.stdout()).status.success(),
            "nothing else is consulted"
        );
    }
}

#[test]
fn split_takes_all_names_that_can_be_read() {
    let desk = Desk::new(&lines_of_all_kinds());
    desk.run(&["split"])
        .expect(0)
        .says(&["known_hosts_single: 5"]);
    let folder = desk.user.home().join(".ssh/known_hosts_single");
    let web1 = fs::read_to_string(folder.join("web1")).unwrap();
    assert_eq!(
        web1,
        format!("web1,10.0.0.1 {KEY} comment\n@revoked web1 {OTHER}\n")
    );
    let git = fs::read_to_string(folder.join("git.example.com")).unwrap();
    assert_eq!(
        git,
        format!("[git.example.com]:7999 {KEY}\n*.example.com {OTHER}\n")
    );
    desk.run(&["hash"]).expect(0);
    fs::write(
        desk.known_hosts(),
        desk.text()
            .lines()
            .filter(|line| line.starts_with('|'))
            .fold(String::new(), |all, line| all + line + "\n"),
    )
    .unwrap();
    desk.run(&["split"])
        .expect(2)
        .says(&["hashed lines", "--input-file"]);
}

#[test]
fn split_copies_the_lines_of_the_addresses_that_a_name_has_if_it_is_told_to() {
    let desk = Desk::new(&format!("localhost {KEY}\n127.0.0.1 {OTHER}\n"));
    let file = desk.user.home().join(".ssh/one/localhost");
    for (flag, lines) in [("--progress", 1), ("--addresses", 2)] {
        desk.run(&["split", "--dot-ssh-output-dir", "one", flag, "localhost"])
            .expect(0);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), lines, "{flag}: {text}");
    }
}

/// As many prepare for fleets: a file for each host, and one for all.
#[test]
fn a_file_that_all_hosts_share_is_read_once_beside_a_file_of_each() {
    const HOSTS: u32 = 30;
    let shoal = Shoal::simulated(HOSTS, &[]);
    let global = shoal.file("global");
    let known = fs::read_to_string(shoal.file("known_hosts")).unwrap();
    let (first, rest) = known.split_once('\n').unwrap();
    fs::write(&global, format!("*.of.all is no line\n{rest}")).unwrap();
    // The first host is in its own file alone.
    let own = shoal.user.home().join("own");
    fs::create_dir(&own).unwrap();
    fs::write(
        own.join(shoal.name(0)),
        format!("{first}\n*.own nor this\n"),
    )
    .unwrap();
    let user_files = format!("UserKnownHostsFile={}/%h", own.display());
    let global_file = format!("GlobalKnownHostsFile={global}");
    let options = ["-o", &user_files, "-o", &global_file, "--json", "hostname"];
    for index in ["--no-index-cache", "--literal"] {
        let ended = shoal.run(&[&[index], &options[..]].concat()).expect(0);
        assert_eq!(ended.records().summary.ok, HOSTS as usize);
        let said = ended.stderr();
        assert_eq!(said.matches("global:1: ").count(), 1, "{said}");
        assert_eq!(said.matches(":2: ").count(), 1, "{said}");
    }
}

#[test]
fn of_many_lines_that_are_not_understood_some_are_shown() {
    let shoal = Shoal::simulated(1, &[]);
    let global = shoal.file("global");
    fs::write(&global, "what\n".repeat(1000)).unwrap();
    let global_file = format!("GlobalKnownHostsFile={global}");
    let said = shoal.run(&["-o", &global_file, "true"]).expect(0).stderr();
    assert!(said.contains("980 more lines"), "{said}");
    assert_eq!(said.matches("global:").count(), 20, "{said}");
}

//! `lookup`, and ssh that asks it.

use super::*;

#[test]
fn lookup_prints_the_lines_that_apply_and_a_host_that_is_not_known_is_no_error() {
    let desk = Desk::new(&lines_of_all_kinds());
    let found = desk.run(&["lookup", "web1"]).expect(0).stdout();
    assert_eq!(
        found,
        format!("web1,10.0.0.1 {KEY} comment\n@revoked web1 {OTHER}\n")
    );
    let found = desk.run(&["lookup", "--", "[git.example.com]:7999", "Web2"]);
    let expected = format!("[git.example.com]:7999 {KEY}\nWEB2 {KEY}\n");
    assert_eq!(found.expect(0).stdout(), expected);
    // As everywhere else, which completion offers.
    let found = desk.run(&["lookup", "git.example.com:7999"]).expect(0);
    assert_eq!(found.stdout(), format!("[git.example.com]:7999 {KEY}\n"));
    let found = desk.run(&["lookup", "nobody", "web"]).expect(0);
    assert_eq!(
        (found.stdout(), found.stderr()),
        (String::new(), String::new())
    );
    // ssh takes any other status for an error of its KnownHostsCommand, and gives the connection up.
    fs::write(desk.known_hosts(), format!("* {KEY}\n{}", desk.text())).unwrap();
    let found = desk.run(&["lookup", "--", "", ""]).expect(0);
    assert_eq!(found.stdout(), "", "the line for all hosts is not for it");
    assert_eq!(
        found.stderr(),
        "sshoal: an empty name is no host's: it was not looked up\n"
    );
    let found = desk
        .run(&["lookup", "-f", "/no/such/file", "web1"])
        .expect(0);
    assert_eq!(found.stdout(), "");
    // A file that might revoke a key must not be passed over.
    desk.run(&["lookup", "-f", "/etc", "web1"])
        .expect(2)
        .says(&["/etc"]);
}

#[test]
fn ssh_asks_lookup_for_plain_and_for_hashed_hosts_and_refuses_who_is_not_known() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let desk = Desk::new(&fs::read_to_string(shoal.file("known_hosts")).unwrap());
    let file = desk.known_hosts().to_str().unwrap().to_owned();
    let lines = desk
        .run(&["lookup", "--ssh-config", "-f", &file])
        .expect(0)
        .stdout();
    assert!(lines.contains("UserKnownHostsFile none"), "{lines}");
    for hashed in [false, true] {
        if hashed {
            desk.run(&["hash"]).expect(0);
            assert!(desk.text().lines().all(|line| line.starts_with("|1|")));
        }
        let output = ssh(&shoal, &lines);
        assert!(output.status.success(), "hashed: {hashed}, {output:?}");
    }
    fs::write(&file, format!("elsewhere {KEY}\n")).unwrap();
    let output = ssh(&shoal, &lines);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("Host key verification failed"),
        "{said}"
    );
}

#[test]
fn run_and_lookup_keep_an_index_of_hashed_names_unless_they_are_told_not_to() {
    let mut spec = SimulationSpec::new(2);
    spec.base = [127, 32, 0, 0].into();
    let shoal = Shoal::simulate(&spec);
    let mut known = shoal.hosts.client_files().known_hosts.clone();
    known.extend((0..3000).map(|number| format!("host{number} {KEY}\n")));
    let desk = Desk::new(&known);
    desk.run(&["hash"]).expect(0);
    let file = desk.known_hosts().to_str().unwrap().to_owned();
    let option = format!("UserKnownHostsFile={file}");
    let indexes = |home: &Path| match fs::read_dir(home.join(".cache/sshoal")) {
        Ok(entries) => {
            let names = entries.map(|entry| entry.unwrap().file_name());
            names
                .filter(|name| name.to_string_lossy().ends_with(".index"))
                .count()
        }
        Err(_) => 0,
    };
    let run = ["-o", &option, "true"];
    shoal
        .run(&[&["--no-index-cache"][..], &run].concat())
        .expect(0);
    assert_eq!(indexes(shoal.user.home()), 0);
    // The second time the index says where the lines are.
    for _ in 0..2 {
        shoal.run(&run).expect(0);
        assert_eq!(indexes(shoal.user.home()), 1);
    }
    desk.run(&["lookup", "--no-index-cache", "host7"]).expect(0);
    assert_eq!(indexes(desk.user.home()), 0);
    for _ in 0..2 {
        let found = desk.run(&["lookup", "host7", "missing"]).expect(0).stdout();
        assert!(
            found.starts_with("|1|") && found.lines().count() == 1,
            "{found}"
        );
        assert_eq!(indexes(desk.user.home()), 1);
    }
}

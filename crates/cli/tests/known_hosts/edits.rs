//! `forget`, `hash`, `import` and `check`.

use super::*;

#[test]
fn forget_leaves_what_ssh_keygen_leaves() {
    for host in [
        "web1",
        "10.0.0.1",
        "[git.example.com]:7999",
        "a.example.com",
        "web3",
    ] {
        let desk = Desk::new(&(lines_of_all_kinds() + "\n"));
        let copy = desk.user.home().join("copy");
        fs::copy(desk.known_hosts(), &copy).unwrap();
        assert!(desk.keygen(&["-R", host], &copy).status.success());
        desk.run(&["forget", host]).expect(0);
        assert_eq!(desk.text(), fs::read_to_string(&copy).unwrap(), "{host}");
    }
    let desk = Desk::new(&lines_of_all_kinds());
    desk.run(&["forget", "git.example.com:7999"]).expect(0);
    assert!(!desk.text().contains("7999"), "{}", desk.text());
}

#[test]
fn an_edited_file_stays_where_and_what_it_is_and_a_dry_run_changes_nothing() {
    let desk = Desk::new("");
    let (link, target) = (desk.known_hosts(), desk.user.home().join("target"));
    fs::remove_file(&link).unwrap();
    fs::write(&target, lines_of_all_kinds()).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&target, &link).unwrap();
    let colleague = desk.user.home().join("colleague");
    fs::write(&colleague, format!("new {KEY}\nweb3 {OTHER}\n")).unwrap();
    let import = ["import", colleague.to_str().unwrap()];
    let edits: [(&[&str], i32); 3] = [(&["forget", "web3"], 0), (&["hash"], 0), (&import, 1)];
    for (edit, status) in edits {
        let before = desk.text();
        let shown = desk.run(&[edit, &["-n"]].concat()).expect(status).stdout();
        assert!(shown.starts_with("would be "), "{shown}");
        assert_eq!(desk.text(), before, "{edit:?}");
        let done = desk.run(edit).expect(status).stdout();
        assert_eq!(shown, format!("would be {done}"));
        assert_ne!(desk.text(), before, "{edit:?}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, 0o640);
        // As ssh-keygen does, but beside the file itself.
        let old = desk.user.home().join("target.old");
        assert_eq!(old.exists(), edit != import, "{edit:?}");
        if old.exists() {
            assert_eq!(fs::read_to_string(&old).unwrap(), before);
            assert_eq!(fs::metadata(&old).unwrap().mode() & 0o7777, 0o640);
            fs::remove_file(&old).unwrap();
        }
        // What was forgotten is imported again below only if it is not there.
        fs::write(&target, lines_of_all_kinds()).unwrap();
    }
    desk.run(&["forget", "nobody"]).expect(1).says(&["nobody"]);
    assert!(!desk.user.home().join("target.old").exists());
    desk.run(&["forget", "x", "-f", "/no/such/file"])
        .expect(2)
        .says(&["/no/such/file"]);
    desk.run(&["forget", ""]).expect(2).says(&["HOST"]);
}

#[test]
fn hash_says_where_readable_names_are_left() {
    let desk = Desk::new(&lines_of_all_kinds());
    desk.run(&["hash"])
        .expect(0)
        .says(&["known_hosts.old", "readable", "delete it"]);
}

#[test]
fn hashed_names_are_found_by_ssh_keygen() {
    let desk = Desk::new(&lines_of_all_kinds());
    let said = desk.run(&["hash"]).expect(0).says(&["wildcards", "marker"]);
    assert!(said.stdout().ends_with(": 4\n"), "{}", said.stdout());
    for host in ["web1", "10.0.0.1", "[git.example.com]:7999", "web2", "web3"] {
        let found = desk.keygen(&["-F", host], &desk.known_hosts());
        assert!(found.status.success(), "{host}");
    }
}

#[test]
fn import_takes_what_is_new_and_nothing_that_contradicts() {
    let desk = Desk::new(&format!("web1 {KEY}\n"));
    let other = desk.user.home().join("other");
    fs::write(
        &other,
        format!("web1 {KEY}\nweb1 {OTHER}\nweb2 {KEY}\nbroken\n"),
    )
    .unwrap();
    let said = desk.run(&["import", other.to_str().unwrap()]).expect(1);
    let said = said.says(&["other:2: left out: web1", "other:4: "]);
    assert!(
        said.stdout().contains(": 1; there already: 1; left out: 2"),
        "{}",
        said.stdout()
    );
    assert_eq!(desk.text(), format!("web1 {KEY}\nweb2 {KEY}\n"));
    fs::remove_file(desk.known_hosts()).unwrap();
    desk.run(&["import", other.to_str().unwrap()]).expect(1);
    assert_eq!(
        fs::metadata(desk.known_hosts()).unwrap().mode() & 0o777,
        0o600
    );
}

#[test]
fn check_names_what_is_wrong_with_file_and_line_and_escapes_nothing_to_the_terminal() {
    let desk = Desk::new(&lines_of_all_kinds());
    assert_eq!(desk.run(&["check"]).expect(0).stdout(), "");
    let wrong =
        format!("a {KEY}\na {KEY}\na {OTHER}\nb\u{1b}[31m {KEY}\nb\u{1b}[31m {KEY}\nbroken\n");
    fs::write(desk.known_hosts(), wrong).unwrap();
    let found = desk.run(&["check"]).expect(1).stdout();
    for words in [
        "known_hosts:2: a has this key at",
        "known_hosts:3: a has another ssh-ed25519 key at",
        "known_hosts:6: ",
    ] {
        assert!(found.contains(words), "{words}: {found}");
    }
    assert!(!found.contains('\u{1b}'), "{found:?}");
}

/// As ssh writes them with HashKnownHosts: each line with a salt of its own.
#[test]
fn check_recognises_hashed_lines_by_readable_ones_and_by_what_it_is_told() {
    let twice = format!("web1 {KEY}\n[web2]:2222 {KEY}\n");
    let desk = Desk::new(&twice);
    desk.run(&["hash"]).expect(0);
    let once = desk.text();
    fs::write(desk.known_hosts(), &twice).unwrap();
    desk.run(&["hash"]).expect(0);
    let hashed = once + &desk.text();
    assert!(hashed.lines().all(|line| line.starts_with("|1|")));
    fs::write(desk.known_hosts(), &hashed).unwrap();
    assert_eq!(desk.run(&["check"]).expect(0).stdout(), "", "nobody knows");
    let told = desk.run(&["check", "web[1-3]"]).expect(1).stdout();
    assert!(told.contains("known_hosts:3: web1 has this key"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    for port in ["web2:2222", "[web2]:2222"] {
        let told = desk.run(&["check", port]).expect(1).stdout();
        assert!(
            told.contains("known_hosts:4: [web2]:2222 has this key"),
            "{told}"
        );
    }
    fs::write(desk.known_hosts(), format!("{hashed}web1 {OTHER}\n")).unwrap();
    let read = desk.run(&["check"]).expect(1).stdout();
    assert!(read.contains("known_hosts:3: web1 has this key"), "{read}");
    assert!(read.contains("known_hosts:5: web1 has another"), "{read}");
}

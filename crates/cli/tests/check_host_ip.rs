//! CheckHostIP beside ssh. Neither checks the address of a loopback, so the server has another one, in a network namespace
//! of its own, and a name in a hosts file that only the test sees. Needs root, as the namespaces of the delay line do.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::Command;

use sshoal_testbed::sshd::key_files::KeyType;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::Shoal;
use support::program::Running;

const ADDRESS: &str = "192.0.2.7";
const NAME: &str = "web1.test";
const OTHER: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";

struct Bench {
    shoal: Shoal<RealSshd>,
    key: String,
}

impl Bench {
    /// The files of a server, which is started again in a namespace for each trial.
    fn new() -> Bench {
        let shoal = Shoal::real(&SshdSpec::new(1));
        let path = shoal.hosts.host_key_path(0, KeyType::Ed25519);
        let text = fs::read_to_string(path.with_extension("pub")).unwrap();
        let key: Vec<&str> = text.split_whitespace().take(2).collect();
        let config = format!(
            "ListenAddress {ADDRESS}\nPort 22\nPort 2222\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             UsePAM no\nStrictModes no\n",
            path.display(),
            shoal.hosts.dir().join("authorized_keys").display(),
        );
        fs::write(shoal.dir.path().join("sshd_config"), config).unwrap();
        fs::write(
            shoal.dir.path().join("etc_hosts"),
            format!("{ADDRESS} {NAME}\n"),
        )
        .unwrap();
        Bench {
            key: key.join(" "),
            shoal,
        }
    }

    /// Exit statuses of ssh and sshoal, and what each left of known_hosts.
    fn trial(&self, known_hosts: &str, options: &str) -> [(bool, String); 2] {
        let dir = self.shoal.dir.path().to_str().unwrap();
        for program in ["ssh", "sshoal"] {
            fs::write(format!("{dir}/{program}.known"), known_hosts).unwrap();
        }
        let user = self.shoal.hosts.user();
        let script = format!(
            "set -e; ip link set lo up; ip address add {ADDRESS}/32 dev lo; mount --bind {dir}/etc_hosts /etc/hosts\n\
             : >{dir}/log; /usr/sbin/sshd -D -f {dir}/sshd_config -E {dir}/log & server=$!; set +e\n\
             until [ $(grep -c 'Server listening' {dir}/log) -ge 2 ]; do kill -0 $server || exit 9; sleep 0.02; done\n\
             login=\"-F none -l {user} -i {dir}/id_ed25519 -o BatchMode=yes -o GlobalKnownHostsFile=none {options}\"\n\
             ssh $login -o UserKnownHostsFile={dir}/ssh.known {NAME} true; echo ssh $?\n\
             sshoal run $login -o UserKnownHostsFile={dir}/sshoal.known -w {NAME} true; echo sshoal $?\n\
             kill $server; wait $server"
        );
        let mut command: Command = self.shoal.user.command("unshare");
        command.args([
            "--net",
            "--mount",
            "--propagation",
            "private",
            "/bin/sh",
            "-c",
            &script,
        ]);
        let ended = Running::start(&mut command).wait();
        ["ssh", "sshoal"].map(|program| {
            let stdout = ended.stdout();
            let status = stdout
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{program} ")));
            let status = status.unwrap_or_else(|| panic!("{stdout} {}", ended.stderr()));
            let left = fs::read_to_string(format!("{dir}/{program}.known")).unwrap();
            (status == "0", left)
        })
    }
}

#[test]
fn addresses_are_checked_and_recorded_as_ssh_does_it() {
    let bench = Bench::new();
    let key = &bench.key;
    let files = [
        ("new", "# mine\n".to_owned()),
        (
            "known, and so is the address",
            format!("{NAME},{ADDRESS} {key}\n"),
        ),
        ("known, but not the address", format!("{NAME} {key}\n")),
        ("known for the address alone", format!("{ADDRESS} {key}\n")),
        (
            "another key for the address",
            format!("{NAME} {key}\n{ADDRESS} {OTHER}\n"),
        ),
        (
            "new, another key for the address",
            format!("{ADDRESS} {OTHER}\n"),
        ),
        (
            "changed, the address not",
            format!("{NAME} {OTHER}\n{ADDRESS} {key}\n"),
        ),
    ];
    let mut accepted = [0, 0];
    for (why, known_hosts) in &files {
        for strict in ["yes", "accept-new", "no"] {
            for check in ["CheckHostIP=yes", "CheckHostIP=no"] {
                let options = format!("-o {check} -o StrictHostKeyChecking={strict}");
                let [theirs, ours] = bench.trial(known_hosts, &options);
                match theirs.0 {
                    true => assert_eq!(theirs, ours, "{why} {options}"),
                    // ssh records a new name before it refuses it for its address; here what is refused is not recorded.
                    false => assert_eq!((false, known_hosts.as_str()), (ours.0, ours.1.as_str())),
                }
                accepted[usize::from(ours.0)] += 1;
            }
        }
    }
    // On another port both names have it.
    let options = "-p 2222 -o CheckHostIP=yes -o StrictHostKeyChecking=accept-new";
    let ours = "-o Port=2222 -o CheckHostIP=yes -o StrictHostKeyChecking=accept-new";
    let [theirs, _] = bench.trial("", options);
    let [_, ours] = bench.trial("", ours);
    assert_eq!(theirs, ours);
    assert!(
        ours.1.contains(&format!("[{NAME}]:2222,[{ADDRESS}]:2222 ")),
        "{}",
        ours.1
    );
    assert!(accepted.iter().all(|count| *count >= 8), "{accepted:?}");
}

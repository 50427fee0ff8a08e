//! What the arithmetic of one login and of bulk data costs, on one core: `cargo bench -p sshoal-crypto`.
//!
//! Prints the median over batches, in microseconds a call, so that one disturbed batch does not count.

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use sshoal_crypto::kex::ALGORITHMS;
use sshoal_crypto::{
    Cipher, Ephemeral, GexGroup, KexMethod, Mac, Opener, PrivateKey, Sealer, verify,
};

/// Octets of payload in a bulk packet: sshd's largest.
const PAYLOAD: usize = 32 * 1024;
/// How long each line is measured.
const BUDGET: Duration = Duration::from_millis(150);

fn main() {
    // `cargo test --benches` runs this too, and wants no measurement.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    key_exchanges();
    signatures();
    packets();
    small_costs();
}

/// Median microseconds of one call of `work` on what `setup` makes, which is not counted.
fn median<T>(mut setup: impl FnMut() -> T, mut work: impl FnMut(T)) -> f64 {
    let mut samples = Vec::new();
    let end = Instant::now() + BUDGET;
    while samples.len() < 5 || Instant::now() < end {
        let input = setup();
        let start = Instant::now();
        work(input);
        samples.push(start.elapsed());
    }
    samples.sort_unstable();
    samples[samples.len() / 2].as_secs_f64() * 1e6
}

/// A group of RFC 4419 by size only: the arithmetic does not care whether the modulus is prime.
fn odd_group(bits: usize) -> GexGroup {
    let mut p = vec![0xff; bits / 8];
    sshoal_crypto::random(&mut p[1..]);
    p[bits / 8 - 1] |= 1;
    GexGroup { p, g: vec![2] }
}

fn key_exchanges() {
    println!(
        "{:40} {:>10} {:>10}",
        "key exchange, microseconds", "keygen", "agree"
    );
    let mut seen = Vec::new();
    for algorithm in ALGORITHMS {
        if seen.contains(&algorithm.method) {
            continue;
        }
        seen.push(algorithm.method);
        let group = match algorithm.method {
            KexMethod::DhGroupExchange => Some(odd_group(3072)),
            _ => None,
        };
        let generate = || Ephemeral::generate(algorithm.method, group.as_ref()).unwrap();
        let peer = peer_public(algorithm.method, &generate());
        let keygen = median(|| (), |()| drop(black_box(generate())));
        let agree = median(generate, |key| drop(black_box(key.agree(&peer).unwrap())));
        println!("{:40} {keygen:>10.1} {agree:>10.1}", algorithm.name);
    }
}

/// A server's answer; for the hybrids a ciphertext that is refused implicitly, at the same cost.
fn peer_public(method: KexMethod, other: &Ephemeral) -> Vec<u8> {
    let kem_ciphertext = match method {
        KexMethod::MlKem768X25519 => 1088,
        KexMethod::Sntrup761X25519 => 1039,
        _ => return other.public().to_vec(),
    };
    let mut answer = vec![0x11; kem_ciphertext];
    answer.extend_from_slice(
        Ephemeral::generate(KexMethod::X25519, None)
            .unwrap()
            .public(),
    );
    answer
}

fn signatures() {
    println!(
        "\n{:40} {:>10} {:>10}",
        "signature, microseconds", "sign", "verify"
    );
    let directory = tempfile::tempdir().unwrap();
    for (kind, bits) in [
        ("ed25519", ""),
        ("ecdsa", "256"),
        ("ecdsa", "384"),
        ("ecdsa", "521"),
        ("rsa", "2048"),
        ("rsa", "3072"),
        ("rsa", "4096"),
    ] {
        let path = directory.path().join(format!("{kind}{bits}"));
        let mut keygen = std::process::Command::new("ssh-keygen");
        keygen.args(["-q", "-t", kind, "-N", "", "-f"]).arg(&path);
        if !bits.is_empty() {
            keygen.args(["-b", bits]);
        }
        assert!(keygen.status().unwrap().success());
        let key = PrivateKey::parse(&std::fs::read(&path).unwrap(), None).unwrap();
        let data = [0x55; 300];
        let algorithm = key.algorithms()[0];
        let signature = key.sign(algorithm, &data).unwrap();
        let sign = median(
            || (),
            |()| drop(black_box(key.sign(algorithm, &data).unwrap())),
        );
        let check = median(
            || (),
            |()| verify(algorithm, key.public_blob(), &signature, &data).unwrap(),
        );
        println!(
            "{:40} {sign:>10.1} {check:>10.1}",
            format!("{algorithm} {bits}")
        );
    }
}

fn packets() {
    println!(
        "\n{:40} {:>10} {:>10} {:>8}",
        "32 KiB packet, microseconds", "seal", "open", "GB/s"
    );
    for cipher in Cipher::ALL {
        let macs = if cipher.is_aead() {
            &Mac::ALL[..1]
        } else {
            Mac::ALL
        };
        for mac in macs {
            let (key, iv) = (vec![7; cipher.key_len()], vec![9; cipher.iv_len()]);
            let mac_key = vec![5; mac.key_len()];
            let mut sealer = Sealer::new(*cipher, Some(*mac), &key, &iv, &mac_key).unwrap();
            let mut opener = Opener::new(*cipher, Some(*mac), &key, &iv, &mac_key).unwrap();
            let padding = sealer.padding_len(PAYLOAD);
            let mut plain = ((1 + PAYLOAD + padding) as u32).to_be_bytes().to_vec();
            plain.push(padding as u8);
            plain.resize(5 + PAYLOAD + padding, 0);
            let mut buf = Vec::with_capacity(plain.len() + 64);
            let (mut seals, mut opens) = (Vec::new(), Vec::new());
            let end = Instant::now() + BUDGET;
            let mut sequence = 0;
            while Instant::now() < end {
                buf.clear();
                buf.extend_from_slice(&plain);
                let start = Instant::now();
                sealer.seal(sequence, &mut buf, 0).unwrap();
                let sealed = start.elapsed();
                opener.open(sequence, black_box(&mut buf)).unwrap();
                opens.push(start.elapsed() - sealed);
                seals.push(sealed);
                sequence += 1;
            }
            let [seal, open] = [seals, opens].map(|mut samples| {
                samples.sort_unstable();
                samples[samples.len() / 2].as_secs_f64() * 1e6
            });
            let name = match cipher.is_aead() {
                true => cipher.name().to_owned(),
                false => format!("{} {}", cipher.name(), mac.name()),
            };
            println!(
                "{name:40} {seal:>10.2} {open:>10.2} {:>8.2}",
                PAYLOAD as f64 / seal / 1e3
            );
        }
    }
}

/// What every login and every idle connection pays besides.
fn small_costs() {
    const CONNECTIONS: usize = 10_000;
    const PAYLOAD: usize = 64;
    println!(
        "\n{:40} {:>10} {:>10}",
        "64-octet payload, microseconds", "seal", "open"
    );
    for cipher in Cipher::ALL {
        let (mut sealer, mut opener) = directions(*cipher);
        let padding = sealer.padding_len(PAYLOAD);
        let mut plain = ((1 + PAYLOAD + padding) as u32).to_be_bytes().to_vec();
        plain.push(padding as u8);
        plain.resize(5 + PAYLOAD + padding, 0);
        // A thousand packets a sample: one is too short for the clock.
        let mut stream = Vec::with_capacity(1000 * (plain.len() + 64));
        let mut opens = Vec::new();
        let seal = median(
            || (),
            |()| {
                stream.clear();
                for sequence in 0..1000 {
                    let start = stream.len();
                    stream.extend_from_slice(&plain);
                    sealer.seal(sequence, &mut stream, start).unwrap();
                }
                let each = stream.len() / 1000;
                let start = Instant::now();
                for (sequence, packet) in (0..).zip(stream.chunks_mut(each)) {
                    opener.open(sequence, packet).unwrap();
                }
                opens.push(start.elapsed().as_secs_f64() * 1e3);
            },
        ) / 1000.0;
        opens.sort_unstable_by(f64::total_cmp);
        let open = opens[opens.len() / 2];
        println!("{:40} {:>10.2} {open:>10.2}", cipher.name(), seal - open);
    }
    let mut padding = [0; 16];
    let random = median(
        || (),
        |()| (0..1000).for_each(|_| sshoal_crypto::random(black_box(&mut padding))),
    );
    println!("{:40} {:>10.2}", "16 random octets", random / 1000.0);
    let before = resident();
    let idle: Vec<_> = (0..CONNECTIONS)
        .map(|_| directions(Cipher::Aes128Gcm))
        .collect();
    let octets = (resident() - before) / CONNECTIONS;
    println!(
        "{:40} {octets:>10}",
        "octets of memory, aes128-gcm both ways"
    );
    drop(black_box(idle));
}

fn directions(cipher: Cipher) -> (Sealer, Opener) {
    let mac = Some(Mac::ALL[0]);
    let (key, iv) = (vec![7; cipher.key_len()], vec![9; cipher.iv_len()]);
    let mac_key = vec![5; Mac::ALL[0].key_len()];
    let sealer = Sealer::new(cipher, mac, &key, &iv, &mac_key).unwrap();
    (
        sealer,
        Opener::new(cipher, mac, &key, &iv, &mac_key).unwrap(),
    )
}

/// Octets of memory of this process (Linux).
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

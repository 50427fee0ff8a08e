//! Which combination to use, and what is gained by it.

use sshoal_net::Protection;
use sshoal_proto::ServerLists;

use super::figures::Row;
use super::pairs::{By, Pair};
use super::weak;

/// Rates that differ by less are the same: then the processors decide, or else noise would.
const SAME: f64 = 0.03;

/// What is recommended for one client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Advice {
    pub(super) by: By,
    /// Best first.
    pub(super) ranked: Vec<Pair>,
    /// What the client takes where nothing is configured.
    pub(super) usual: Option<Pair>,
    /// How many times as fast the best one is as that.
    pub(super) gain: Option<f64>,
}

/// The advice for a client, if it has measured anything that may be recommended with this server.
pub(super) fn advice(
    rows: &[Row],
    by: By,
    usual: Option<Pair>,
    server: &ServerLists,
) -> Option<Advice> {
    let measured = rows.iter().filter(|row| {
        let Row { by: of, pair, .. } = row;
        *of == by && pair.is_recommendable() && !weak::is_exposed(&pair.cipher, server)
    });
    let mut ranked: Vec<(&Row, f64)> = measured
        .filter_map(|row| row.rate().map(|rate| (row, rate)))
        .collect();
    ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let fastest = ranked.first()?.1;
    let level = ranked.partition_point(|(_, rate)| *rate >= fastest * (1.0 - SAME));
    ranked[..level].sort_by(|(one, _), (other, _)| one.cpu().total_cmp(&other.cpu()));
    let best = ranked.first()?.1;
    let now = usual.as_ref().and_then(|pair| {
        let row = rows.iter().find(|row| row.by == by && row.pair == *pair);
        row?.rate()
    });
    Some(Advice {
        by,
        ranked: ranked.iter().map(|(row, _)| row.pair.clone()).collect(),
        usual,
        gain: now.map(|now| best / now),
    })
}

impl Advice {
    /// The fastest.
    pub(super) fn best(&self) -> &Pair {
        // Made of one at least.
        &self.ranked[0]
    }

    /// The lines of ssh_config, the first choice first and what else may be recommended behind it.
    pub(super) fn lines(&self, host: &str) -> Vec<String> {
        let ciphers = self.ranked.iter().map(|pair| pair.cipher.as_str());
        let macs = self.ranked.iter().filter_map(|pair| pair.mac.as_deref());
        let (ciphers, macs) = (each_once(ciphers), each_once(macs));
        let mut lines = vec![
            format!("Host {host}"),
            format!("    Ciphers {}", ciphers.join(",")),
        ];
        if !macs.is_empty() {
            lines.push(format!("    MACs {}", macs.join(",")));
        }
        lines
    }

    /// What sshoal's own client is to offer first.
    pub(super) fn protections(&self) -> Vec<Protection> {
        self.ranked.iter().filter_map(Pair::protection).collect()
    }
}

fn each_once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ciphers::figures::Direction;

    fn pair(name: &str) -> Pair {
        let (cipher, mac) = match name.split_once(' ') {
            None => (name, None),
            Some((cipher, mac)) => (cipher, Some(mac.to_owned())),
        };
        let cipher = cipher.to_owned();
        Pair { cipher, mac }
    }

    fn row(name: &str, by: By, rate: f64, cpu: f64) -> Row {
        let direction = Direction {
            rate,
            rates: vec![rate],
            client_cpu: Some(cpu),
            server_cpu: None,
        };
        Row {
            pair: pair(name),
            by,
            down: Some(direction.clone()),
            up: Some(direction),
            failure: None,
        }
    }

    /// A server with strict key exchange.
    fn strict() -> ServerLists {
        ServerLists {
            kex: vec!["kex-strict-s-v00@openssh.com".to_owned()],
            ..ServerLists::default()
        }
    }

    const GCM: &str = "aes128-gcm@openssh.com";
    const UMAC: &str = "aes128-ctr umac-64-etm@openssh.com";
    const CHACHA: &str = "chacha20-poly1305@openssh.com";

    #[test]
    fn the_fastest_of_a_client_is_recommended_and_what_it_gains_told() {
        let rows = [
            row(CHACHA, By::Ssh, 100.0, 1.0),
            row(
                "aes128-cbc hmac-sha2-256-etm@openssh.com",
                By::Ssh,
                900.0,
                1.0,
            ),
            row("aes128-ctr hmac-sha2-256", By::Ssh, 800.0, 1.0),
            row(UMAC, By::Ssh, 300.0, 1.0),
            row(GCM, By::Native, 500.0, 1.0),
            row(CHACHA, By::Native, 400.0, 1.0),
        ];
        let of_ssh = advice(&rows, By::Ssh, Some(pair(CHACHA)), &strict()).unwrap();
        assert_eq!(*of_ssh.best(), pair(UMAC));
        assert_eq!(of_ssh.gain, Some(3.0));
        assert_eq!(
            of_ssh.lines("web1"),
            [
                "Host web1",
                "    Ciphers aes128-ctr,chacha20-poly1305@openssh.com",
                "    MACs umac-64-etm@openssh.com",
            ]
        );
        let native = advice(&rows, By::Native, Some(pair(GCM)), &strict()).unwrap();
        assert_eq!((native.best(), native.gain), (&pair(GCM), Some(1.0)));
        assert_eq!(native.protections().len(), 2);
    }

    #[test]
    fn a_cipher_that_is_weak_with_this_server_is_not_recommended() {
        let rows = [
            row(CHACHA, By::Ssh, 300.0, 1.0),
            row(UMAC, By::Ssh, 100.0, 1.0),
        ];
        let usual = || Some(pair(CHACHA));
        let best = |server: ServerLists| {
            let found = advice(&rows, By::Ssh, usual(), &server).unwrap();
            found.best().clone()
        };
        assert_eq!(best(strict()), pair(CHACHA));
        assert_eq!(best(ServerLists::default()), pair(UMAC));
        assert_eq!(
            advice(&rows[..1], By::Ssh, usual(), &ServerLists::default()),
            None
        );
    }

    #[test]
    fn where_the_network_is_the_limit_the_processors_decide() {
        let rows = [
            row(CHACHA, By::Native, 100.0, 3.0),
            row(GCM, By::Native, 99.0, 1.0),
            row(UMAC, By::Native, 90.0, 0.1),
        ];
        let advice = advice(&rows, By::Native, None, &strict()).unwrap();
        assert_eq!(advice.ranked, [pair(GCM), pair(CHACHA), pair(UMAC)]);
        assert_eq!(advice.gain, None);
    }

    #[test]
    fn there_is_no_advice_without_a_measurement() {
        assert_eq!(advice(&[], By::Native, None, &strict()), None);
        let weak = [row(
            "3des-cbc hmac-sha2-256-etm@openssh.com",
            By::Ssh,
            9.0,
            1.0,
        )];
        assert_eq!(advice(&weak, By::Ssh, None, &strict()), None);
    }
}

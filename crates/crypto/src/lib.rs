//! Key exchange, signatures and packet protection: thin adapters over kept crates.

//! sshoal's client against other people's servers: every algorithm that both sides have, new keys in the middle of a
//! transfer, much data, certificates.
//!
//! `driver` is a small blocking client around `sshoal_proto::Connection`, so that the protocol is tested with exactly
//! one algorithm of each kind on offer. `axes` are what is combined, `pairwise` combines, `tally` counts and prints.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(unreachable_pub, reason = "modules of one program")]

/// A test of each of these functions, which take the software, for each server.
macro_rules! for_each_software {
    ($($module:ident $software:ident: $($test:ident)*;)*) => {
        $(mod $module {
            $(#[test]
            fn $test() {
                super::$test(sshoal_interop::Software::$software);
            })*
        })*
    };
}

mod axes;
mod bulk;
mod certificates;
mod driver;
mod expected;
mod keys;
mod matrix;
mod pairwise;
mod pairwise_tests;
mod rekeying;
mod report;
mod tally;
mod trust;

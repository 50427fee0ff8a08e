use super::*;

fn delays(policy: RetryPolicy, seed: u64, host: u32) -> Vec<Duration> {
    let back_off = BackOff { policy, seed };
    let attempts = 1..=8;
    attempts
        .map(|attempt| back_off.delay(HostId(host), attempt))
        .collect()
}

#[test]
fn delays_double_up_to_the_longest_and_stay_in_the_upper_half() {
    let policy = RetryPolicy::default();
    for host in 0..200 {
        for (doublings, delay) in delays(policy, 7, host).into_iter().enumerate() {
            let longest = (policy.first_delay * (1 << doublings)).min(policy.max_delay);
            assert!(delay >= longest / 2 && delay <= longest, "{delay:?}");
        }
    }
}

#[test]
fn hosts_turned_away_together_come_back_apart() {
    let policy = RetryPolicy::default();
    let mut first: Vec<Duration> = (0..100).map(|host| delays(policy, 7, host)[0]).collect();
    first.sort();
    // An even spread over the half second: every tenth of it gets some of a hundred.
    for tenth in 0..10 {
        let from = Duration::from_millis(500 + 50 * tenth);
        let to = from + Duration::from_millis(50);
        let count = first
            .iter()
            .filter(|delay| (from..to).contains(*delay))
            .count();
        assert!(
            (3..=20).contains(&count),
            "{count} of 100 from {from:?} to {to:?}"
        );
    }
}

#[test]
fn delays_depend_on_seed_host_and_attempt_alone() {
    let policy = RetryPolicy::default();
    assert_eq!(delays(policy, 7, 3), delays(policy, 7, 3));
    assert_ne!(delays(policy, 7, 3), delays(policy, 8, 3));
    assert_ne!(delays(policy, 7, 3), delays(policy, 7, 4));
}

#[test]
fn absurd_policies_do_no_harm() {
    let policy = RetryPolicy {
        attempts: u32::MAX,
        first_delay: Duration::MAX,
        max_delay: Duration::MAX,
    };
    let back_off = BackOff { policy, seed: 1 };
    assert!(back_off.delay(HostId(0), u32::MAX) >= Duration::MAX / 2);
    let none = RetryPolicy {
        first_delay: Duration::ZERO,
        ..policy
    };
    assert_eq!(delays(none, 1, 1), [Duration::ZERO; 8]);
}

use super::*;

const MILLI: Duration = Duration::from_millis(1);

fn taught(initial: Duration, lessons: impl IntoIterator<Item = u32>) -> Patience {
    let mut patience = Patience::new(initial);
    for millis in lessons {
        patience.learn(MILLI * millis);
    }
    patience
}

#[test]
fn the_first_host_s_time_replaces_the_initial_patience() {
    assert_eq!(taught(5000 * MILLI, []).span(), 5000 * MILLI);
    assert_eq!(taught(5000 * MILLI, [400]).span(), 1200 * MILLI);
}

#[test]
fn steady_times_lead_to_twice_their_mean() {
    let span = taught(MILLI, [500; 100]).span();
    assert!(span >= 999 * MILLI && span <= 1010 * MILLI, "{span:?}");
}

#[test]
fn quick_hosts_do_not_make_it_jumpy() {
    assert_eq!(taught(MILLI, [2; 50]).span(), LEAST_PATIENCE);
}

#[test]
fn scattered_times_make_it_wider_than_twice_the_mean() {
    let span = taught(MILLI, [100, 900].into_iter().cycle().take(100)).span();
    assert!(span > 1500 * MILLI, "{span:?}");
}

#[test]
fn it_grows_when_everything_gets_slower() {
    let before = taught(MILLI, [50; 40]).span();
    let after = taught(MILLI, [50; 40].into_iter().chain([600; 40])).span();
    assert!(after > 5 * before, "{before:?} {after:?}");
}

#[test]
fn the_longest_time_there_is_does_no_harm() {
    let mut patience = Patience::new(MILLI);
    patience.learn(Duration::MAX);
    patience.learn(Duration::MAX);
    patience.learn(Duration::ZERO);
    assert!(patience.span() > Duration::from_secs(1));
}

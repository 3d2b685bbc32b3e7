use crate::random::Random;
use crate::script::Limits;
use crate::world::simulate;

fn run(seeds: std::ops::Range<u64>, limits: Limits) {
    let (mut messages, mut exchanges, mut trips) = (0, 0, 0);
    for seed in seeds.clone() {
        match simulate(Random::seeded(seed), limits, None) {
            Ok(outcome) => {
                messages += outcome.messages;
                exchanges += outcome.exchanges;
                trips += outcome.trips;
            }
            Err(problem) => panic!("seed {seed}: {problem}"),
        }
    }
    let schedules = (seeds.end - seeds.start) as usize;
    assert!(messages > 5 * schedules, "only {messages} messages");
    assert!(exchanges > 2 * schedules && trips as usize > schedules, "{exchanges} exchanges, {trips} trips");
}

#[test]
fn thousands_of_schedules_come_through_unchanged_and_are_counted_right() {
    run(0..4_000, Limits { acts: 8, dies: false });
}

#[test]
fn long_conversations_come_through_unchanged_and_are_counted_right() {
    run(100_000..100_100, Limits { acts: 80, dies: false });
}

#[test]
fn a_server_that_dies_in_the_middle_leaves_true_books() {
    run(200_000..201_000, Limits { acts: 5, dies: true });
}

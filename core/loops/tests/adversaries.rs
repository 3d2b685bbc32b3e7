//! Programs that no guess can help, or that end when much was guessed: what is wasted is within the law, and they take
//! no longer than when they are only observed.

mod common;

use std::time::Duration;

use common::*;
use onetrip_loops::Edges;

#[test]
fn a_loop_that_breaks_off_wastes_no_more_than_it_hit() {
    for stop in [1, 2, 3, 4, 7, 20, 100] {
        let mut sim = sim(1000);
        let employees = sim.query(PARENTS, &[]);
        for n in 0..stop {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
        sim.commit();
        sim.assert_law(1);
    }
}

#[test]
fn loops_that_break_off_early_are_learnt() {
    let mut sim = sim(1000);
    story(&mut sim);
    for _ in 0..40 {
        let employees = sim.query(PARENTS, &[]);
        for n in 0..6 {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
        sim.commit();
    }
    let before = sim.counters();
    for _ in 0..10 {
        let employees = sim.query(PARENTS, &[]);
        for n in 0..6 {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
        sim.commit();
    }
    let after = sim.counters();
    assert_eq!(after.wasted, before.wasted, "nothing is guessed behind the usual end");
    assert!(after.hits - before.hits >= 40, "{before:?} {after:?}");
}

#[test]
fn ids_in_random_order_waste_next_to_nothing() {
    let mut sim = sim(1000);
    let employees = sim.query(PARENTS, &[]);
    let mut random = fastrand::Rng::with_seed(12_345);
    for _ in 0..1000 {
        let n = random.usize(..employees.len());
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    sim.assert_law(4); // more than one result has the ids
}

#[test]
fn random_skips_stay_within_the_law() {
    let mut sim = sim(5000);
    let employees = sim.query(PARENTS, &[]);
    let mut random = fastrand::Rng::with_seed(99);
    for n in 0..employees.len() {
        if random.bool() {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    sim.assert_law(32);
}

#[test]
fn ids_that_are_in_no_result_are_not_guessed() {
    let mut sim = sim(100);
    sim.query(PARENTS, &[]);
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..500 {
        sim.query(SALARIES, &[text(random.u64(1_000_000..17_000_000))]);
    }
    sim.commit();
    assert!(sim.counters().guesses <= 2, "{:?}", sim.counters());
}

#[test]
fn a_write_in_each_iteration_ends_the_guessing_after_its_start() {
    let mut sim = sim(1000);
    for _ in 0..5 {
        let employees = sim.query(PARENTS, &[]);
        for n in 0..900 {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
            sim.write();
        }
        sim.commit();
    }
    assert!(sim.counters().wasted <= 5, "{:?}", sim.counters());
    assert_eq!(sim.counters().hits, 0);
}

#[test]
fn guesses_that_fail_end_within_the_law() {
    let mut sim = sim(1000);
    sim.refuse_guesses();
    story(&mut sim);
    sim.assert_law(32);
    assert_eq!(sim.counters().hits, 0);
}

#[test]
fn statements_that_take_a_quarter_of_the_round_trip_are_not_guessed() {
    let mut sim = sim(100);
    sim.execution = 4 * MS;
    story(&mut sim);
    assert!(sim.counters().guesses <= 1, "{:?}", sim.counters());
}

#[test]
fn nothing_is_guessed_at_no_distance() {
    let mut sim = Sim::new(Edges::new(), Duration::ZERO, company(500));
    story(&mut sim);
    assert_eq!(sim.counters().guesses, 0);
}

#[test]
fn loops_that_always_end_with_their_first_statement_stop_being_guessed() {
    let mut sim = sim(500);
    story(&mut sim);
    for _ in 0..50 {
        let employees = sim.query(PARENTS, &[]);
        sim.query(SALARIES, &[text(employees.integer(0, 0))]);
        sim.commit();
    }
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().wasted <= 64, "{:?}", sim.counters());
}

#[test]
fn neighbours_that_change_places_are_still_served() {
    let mut sim = sim(1000);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        let n = if n > 100 { n ^ 1 } else { n };
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits >= 950 && sim.counters().wasted <= 1, "{:?}", sim.counters());
}

fn break_after_first(sim: &mut Sim) {
    for _ in 0..20 {
        let employees = sim.query(PARENTS, &[]);
        sim.query(SALARIES, &[text(employees.integer(0, 0))]);
        sim.commit();
    }
}

fn skip_at_random(sim: &mut Sim) {
    let mut random = fastrand::Rng::with_seed(7);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        if random.bool() {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
    }
    sim.commit();
}

fn shuffle(sim: &mut Sim) {
    let mut random = fastrand::Rng::with_seed(11);
    let employees = sim.query(PARENTS, &[]);
    let mut order: Vec<usize> = (0..employees.len()).collect();
    for n in (1..order.len()).rev() {
        order.swap(n, random.usize(..=n));
    }
    for n in order {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
    }
    sim.commit();
}

fn write_in_each_iteration(sim: &mut Sim) {
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        sim.write();
    }
    sim.commit();
}

fn ids_of_no_result(sim: &mut Sim) {
    let mut random = fastrand::Rng::with_seed(13);
    sim.query(PARENTS, &[]);
    for _ in 0..500 {
        sim.query(SALARIES, &[text(random.u64(5_000_000..6_000_000))]);
    }
    sim.commit();
}

#[test]
fn adversaries_take_no_longer_than_when_observed() {
    type Program = fn(&mut Sim);
    let adversaries: [(&str, Program); 5] = [
        ("break", break_after_first),
        ("skip", skip_at_random),
        ("shuffle", shuffle),
        ("write", write_in_each_iteration),
        ("no result", ids_of_no_result),
    ];
    for round_trip in [MS, 13 * MS] {
        let mut taught = Sim::new(Edges::new(), round_trip, company(1000));
        story(&mut taught);
        for known in [false, true] {
            for (name, program) in adversaries {
                let edges = if known { taught.predictor.edges().clone() } else { Edges::new() };
                let run = |observe: bool| {
                    let mut sim = Sim::new(edges.clone(), round_trip, company(500));
                    if observe {
                        sim.only_observe();
                    }
                    program(&mut sim);
                    sim.assert_law(64); // several loops, each with its own start
                    (sim.now - Duration::from_secs(1), sim.counters())
                };
                let (observed, (guessing, counters)) = (run(true).0, run(false));
                println!("{round_trip:?} known {known} {name}: {observed:?} {guessing:?} {counters:?}");
                assert!(guessing <= observed.mul_f64(1.05), "{name}: {guessing:?} against {observed:?}");
            }
        }
    }
}

//! Programs of many shapes, unaware of what happens, on a virtual clock: what they get is what the server gives, and
//! what it costs is within the law.

mod common;

use common::*;
use std::time::Duration;

use onetrip_loops::{Column, Edges, Form};

#[test]
fn ten_thousand_rows_wait_for_thirty_flights_at_most() {
    let mut sim = sim(10_000);
    story(&mut sim);
    println!("{:?} {:?} {:?} flights {}", sim.told, sim.counters(), sim.now, sim.flights.len());
    assert!(sim.told.waits <= 30, "{:?}", sim.told);
    assert!(sim.counters().hits >= 9_990 && sim.counters().wasted == 0, "{:?}", sim.counters());
}

#[test]
fn a_session_that_measures_badly_is_hardly_slower() {
    let mut sim = sim(10_000);
    sim.measure_badly(2 * MS);
    story(&mut sim);
    println!("{:?} {:?} {:?} flights {}", sim.told, sim.counters(), sim.now, sim.flights.len());
    assert!(sim.told.waits <= 100 && sim.now <= Duration::from_secs(3), "{:?} {:?}", sim.told, sim.now);
}

#[test]
fn a_pair_known_from_another_session_starts_with_its_first_statement() {
    let mut first = sim(200);
    story(&mut first);
    let mut second = Sim::new(first.predictor.edges().clone(), 13 * MS, company(10_000));
    story(&mut second);
    println!("{:?} {:?}", second.told, second.counters());
    assert!(second.told.waits <= 15, "{:?}", second.told);
    assert_eq!(second.told.real, 2, "R and the first T");
    assert_eq!(second.counters().wasted, 0);
}

#[test]
fn every_form_and_width_of_a_parameter_is_foreseen() {
    let forms: [fn(i64) -> Owned; 4] = [|n| text(n), int8, number, |n| quoted(&n.to_string())];
    for column in [INT4_TEXT, INT4] {
        for form in forms {
            let server = move |template: u32, _: &[Owned]| match template {
                PARENTS => {
                    let mut rows = Rows::new(&[column]);
                    for n in 1..=100_i32 {
                        let cell = match column == INT4 {
                            true => n.to_be_bytes().to_vec(),
                            false => n.to_string().into_bytes(),
                        };
                        rows.rows.push(vec![Some(cell)]);
                    }
                    rows
                }
                _ => Rows::new(&[TEXT]).with(&row(&["y"])),
            };
            let mut sim = Sim::new(Edges::new(), 13 * MS, server);
            let employees = sim.query(PARENTS, &[]);
            for n in 0..employees.len() {
                sim.query(SALARIES, &[form(employees.integer(n, 0))]);
            }
            sim.commit();
            assert!(sim.counters().hits >= 97, "{column:?} {:?} {:?}", form(1), sim.counters());
        }
    }
}

#[test]
fn rows_of_columns_that_were_not_described_are_walked_too() {
    for binary in [false, true] {
        let server = move |template: u32, _: &[Owned]| match template {
            PARENTS => {
                let id = |n: i32| if binary { n.to_be_bytes().to_vec() } else { n.to_string().into_bytes() };
                Rows {
                    columns: Vec::new(),
                    rows: (1..=100).map(|n| vec![Some(id(n)), Some(b"name".to_vec())]).collect(),
                }
            }
            _ => Rows::new(&[TEXT]).with(&row(&["y"])),
        };
        let mut sim = Sim::new(Edges::new(), 13 * MS, server);
        sim.query(PARENTS, &[]);
        for n in 1..=100 {
            sim.query(SALARIES, &[int8(n)]);
        }
        sim.commit();
        assert!(sim.counters().hits >= 97, "{binary} {:?}", sim.counters());
    }
}

#[test]
fn text_keys_with_quotes_are_foreseen_and_backslashes_left_to_the_program() {
    let names: Vec<String> =
        (0..60).map(|n| if n % 10 == 9 { format!("a\\{n}") } else { format!("O'Hara {n}") }).collect();
    let listed = names.clone();
    let server = move |template: u32, _: &[Owned]| match template {
        PARENTS => listed.iter().fold(Rows::new(&[TEXT]), |rows, name| rows.with(&[Some(name.clone())])),
        _ => Rows::new(&[TEXT]).with(&row(&["y"])),
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    let people = sim.query(PARENTS, &[]);
    for (n, name) in names.iter().enumerate() {
        assert_eq!(people.text(n, 0), Some(name.as_str()));
        sim.query(SALARIES, &[quoted(name)]);
    }
    sim.commit();
    assert!(sim.counters().hits >= 45, "{:?}", sim.counters());
    assert_eq!(sim.counters().wasted, 0);
    assert!(sim.sent.iter().all(|(_, values)| !values[0].bytes.as_deref().unwrap().contains(&b'\\')));
}

#[test]
fn a_parameter_that_stays_is_sent_as_it_was() {
    let mut sim = sim(300);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0)), text("en"), null()]);
    }
    sim.commit();
    assert!(sim.counters().hits >= 290 && sim.counters().wasted == 0, "{:?}", sim.counters());
}

#[test]
fn a_filter_that_skips_rows_by_a_value_is_learnt() {
    let mut sim = sim(2000);
    let employees = sim.query(PARENTS, &[]);
    let mut asked = 0;
    for n in 0..employees.len() {
        if employees.text(n, 2) == Some("here") {
            asked += 1;
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits * 10 >= asked * 9, "{:?} of {asked}", sim.counters());
    assert!(sim.counters().wasted <= 32, "{:?}", sim.counters());
}

#[test]
fn rows_with_null_are_never_guessed() {
    let server = |template: u32, _: &[Owned]| match template {
        PARENTS => (0..200).fold(Rows::new(&[INT4_TEXT]), |rows, n| {
            rows.with(&[(n % 4 != 1).then(|| (500 + n).to_string())])
        }),
        _ => Rows::new(&[TEXT]).with(&row(&["y"])),
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    let parents = sim.query(PARENTS, &[]);
    for n in (0..parents.len()).filter(|n| n % 4 != 1) {
        sim.query(SALARIES, &[text(parents.integer(n, 0))]);
    }
    sim.commit();
    assert!(sim.sent.iter().all(|(_, values)| values[0].bytes.is_some()));
    assert!(sim.counters().hits >= 140 && sim.counters().wasted == 0, "{:?}", sim.counters());
}

#[test]
fn an_identity_map_asks_once_for_each_value() {
    let mut sim = sim(1000);
    let employees = sim.query(PARENTS, &[]);
    let mut known = std::collections::HashSet::new();
    for n in 0..employees.len() {
        let dept = employees.integer(n, 3);
        if known.insert(dept) {
            sim.query(SALARIES, &[text(dept)]);
        }
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert_eq!(known.len(), 9);
    sim.assert_law(1);
    assert!(sim.counters().hits >= 5, "{:?}", sim.counters());
}

#[test]
fn a_program_without_an_identity_map_is_served_again_from_memory() {
    let mut sim = sim(1000);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 3))]);
    }
    sim.commit();
    println!("{:?} {:?} {:?}", sim.told, sim.counters(), sim.buffer.counters());
    assert!(sim.told.waits <= 15, "{:?}", sim.told);
    assert!(sim.counters().guesses <= 9, "{:?}", sim.counters());
}

#[test]
fn two_statements_in_each_iteration_are_both_foreseen() {
    let mut sim = sim(1000);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        sim.query(TITLES, &[text(employees.integer(n, 0)), text(employees.text(n, 1).unwrap())]);
    }
    sim.commit();
    println!("{:?} {:?} flights {}", sim.told, sim.counters(), sim.flights.len());
    assert!(sim.told.waits <= 20, "{:?}", sim.told);
    assert!(sim.counters().hits >= 1980 && sim.counters().wasted == 0, "{:?}", sim.counters());
}

#[test]
fn guesses_leave_in_the_order_of_the_program() {
    let mut sim = sim(300);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        sim.query(TITLES, &[text(employees.integer(n, 0))]);
    }
    sim.commit();
    let rows_of = |template: u32| -> Vec<i64> {
        sim.sent.iter().filter(|(sent, _)| *sent == template).map(|(_, values)| integer(&values[0])).collect()
    };
    for template in [SALARIES, TITLES] {
        assert!(rows_of(template).is_sorted(), "{template}");
    }
}

/// A chain: the second statement's parameter is in the first one's result.
fn chain(sim: &mut Sim, rows: usize) {
    let employees = sim.query(PARENTS, &[]);
    for n in 0..rows {
        let salaries = sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        sim.query(TITLES, &[text(salaries.integer(0, 0))]);
    }
    sim.commit();
}

#[test]
fn a_chain_is_foreseen_level_by_level() {
    let mut sim = sim(900);
    chain(&mut sim, 900);
    println!("{:?} {:?} flights {}", sim.told, sim.counters(), sim.flights.len());
    assert!(sim.told.waits <= 50, "{:?}", sim.told);
    assert!(sim.counters().hits >= 1780, "{:?}", sim.counters());
    sim.assert_law(32);
}

#[test]
fn nested_loops_are_foreseen() {
    let mut sim = sim(300);
    for _ in 0..2 {
        let employees = sim.query(PARENTS, &[]);
        for n in 0..employees.len() {
            let salaries = sim.query(SALARIES, &[text(employees.integer(n, 0))]);
            for s in 0..salaries.len() {
                sim.query(TITLES, &[text(employees.integer(n, 0)), text(salaries.integer(s, 1))]);
            }
        }
        sim.commit();
    }
    println!("{:?} {:?} flights {}", sim.told, sim.counters(), sim.flights.len());
    assert!(sim.told.waits <= 110, "{:?}", sim.told);
    assert!(sim.counters().hits >= 2370, "{:?}", sim.counters());
    sim.assert_law(32);
}

#[test]
fn pages_by_key_are_foreseen() {
    let server = |template: u32, values: &[Owned]| match template {
        PARENTS => {
            let after = integer(&values[0]);
            (after + 1..=(after + 50).min(1980))
                .fold(Rows::new(&[INT4_TEXT, TEXT]), |rows, n| rows.with(&row(&[&n.to_string(), "z"])))
        }
        _ => Rows::new(&[TEXT]).with(&row(&["y"])),
    };
    let mut sim = Sim::new(Edges::new(), 5 * MS, server);
    sim.think = 2 * MS;
    let mut after = 0;
    loop {
        let page = sim.query(PARENTS, &[text(after), text(50)]);
        if page.len() < 50 {
            break;
        }
        after = page.integer(page.len() - 1, 0);
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits >= 35, "{:?}", sim.counters());
    assert_eq!(sim.counters().wasted, 0, "nothing behind the last page, which is a short one");
}

#[test]
fn pages_by_offset_are_foreseen() {
    let server = |template: u32, values: &[Owned]| {
        assert_eq!(template, PARENTS);
        let offset = integer(&values[1]);
        (offset..(offset + 50).min(3020))
            .fold(Rows::new(&[INT4_TEXT]), |rows, n| rows.with(&row(&[&(n * 17).to_string()])))
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    let mut offset = 0;
    loop {
        let page = sim.query(PARENTS, &[number(50), number(offset)]);
        if page.len() < 50 {
            break;
        }
        offset += 50;
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits >= 50 && sim.told.waits <= 25, "{:?} {:?}", sim.told, sim.counters());
    sim.assert_law(16);
}

/// Statements with one after the other's number and results of any length, as pages of a list are not.
fn of_any_length(template: u32, values: &[Owned]) -> Rows {
    match template {
        PARENTS => (10_001..=10_300).fold(Rows::new(&[INT4, TEXT]), |mut rows, n: i32| {
            rows.rows.push(vec![Some(n.to_be_bytes().to_vec()), Some(b"name".to_vec())]);
            rows
        }),
        _ => {
            let key = integer(&values[0]);
            let years = 1 + key * 7 % 18;
            (0..years).fold(Rows::new(&[INT4_TEXT, INT4_TEXT]), |rows, year| {
                rows.with(&row(&[&key.to_string(), &(1985 + year).to_string()]))
            })
        }
    }
}

#[test]
fn numbers_of_a_list_are_its_rows_although_they_count_up() {
    // The first statements of a session are not known to be pure: the list and a counter explain the third alike.
    for unproven in 0..5 {
        let mut sim = Sim::new(Edges::new(), 13 * MS, of_any_length);
        let employees = sim.read_unproven(PARENTS, &[]);
        for n in 0..employees.len() {
            let key = [int8(employees.integer(n, 0))];
            match n < unproven {
                true => sim.read_unproven(SALARIES, &key),
                false => sim.query(SALARIES, &key),
            };
        }
        sim.commit();
        println!("{unproven} {:?} {:?}", sim.told, sim.counters());
        assert!(sim.told.waits <= 15 + unproven as u64, "{unproven} {:?}", sim.told);
        assert_eq!(sim.counters().wasted, 0, "the list has an end");
    }
}

#[test]
fn a_counter_goes_on_behind_a_result_that_is_shorter_than_the_first() {
    let mut sim = Sim::new(Edges::new(), 13 * MS, of_any_length);
    for key in 10_001..=10_300 {
        sim.query(SALARIES, &[int8(key)]);
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits >= 250, "{:?} {:?}", sim.told, sim.counters());
    sim.assert_law(16);
}

#[test]
fn a_slow_program_finds_its_answers_young_enough() {
    let mut sim = sim(300);
    sim.think = 50 * MS;
    story(&mut sim);
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits >= 290, "{:?}", sim.counters());
    assert_eq!(sim.counters().wasted, 0);
}

#[test]
fn wide_rows_are_bounded_by_bytes() {
    let server = |template: u32, _: &[Owned]| match template {
        PARENTS => parents(500),
        _ => Rows::new(&[TEXT]).with(&[Some("w".repeat(20_000))]),
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    story(&mut sim);
    println!("{:?} {:?} {:?}", sim.told, sim.counters(), sim.buffer.counters());
    assert!(sim.flights.iter().all(|flight| *flight <= 40), "{:?}", sim.flights);
    assert!(sim.counters().hits >= 480, "{:?}", sim.counters());
}

#[test]
fn a_portal_read_in_pieces_is_one_frame() {
    let mut sim = sim(1000);
    let column: [Column; 1] = [INT4_TEXT];
    let template = known_as(PARENTS);
    let ticket = sim.predictor.source(&onetrip_loops::Arrival { template, values: &[] });
    let mut next = 0;
    for _ in 0..10 {
        for _ in 0..100 {
            let id = (10_001 + next).to_string();
            sim.predictor.result_row(ticket, &column, &[Some(id.as_bytes())]);
            next += 1;
        }
        sim.predictor.result_end(ticket, onetrip_loops::Outcome { rows: next as u64, ..Default::default() });
        for n in next - 100..next {
            let id = Owned { bytes: Some((10_001 + n).to_string().into_bytes()), form: Form::Text };
            sim.query(SALARIES, &[id]);
        }
    }
    sim.commit();
    assert!(sim.counters().hits >= 980, "{:?}", sim.counters());
    assert_eq!(sim.counters().wasted, 0);
}

#[test]
fn a_driver_that_changes_to_binary_after_five_executions_is_followed() {
    let mut sim = sim(1000);
    for _ in 0..3 {
        let employees = sim.query(PARENTS, &[]);
        for n in 0..employees.len() {
            let id = employees.integer(n, 0);
            let values = if n < 5 { [text(id), text(7)] } else { [int8(id), int8(7)] };
            sim.query(SALARIES, &values);
        }
        sim.commit();
        sim.assert_law(32);
    }
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.told.waits <= 80, "{:?}", sim.told);
}

/// Two statements for each row, by a driver that prepares a statement at its fifth execution and from then on takes
/// its results in binary: Hibernate on pgjdbc.
fn two_statements_prepared_at_the_fifth(sim: &mut Sim) {
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        for statement in [SALARIES, TITLES] {
            let values = [int8(employees.integer(n, 0))];
            match n {
                0..4 => sim.query(statement, &values),
                4 => sim.query_for_real(OTHER_FORM + statement, &values),
                _ => sim.query(OTHER_FORM + statement, &values),
            };
        }
    }
    sim.commit();
}

#[test]
fn a_driver_that_prepares_after_five_executions_goes_on_where_it_was() {
    let mut first = sim(1000);
    two_statements_prepared_at_the_fifth(&mut first);
    println!("{:?} {:?} {:?}", first.told, first.counters(), first.flights);
    assert_eq!(first.told.real, 7, "the list, two rows to learn from, and what the driver prepares");
    assert!(first.told.waits <= 18, "{:?}", first.told);
    assert_eq!(first.counters().wasted, 4, "two of each statement were under way in their old form");
    let mut second = Sim::new(first.predictor.edges().clone(), 13 * MS, company(1000));
    two_statements_prepared_at_the_fifth(&mut second);
    println!("{:?} {:?} {:?}", second.told, second.counters(), second.flights);
    assert!(second.told.waits <= 18, "{:?}", second.told);
    second.assert_law(32);
}

#[test]
fn statements_of_one_row_are_waited_for_together() {
    let mut sim = sim(1000);
    two_statements(&mut sim);
    assert!(sim.told.waits <= 14 && sim.flights.len() <= 60, "{:?} {:?}", sim.told, sim.flights);
}

#[test]
fn a_statement_that_a_row_may_leave_out_holds_nothing_up() {
    let mut sim = sim(1000);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        if n % 7 != 3 {
            sim.query(TITLES, &[text(employees.integer(n, 0))]);
        }
    }
    sim.commit();
    assert!(sim.told.waits <= 25, "{:?}", sim.told);
}

#[test]
fn the_same_statement_over_two_results_is_foreseen_in_both() {
    let mut sim = Sim::new(Edges::new(), 13 * MS, |template, values| match template {
        PARENTS => parents(200),
        TITLES => (100..400).rev().fold(Rows::new(&[TEXT, INT4_TEXT]), |rows, n| {
            rows.with(&row(&["of another table", &(10_001 + n).to_string()]))
        }),
        _ => company(0)(template, values),
    });
    for round in 0..3 {
        let employees = sim.query(PARENTS, &[]);
        let others = sim.query(TITLES, &[]);
        for n in 0..employees.len() {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
        for n in 0..others.len() {
            sim.query(SALARIES, &[text(others.integer(n, 1))]);
        }
        sim.commit();
        println!("{round} {:?} {:?}", sim.told, sim.counters());
    }
    assert!(sim.told.waits <= 50, "{:?}", sim.told);
    assert!(sim.counters().wasted <= 20, "{:?}", sim.counters());
}

#[test]
fn a_key_of_two_columns_is_one_of_the_row_and_one_of_the_statement_above() {
    let server = |template: u32, values: &[Owned]| match template {
        PARENTS => parents(40),
        SALARIES => {
            (1..=20).fold(Rows::new(&[INT4_TEXT]), |rows, line| rows.with(&row(&[&line.to_string()])))
        }
        _ => Rows::new(&[TEXT]).with(&row(&[&format!("{}-{}", integer(&values[0]), integer(&values[1]))])),
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    let orders = sim.query(PARENTS, &[]);
    for n in 0..orders.len() {
        let order = orders.integer(n, 0);
        let lines = sim.query(SALARIES, &[text(order)]);
        for line in 0..lines.len() {
            sim.query(TITLES, &[text(order), text(lines.integer(line, 0))]);
        }
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits >= 820 && sim.told.waits <= 45, "{:?} {:?}", sim.told, sim.counters());
    assert_eq!(sim.counters().wasted, 0);
}

#[test]
fn a_statement_is_guessed_only_after_the_program_has_sent_it_itself() {
    let mut first = sim(200);
    two_statements(&mut first);
    let mut sim = Sim::new(first.predictor.edges().clone(), 13 * MS, company(200));
    let employees = sim.query(PARENTS, &[]);
    assert!(sim.sent.is_empty(), "not with the rows alone");
    sim.query(SALARIES, &[text(employees.integer(0, 0))]);
    assert!(
        !sim.sent.is_empty() && sim.sent.iter().all(|(template, _)| *template == SALARIES),
        "nothing of the other"
    );
    sim.query(TITLES, &[text(employees.integer(0, 0))]);
    assert!(sim.sent.iter().any(|(template, _)| *template == TITLES));

    for n in 1..20 {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        sim.query(TITLES, &[text(employees.integer(n, 0))]);
    }
    sim.write();
    let before = sim.sent.len();
    sim.query(SALARIES, &[text(employees.integer(20, 0))]);
    assert!(sim.sent.len() > before);
    assert!(
        sim.sent[before..].iter().all(|(template, _)| *template == SALARIES),
        "a write proves nothing any more"
    );
}

fn two_statements(sim: &mut Sim) {
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        sim.query(TITLES, &[text(employees.integer(n, 0))]);
    }
    sim.commit();
}

#[test]
fn a_transaction_knows_nothing_of_the_rows_of_another() {
    let mut sim = sim(200);
    story(&mut sim);
    let employees = sim.query(PARENTS, &[]);
    sim.commit();
    let before = sim.counters().guesses;
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        sim.commit();
    }
    assert_eq!(sim.counters().guesses, before);
}

#[test]
fn what_was_learnt_is_taken_over_once_and_only_if_it_is_sure() {
    let mut taught = sim(200);
    two_statements(&mut taught);
    let learnt = taught.predictor.edges();
    let (parents, salaries) = (known_as(PARENTS).key, known_as(SALARIES).key);
    assert!(learnt.is_known(parents, salaries) && !learnt.is_known(salaries, parents));
    let mut shared = Edges::new();
    shared.absorb(learnt);
    let once = shared.len();
    shared.absorb(learnt);
    assert_eq!(shared.len(), once);
    assert!(shared.is_known(parents, salaries));

    let mut hint = sim(200);
    let employees = hint.query(PARENTS, &[]);
    hint.query(SALARIES, &[text(employees.integer(0, 0))]);
    assert!(!hint.predictor.edges().is_known(parents, salaries), "one statement proves nothing");
    let mut empty = Edges::new();
    empty.absorb(hint.predictor.edges());
    assert!(empty.is_empty());
}

#[test]
fn what_is_learnt_stays_within_bounds() {
    let mut sim = sim(50);
    for template in 0..3000 {
        let employees = sim.query(PARENTS, &[]);
        for n in 0..3 {
            sim.query(100 + template, &[text(employees.integer(n, 0))]);
        }
        sim.commit();
    }
    assert!(sim.predictor.edges().len() <= onetrip_loops::EDGES_MAX);
    assert!(sim.predictor.edges().is_known(known_as(PARENTS).key, known_as(3099).key), "the latest is kept");
}

#[test]
fn a_column_of_one_value_is_no_evidence() {
    let server = |template: u32, _: &[Owned]| match template {
        PARENTS => {
            (0..40).fold(Rows::new(&[INT4_TEXT]), |rows, n| rows.with(&row(&[&(1 + n / 20).to_string()])))
        }
        _ => Rows::new(&[TEXT]).with(&row(&["y"])),
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    sim.query(PARENTS, &[]);
    for _ in 0..25 {
        sim.query(SALARIES, &[text(1)]);
        sim.write();
    }
    sim.commit();
    assert_eq!(sim.counters().guesses, 0);
}

#[test]
fn a_statement_that_takes_another_column_from_now_on_is_learnt_anew() {
    let server = |template: u32, _: &[Owned]| match template {
        PARENTS => (0..300).fold(Rows::new(&[INT4_TEXT, INT4_TEXT]), |rows, n| {
            rows.with(&row(&[&(1000 + n).to_string(), &(100_000 + n * n * 37 % 99_991).to_string()]))
        }),
        _ => Rows::new(&[TEXT]).with(&row(&["y"])),
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    for column in [0, 1] {
        let before = sim.counters().hits;
        let rows = sim.query(PARENTS, &[]);
        for n in 0..rows.len() {
            sim.query(SALARIES, &[text(rows.integer(n, column))]);
        }
        sim.commit();
        assert!(sim.counters().hits - before >= 250, "column {column}: {:?}", sim.counters());
    }
}

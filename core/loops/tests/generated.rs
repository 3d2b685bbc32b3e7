//! Programs made up at random: loops with filters, breaks, chains, loops inside loops, writes and ends of transactions
//! in between. The server's answers change with every write and transaction, so that an answer kept too long would be
//! seen; the law is checked with every flight.

mod common;

use std::cell::Cell;
use std::rc::Rc;

use common::*;
use onetrip_loops::{Edges, Form};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

/// A loop over a result.
#[derive(Debug, Clone)]
struct Loop {
    /// The result's template, and how many rows it has.
    parent: u32,
    rows: usize,
    /// Of how many rows one is passed by; none if zero.
    skips: usize,
    /// Where it breaks off.
    stop: usize,
    body: Vec<Body>,
}

#[derive(Debug, Clone)]
enum Body {
    /// A statement with a value of the row.
    Child { template: u32, column: usize, form: u8 },
    /// The same, and one with a value of its result.
    Chain { template: u32, then: u32 },
    /// The same, and one for every row of its result.
    Nested { template: u32, inner: u32 },
    /// A write, in every so many iterations.
    Write { every: usize },
}

#[derive(Debug, Clone)]
enum Op {
    Loop(Loop),
    Single { template: u32, id: i64 },
    Write,
    Commit,
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        6 => (10..13_u32, 0..3_usize, 0..4_u8).prop_map(|(template, column, form)| Body::Child { template, column, form }),
        2 => (10..13_u32, 13..15_u32).prop_map(|(template, then)| Body::Chain { template, then }),
        2 => (10..13_u32, 15..17_u32).prop_map(|(template, inner)| Body::Nested { template, inner }),
        1 => (1..20_usize).prop_map(|every| Body::Write { every }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let a_loop = (
        0..3_u32,
        1..80_usize,
        0..5_usize,
        prop_oneof![3 => Just(usize::MAX), 1 => 0..40_usize],
        vec(body(), 1..4),
    )
        .prop_map(|(parent, rows, skips, stop, body)| Op::Loop(Loop { parent, rows, skips, stop, body }));
    prop_oneof![
        8 => a_loop,
        1 => (10..17_u32, 0..200_i64).prop_map(|(template, id)| Op::Single { template, id }),
        1 => Just(Op::Write),
        3 => Just(Op::Commit),
    ]
}

fn written(value: i64, form: u8) -> Owned {
    match form {
        0 => text(value),
        1 => int8(value),
        2 => number(value),
        _ => quoted(&value.to_string()),
    }
}

/// The server: an answer is made from the statement, its values, and all that was written so far.
fn answer(version: i64, template: u32, values: &[Owned]) -> Rows {
    let seed = values.first().map_or(0, integer);
    if template < 10 {
        let columns = [INT4_TEXT, INT4_TEXT, INT4_TEXT];
        return (0..seed).fold(Rows::new(&columns), |rows, n| {
            let id = Some((1000 * i64::from(template) + n).to_string());
            rows.with(&[id, (n % 7 != 3).then(|| (n * 13 % 60).to_string()), Some((n % 4).to_string())])
        });
    }
    (0..1 + seed % 3).fold(Rows::new(&[INT4_TEXT, INT4_TEXT]), |rows, n| {
        rows.with(&[
            Some((seed * 3 + n).to_string()),
            Some((version * 1000 + i64::from(template)).to_string()),
        ])
    })
}

struct Program {
    sim: Sim,
    version: Rc<Cell<i64>>,
}

impl Program {
    fn new(edges: Edges) -> Self {
        let version = Rc::new(Cell::new(0));
        let seen = Rc::clone(&version);
        let sim = Sim::new(edges, 10 * MS, move |template, values| answer(seen.get(), template, values));
        Self { sim, version }
    }

    fn write(&mut self) {
        self.sim.write();
        self.version.set(self.version.get() + 1);
    }

    fn run(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Loop(body) => self.run_loop(body),
                Op::Single { template, id } => _ = self.sim.query(*template, &[text(id)]),
                Op::Write => self.write(),
                Op::Commit => {
                    self.sim.commit();
                    self.version.set(self.version.get() + 1);
                }
            }
        }
        self.sim.commit();
    }

    fn run_loop(&mut self, of: &Loop) {
        let rows = self.sim.query(of.parent, &[text(of.rows)]);
        for row in 0..rows.len().min(of.stop) {
            let passed_by = of.skips > 0 && rows.integer(row, 2) as usize % 4 == of.skips % 4;
            if passed_by {
                continue;
            }
            for body in &of.body {
                self.run_body(body, &rows, row);
            }
        }
    }

    fn run_body(&mut self, body: &Body, rows: &Rows, row: usize) {
        match body {
            Body::Child { template, column, form } => {
                if rows.text(row, *column).is_some() {
                    self.sim.query(*template, &[written(rows.integer(row, *column), *form)]);
                }
            }
            Body::Chain { template, then } => {
                let result = self.sim.query(*template, &[text(rows.integer(row, 0))]);
                self.sim.query(*then, &[text(result.integer(0, 0)), text(5)]);
            }
            Body::Nested { template, inner } => {
                let result = self.sim.query(*template, &[text(rows.integer(row, 0))]);
                for line in 0..result.len() {
                    self.sim.query(*inner, &[text(rows.integer(row, 0)), text(result.integer(line, 0))]);
                }
            }
            Body::Write { every } if row % every == every - 1 => self.write(),
            Body::Write { .. } => {}
        }
    }
}

/// What the programs of a run got.
#[derive(Default)]
struct Got {
    hits: Cell<u64>,
    wasted: Cell<u64>,
    asked: Cell<u64>,
}

fn run_programs(mut runner: TestRunner) -> Got {
    let got = Got::default();
    let outcome = runner.run(&vec(op(), 1..12), |ops| {
        let mut program = Program::new(Edges::new());
        program.run(&ops);
        // and once more, with what was learnt
        let mut again = Program::new(program.sim.predictor.edges().clone());
        again.run(&ops);
        for sim in [&program.sim, &again.sim] {
            got.hits.set(got.hits.get() + sim.counters().hits);
            got.wasted.set(got.wasted.get() + sim.counters().wasted);
            got.asked.set(got.asked.get() + sim.told.asked);
        }
        prop_assert!(again.sim.told.waits <= again.sim.told.asked);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    got
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn any_program_gets_what_the_server_would_say() {
    assert_eq!(integer(&written(7, 1)), 7, "{:?}", Form::Binary(20));
    run_programs(TestRunner::new(config(40)));
}

/// The same programs in every run: how much is served is not left to chance.
#[test]
fn a_third_is_served_from_memory_and_less_is_wasted() {
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let Got { hits, wasted, asked } = run_programs(TestRunner::new_with_rng(config(100), seed));
    println!("{} of {} statements from memory, {} wasted", hits.get(), asked.get(), wasted.get());
    assert!(hits.get() * 3 >= asked.get(), "{} of {}", hits.get(), asked.get());
    assert!(wasted.get() <= hits.get(), "{} of {}", wasted.get(), hits.get());
}

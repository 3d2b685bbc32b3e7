//! What a statement that is foreseen costs in the gateway: no allocation, and a bounded time.

use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

use onetrip_heap::ALLOCATIONS;
use onetrip_loops::{
    Answer, Arrival, Asking, Buffer, Column, Edges, Flight, Form, Format, Origin, Outcome, Predictor,
    Template, Ticket, Value,
};

const PARENTS: Template = Template { id: 1, key: 11, kin: 11 };
const CHILDREN: Template = Template { id: 2, key: 22, kin: 22 };
const ROWS: u32 = 50_000;

/// A loop over many rows whose guesses are answered as soon as they leave.
struct Run {
    predictor: Predictor,
    buffer: Buffer,
    flight: Flight,
    now: Duration,
    reply: [u8; 200],
}

impl Run {
    fn new(round_trip: Duration) -> Self {
        let mut predictor = Predictor::new(Edges::new());
        predictor.set_round_trip(round_trip);
        let mut run = Self {
            predictor,
            buffer: Buffer::new(),
            flight: Flight::default(),
            now: Duration::ZERO,
            reply: [7; 200],
        };
        let columns = [23, 25, 23].map(|oid| Column { oid, format: Format::Text });
        let parents = run.predictor.statement(run.now, &Arrival { template: PARENTS, values: &[] });
        for row in 0..ROWS {
            let (id, name) = (row.to_string(), format!("name of {row}"));
            let cells = [Some(id.as_bytes()), Some(name.as_bytes()), Some(&b"7"[..])];
            run.predictor.result_row(parents, &columns, &cells);
        }
        run.predictor.result_end(parents, outcome());
        run
    }

    /// The program's next statement; whether memory answered.
    fn next(&mut self, row: u32) -> bool {
        self.now += Duration::from_micros(50);
        let mut request = *b"children 00000000";
        let mut digits = [0; 10];
        let id = decimal(row, &mut digits);
        request[9..9 + id.len()].copy_from_slice(id);
        let asking = Asking {
            now: self.now,
            in_transaction: true,
            is_pure: true,
            all_rows: true,
            nothing_ahead: true,
            age_max: onetrip_loops::AGE_MAX,
        };
        let served = match self.buffer.ask(&request, &asking) {
            Answer::Serve(ticket, reply) => {
                black_box(reply);
                Some(ticket)
            }
            _ => None,
        };
        match served {
            Some(ticket) => self.predictor.served(self.now, ticket),
            None => {
                let values = [Value { bytes: Some(id), form: Form::Text }];
                let arrival = Arrival { template: CHILDREN, values: &values };
                let ticket = self.predictor.statement(self.now, &arrival);
                self.answer(ticket);
            }
        }
        self.predictor.plan(&mut self.flight);
        let flight = std::mem::take(&mut self.flight);
        for guess in flight.guesses() {
            let mut request = *b"children 00000000";
            let id = guess.values().next().and_then(|value| value.bytes).unwrap_or_default();
            request[9..9 + id.len()].copy_from_slice(id);
            self.buffer.expect(self.now, guess.ticket, &request, Origin::Guess);
            self.buffer.append(guess.ticket, &self.reply);
            self.buffer.complete(guess.ticket);
            self.answer(guess.ticket);
        }
        self.flight = flight;
        served.is_some()
    }

    fn answer(&mut self, ticket: Ticket) {
        if self.predictor.wants_rows(ticket) {
            let column = [Column { oid: 23, format: Format::Text }; 2];
            self.predictor.result_row(ticket, &column, &[Some(b"60117"), Some(b"1986")]);
        }
        self.predictor.result_end(ticket, outcome());
    }
}

fn outcome() -> Outcome {
    Outcome { execution: Some(Duration::from_micros(30)), bytes: 200, rows: 1 }
}

fn decimal(number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let (mut rest, mut start) = (number, digits.len());
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &digits[start..];
        }
    }
}

#[test]
fn a_warm_loop_does_not_allocate_per_statement() {
    let mut run = Run::new(Duration::from_millis(10));
    let warm = ROWS / 2;
    (0..warm).for_each(|row| _ = run.next(row));
    let before = ALLOCATIONS.with(Cell::get);
    let served = (warm..ROWS).filter(|row| run.next(*row)).count();
    let allocations = ALLOCATIONS.with(Cell::get) - before;
    assert_eq!(served as u32, ROWS - warm);
    // what was fetched is remembered in a set that doubles now and then
    assert!(allocations <= 20, "{allocations} allocations for {served} statements");
}

/// Nanoseconds of processor time that this thread has had, whatever else the machine does.
fn processor_time() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    schedstat.split_whitespace().next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or_default()
}

/// `cargo test --release -p onetrip-loops --test costs -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn what_a_statement_costs() {
    for (name, round_trip) in [("foreseen", 10), ("not looked at", 0)] {
        let mut best = f64::MAX;
        for _ in 0..7 {
            let mut run = Run::new(Duration::from_millis(round_trip));
            let started = processor_time();
            (0..ROWS).for_each(|row| _ = run.next(row));
            best = best.min((processor_time() - started) / f64::from(ROWS));
        }
        println!("{name}: {best:.0} ns per statement");
    }
    for (name, first, step) in [
        ("of no result", 1_000_000, 0),
        ("shuffled", 0, 0),
        ("counted", 1_000_000, 7919),
        ("backwards", 0, ROWS - 1),
    ] {
        let (mut best, mut allocations) = (f64::MAX, 0);
        for _ in 0..7 {
            let mut run = Run::new(Duration::from_millis(10));
            let mut random = fastrand::Rng::with_seed(1);
            let (started, before) = (processor_time(), ALLOCATIONS.with(Cell::get));
            for row in 0..ROWS {
                let mut digits = [0; 10];
                let number = if step == 0 { random.u32(..) } else { row.wrapping_mul(step) };
                let id = decimal(number % ROWS + first, &mut digits);
                let values = [Value { bytes: Some(id), form: Form::Text }];
                let ticket =
                    run.predictor.statement(run.now, &Arrival { template: CHILDREN, values: &values });
                run.answer(ticket);
                run.predictor.plan(&mut run.flight);
            }
            allocations = ALLOCATIONS.with(Cell::get) - before;
            best = best.min((processor_time() - started) / f64::from(ROWS));
        }
        println!(
            "{name}: {best:.0} ns and {:.3} allocations per statement",
            allocations as f64 / f64::from(ROWS)
        );
    }
    let mut best = f64::MAX;
    for _ in 0..7 {
        let started = processor_time();
        black_box(Run::new(Duration::from_millis(10)));
        best = best.min((processor_time() - started) / f64::from(ROWS));
    }
    println!("a result's row of three columns: {best:.0} ns");
}

//! Whatever the session tells, in whatever order: no panic, and all bounds hold.

mod common;

use std::cell::Cell;
use std::time::Duration;

use common::{known_as, sent};
use onetrip_loops::{
    Answer, Arrival, Asking, BYTES_MAX, Buffer, Column, Counters, ENTRIES_MAX, Edges, Flight, Form, Format,
    Origin, Outcome, Predictor, Ticket, Value,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// What happens; tickets and values are taken from small ranges, so that they meet.
#[derive(Debug, Clone)]
enum Event {
    Statement {
        template: u32,
        values: Vec<(Form, Option<i64>)>,
    },
    Source {
        template: u32,
    },
    /// A result of a loop's rows, from a statement or a source.
    Parent {
        template: u32,
        rows: i64,
        is_pure: bool,
    },
    /// The loop goes on: the next row that is not passed by, served if it was guessed.
    Next {
        template: u32,
        by: i64,
        is_served: bool,
    },
    /// The server answers all that was guessed.
    Answers {
        rows: i64,
    },
    Served {
        back: u64,
    },
    Failed {
        back: u64,
    },
    Row {
        back: u64,
        cells: Vec<Option<i64>>,
        is_binary: bool,
    },
    End {
        back: u64,
        rows: u64,
        micros: u64,
        bytes: usize,
    },
    Plan,
    Flush,
    Ended,
    Distance {
        micros: u64,
    },
}

fn form() -> impl Strategy<Value = Form> {
    prop_oneof![
        3 => Just(Form::Text),
        1 => Just(Form::Number),
        1 => Just(Form::Quoted),
        1 => Just(Form::Binary(0)),
        1 => Just(Form::Binary(23)),
        1 => any::<u32>().prop_map(Form::Binary),
    ]
}

fn cell() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![8 => (0..40_i64).prop_map(Some), 1 => any::<i64>().prop_map(Some), 1 => Just(None)]
}

fn event() -> impl Strategy<Value = Event> {
    let back = || prop_oneof![4 => 0..3_u64, 1 => 0..200_u64, 1 => any::<u64>()];
    prop_oneof![
        6 => (0..4_u32, vec((form(), cell()), 0..3)).prop_map(|(template, values)| Event::Statement { template, values }),
        1 => (0..4_u32).prop_map(|template| Event::Source { template }),
        2 => (0..3_u32, 1..60_i64, any::<bool>())
            .prop_map(|(template, rows, is_pure)| Event::Parent { template, rows, is_pure }),
        40 => (3..6_u32, prop_oneof![12 => Just(1), 2 => 0..4_i64, 1 => -5..9_i64], prop::bool::weighted(0.9))
            .prop_map(|(template, by, is_served)| Event::Next { template, by, is_served }),
        10 => (0..4_i64).prop_map(|rows| Event::Answers { rows }),
        2 => back().prop_map(|back| Event::Served { back }),
        1 => back().prop_map(|back| Event::Failed { back }),
        6 => (back(), vec(cell(), 0..5), any::<bool>())
            .prop_map(|(back, cells, is_binary)| Event::Row { back, cells, is_binary }),
        4 => (back(), 0..20_u64, 0..2000_u64, 0..100_000_usize)
            .prop_map(|(back, rows, micros, bytes)| Event::End { back, rows, micros, bytes }),
        25 => Just(Event::Plan),
        1 => Just(Event::Flush),
        1 => Just(Event::Ended),
        1 => prop_oneof![Just(0), 1..100_000_u64].prop_map(|micros| Event::Distance { micros }),
    ]
}

fn bytes_of(form: Form, value: i64) -> Vec<u8> {
    match form {
        Form::Binary(23) => (value as i32).to_be_bytes().to_vec(),
        Form::Binary(_) => value.to_be_bytes().to_vec(),
        _ => value.to_string().into_bytes(),
    }
}

struct Run {
    predictor: Predictor,
    flight: Flight,
    now: Duration,
    last: u64,
    cursor: i64,
    guessed: Vec<(u32, Vec<u8>, Ticket)>,
}

impl Run {
    fn new() -> Self {
        let mut predictor = Predictor::new(Edges::new());
        predictor.set_round_trip(Duration::from_millis(10));
        Self {
            predictor,
            flight: Flight::default(),
            now: Duration::ZERO,
            last: 0,
            cursor: 0,
            guessed: Vec::new(),
        }
    }

    fn happens(&mut self, event: &Event) {
        self.now += Duration::from_micros(50);
        let ticket = |back: u64| Ticket(self.last.wrapping_sub(back));
        match event {
            Event::Statement { template, values } => {
                let owned: Vec<(Form, Option<Vec<u8>>)> = values
                    .iter()
                    .map(|(form, value)| (*form, value.map(|value| bytes_of(*form, value))))
                    .collect();
                let values: Vec<Value<'_>> = owned
                    .iter()
                    .map(|(form, bytes)| Value { bytes: bytes.as_deref(), form: *form })
                    .collect();
                let arrival = Arrival { template: known_as(*template), values: &values };
                self.last = self.predictor.statement(self.now, &arrival).0;
            }
            Event::Source { template } => {
                self.last = self.predictor.source(&Arrival { template: known_as(*template), values: &[] }).0;
            }
            Event::Parent { template, rows, is_pure } => self.parent(*template, *rows, *is_pure),
            Event::Next { template, by, is_served } => self.next(*template, *by, *is_served),
            Event::Answers { rows } => self.answers(*rows),
            Event::Served { back } => self.predictor.served(self.now, ticket(*back)),
            Event::Failed { back } => self.predictor.failed(ticket(*back)),
            Event::Row { back, cells, is_binary } => {
                let format = if *is_binary { Format::Binary } else { Format::Text };
                let form = if *is_binary { Form::Binary(20) } else { Form::Text };
                let columns = vec![Column { oid: 20, format }; cells.len()];
                let owned: Vec<Option<Vec<u8>>> =
                    cells.iter().map(|cell| cell.map(|value| bytes_of(form, value))).collect();
                let row: Vec<Option<&[u8]>> = owned.iter().map(Option::as_deref).collect();
                let ticket = ticket(*back);
                let _ = self.predictor.wants_rows(ticket);
                if cells.len() % 2 == 0 {
                    self.predictor.result_row(ticket, &columns, &row);
                } else {
                    self.predictor.result_row_as_sent(ticket, &columns, &sent(&owned));
                }
            }
            Event::End { back, rows, micros, bytes } => {
                let execution = Some(Duration::from_micros(*micros));
                self.predictor.result_end(ticket(*back), Outcome { execution, bytes: *bytes, rows: *rows });
            }
            Event::Plan => self.plan(),
            Event::Flush => self.predictor.flush(),
            Event::Ended => self.predictor.transaction_ended(),
            Event::Distance { micros } => self.predictor.set_round_trip(Duration::from_micros(*micros)),
        }
    }

    fn parent(&mut self, template: u32, rows: i64, is_pure: bool) {
        let arrival = Arrival { template: known_as(template), values: &[] };
        let ticket = match is_pure {
            true => self.predictor.statement(self.now, &arrival),
            false => self.predictor.source(&arrival),
        };
        self.last = ticket.0;
        self.cursor = -1;
        self.rows(ticket, 0, rows);
    }

    fn rows(&mut self, ticket: Ticket, first: i64, rows: i64) {
        let columns = [Column { oid: 23, format: Format::Text }, Column { oid: 25, format: Format::Text }];
        for n in first..first + rows {
            let (number, parity) = (n.to_string(), (n % 3).to_string());
            self.predictor.result_row(ticket, &columns, &[Some(number.as_bytes()), Some(parity.as_bytes())]);
        }
        self.predictor.result_end(ticket, Outcome { rows: rows as u64, ..Outcome::default() });
    }

    fn next(&mut self, template: u32, by: i64, is_served: bool) {
        self.cursor += by;
        let id = self.cursor.to_string().into_bytes();
        let known = self.guessed.iter().rfind(|(of, value, _)| *of == template && *value == id);
        if let Some((_, _, ticket)) = known.filter(|_| is_served) {
            return self.predictor.served(self.now, *ticket);
        }
        let values = [Value { bytes: Some(&id), form: Form::Text }];
        let arrival = Arrival { template: known_as(template), values: &values };
        let ticket = self.predictor.statement(self.now, &arrival);
        self.last = ticket.0;
        self.rows(ticket, self.cursor + 1000, 2);
    }

    fn answers(&mut self, rows: i64) {
        for position in 0..self.guessed.len() {
            let ticket = self.guessed[position].2;
            self.rows(ticket, self.cursor, rows);
        }
    }

    fn plan(&mut self) {
        self.predictor.plan(&mut self.flight);
        let mut count = 0;
        for guess in self.flight.guesses() {
            count += 1;
            assert!(guess.ticket.0 > self.last, "tickets increase");
            self.last = guess.ticket.0;
            assert!(guess.values().len() > 0);
            let value = guess.values().next().and_then(|value| value.bytes).unwrap_or_default().to_vec();
            self.guessed.push((guess.template, value, guess.ticket));
        }
        assert_eq!(count, self.flight.len());
        let Counters { guesses, hits, wasted, .. } = self.predictor.counters();
        let outstanding = guesses - hits - wasted;
        assert!(outstanding <= 8 * 512, "{outstanding}");
        // each loop may start with 32, and there are at most as many loops as statements
        assert!(hits + wasted <= guesses);
    }
}

#[test]
fn no_sequence_of_events_panics_or_loses_a_guess() {
    let (made, served) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(ProptestConfig { cases: 500, ..ProptestConfig::default() });
    let outcome = runner.run(&vec(event(), 0..400), |events| {
        let mut run = Run::new();
        events.iter().for_each(|event| run.happens(event));
        run.predictor.transaction_ended();
        let Counters { guesses, hits, wasted, .. } = run.predictor.counters();
        prop_assert_eq!(guesses, hits + wasted);
        made.set(made.get() + guesses);
        served.set(served.get() + hits);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(made.get() >= 500 && served.get() >= 50, "{} guesses, {} served", made.get(), served.get());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn after_any_events_a_plain_loop_is_foreseen(events in vec(event(), 0..200)) {
        let mut run = Run::new();
        for event in &events {
            run.happens(event);
        }
        run.predictor.transaction_ended();
        run.predictor.set_round_trip(Duration::from_millis(10));
        let before = run.predictor.counters();
        let parent = run.predictor.source(&Arrival { template: known_as(100), values: &[] });
        let column = [Column { oid: 20, format: Format::Text }];
        for n in 0..50 {
            run.predictor.result_row(parent, &column, &[Some(n.to_string().as_bytes())]);
        }
        run.predictor.result_end(parent, Outcome::default());
        let mut foreseen: Vec<(Vec<u8>, Ticket)> = Vec::new();
        for n in 0..50 {
            run.now += Duration::from_micros(100);
            let id = n.to_string().into_bytes();
            match foreseen.iter().find(|(value, _)| *value == id) {
                Some((_, ticket)) => run.predictor.served(run.now, *ticket),
                None => {
                    let values = [Value { bytes: Some(&id), form: Form::Text }];
                    let arrival = Arrival { template: known_as(101), values: &values };
                    let ticket = run.predictor.statement(run.now, &arrival);
                    run.predictor.result_end(ticket, Outcome { rows: 1, ..Outcome::default() });
                }
            }
            run.predictor.plan(&mut run.flight);
            for guess in run.flight.guesses() {
                let value = guess.values().next().and_then(|value| value.bytes).map(<[u8]>::to_vec);
                foreseen.push((value.unwrap_or_default(), guess.ticket));
                }
            let answered: Vec<Ticket> = run.flight.guesses().map(|guess| guess.ticket).collect();
            answered.into_iter().for_each(|ticket| run.predictor.result_end(ticket, Outcome::default()));
        }
        let after = run.predictor.counters();
        prop_assert!(after.hits - before.hits >= 40, "{:?} {:?}", before, after);
    }
}

#[derive(Debug, Clone)]
enum Kept {
    Expect { key: u8, is_guess: bool },
    Append { back: u64, bytes: usize },
    Complete { back: u64 },
    Fail { back: u64 },
    Ask { key: u8, millis: u64 },
    Flush,
}

fn kept() -> impl Strategy<Value = Kept> {
    let back = || prop_oneof![3 => 0..4_u64, 1 => any::<u64>()];
    prop_oneof![
        4 => (any::<u8>(), any::<bool>()).prop_map(|(key, is_guess)| Kept::Expect { key, is_guess }),
        4 => (back(), prop_oneof![Just(100), 0..300_000_usize, Just(2_000_000)])
            .prop_map(|(back, bytes)| Kept::Append { back, bytes }),
        4 => back().prop_map(|back| Kept::Complete { back }),
        1 => back().prop_map(|back| Kept::Fail { back }),
        4 => (any::<u8>(), 0..3000_u64).prop_map(|(key, millis)| Kept::Ask { key, millis }),
        1 => Just(Kept::Flush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_buffer_keeps_its_bounds_and_counts_every_guess_once(events in vec(kept(), 0..300)) {
        let mut buffer = Buffer::new();
        let mut last = 0_u64;
        let mut guesses = 0;
        let zeros = vec![0; 2_000_000];
        for event in events {
            match event {
                Kept::Expect { key, is_guess } => {
                    last += 1;
                    let origin = if is_guess { Origin::Guess } else { Origin::Program };
                    let is_kept = buffer.expect(Duration::ZERO, Ticket(last), &[key; 40], origin);
                    guesses += u64::from(is_kept && is_guess);
                }
                Kept::Append { back, bytes } => _ = buffer.append(Ticket(last.wrapping_sub(back)), &zeros[..bytes]),
                Kept::Complete { back } => buffer.complete(Ticket(last.wrapping_sub(back))),
                Kept::Fail { back } => buffer.fail(Ticket(last.wrapping_sub(back))),
                Kept::Ask { key, millis } => {
                    let now = Duration::from_millis(millis);
                    let asking = Asking {
                        now,
                        in_transaction: true,
                        is_pure: true,
                        all_rows: true,
                        nothing_ahead: true,
            age_max: onetrip_loops::AGE_MAX,
                    };
                    if let Answer::Serve(ticket, reply) = buffer.ask(&[key; 40], &asking) {
                        prop_assert!(ticket.0 <= last && reply.len() <= BYTES_MAX);
                        prop_assert!(millis <= 2000);
                    }
                }
                Kept::Flush => buffer.flush(),
            }
            prop_assert!(buffer.len() <= ENTRIES_MAX && buffer.room() <= BYTES_MAX);
        }
        buffer.flush();
        let counters = buffer.counters();
        prop_assert_eq!(counters.hits + counters.wasted, guesses);
        prop_assert_eq!(buffer.room(), BYTES_MAX);
    }
}

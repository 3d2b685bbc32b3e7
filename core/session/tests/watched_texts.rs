//! Sessions of a capture share what was found in texts. What they book is the same as without.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{bind, complete, execute, message, parse, query, ready, startup, sync};
use onetrip_ledger::{Moment, ValueHasher};
use onetrip_session::{Observed, Session, SessionConfig, Texts};

/// Texts whose reading depends on more than one would think.
const TEXTS: [&str; 9] = [
    "SELECT name FROM emp WHERE id = 7 AND dept = 'it''s'",
    "SELECT name FROM emp WHERE id = 7 /* route='/staff' */",
    "SET onetrip.scope = 'nightly'",
    "RESET ALL",
    "FETCH 20 FROM c",
    "DEALLOCATE s",
    r"SELECT 'a\' , id, 'b' FROM emp",
    "SELECT $1, 'left', $2",
    "",
];

struct Watched {
    session: Session,
    now: u64,
}

impl Watched {
    fn new(hasher: &ValueHasher, texts: &Arc<Texts>, keep_values: bool) -> Self {
        let session = Session::observed(SessionConfig {
            hasher: hasher.clone(),
            cancel_key: [0; 4],
            keep_values,
            remedies: Default::default(),
            verify: None,
            lobs: Default::default(),
            isolation: None,
            question_burst: Duration::ZERO,
            common: Default::default(),
            texts: Arc::clone(texts),
            private: [0; 8],
            overflow: None,
        });
        let mut watched = Self { session, now: 0 };
        watched.client(&startup());
        watched.server(&[message(b'R', &[0; 4]), ready(b'I')].concat());
        watched
    }

    fn client(&mut self, mut bytes: &[u8]) {
        self.now += 1_000;
        while let Ok(Observed::Booked(taken)) = self.session.observe_client(Moment(self.now), bytes, false) {
            bytes = &bytes[taken..];
        }
        assert!(bytes.is_empty());
    }

    fn server(&mut self, mut bytes: &[u8]) {
        self.now += 1_000;
        while let Ok(Observed::Booked(taken)) = self.session.observe_server(Moment(self.now), bytes, false) {
            bytes = &bytes[taken..];
        }
        assert!(bytes.is_empty());
    }

    fn run(&mut self, text: &str) {
        self.client(&query(text));
        self.server(&[complete("SELECT 0"), ready(b'I')].concat());
        self.client(&[parse("", text), bind("", "", &["1", "2"]), execute(""), sync()].concat());
        let answer = [message(b'1', b""), message(b'2', b""), complete("SELECT 0"), ready(b'I')];
        self.server(&answer.concat());
    }

    fn strings_are(&mut self, standard: &str) {
        self.server(&message(b'S', format!("standard_conforming_strings\0{standard}\0").as_bytes()));
    }

    fn records(&mut self) -> Vec<u8> {
        self.session.stream().take_block()
    }
}

/// What two connections book that run all texts again and again.
fn booked(hasher: &ValueHasher, texts: &Arc<Texts>, keep_values: bool) -> [Vec<u8>; 2] {
    let mut pair = [(); 2].map(|()| Watched::new(hasher, texts, keep_values));
    for round in 0..6 {
        for text in TEXTS {
            pair.iter_mut().for_each(|watched| watched.run(text));
        }
        // The same text has other literals then.
        pair[round % 2].strings_are(if round < 3 { "off" } else { "on" });
    }
    pair.map(|mut watched| watched.records())
}

#[test]
fn what_a_text_says_is_booked_alike_however_often_it_comes() {
    let hasher = ValueHasher::new();
    for keep_values in [false, true] {
        let alone = booked(&hasher, &Arc::default(), keep_values);
        let shared = booked(&hasher, &Arc::new(Texts::remembered()), keep_values);
        assert!(alone[0].len() > 4_000, "{} bytes", alone[0].len());
        assert!(alone == shared, "of {keep_values}");
    }
}

//! A connection as it went over the wire, and what the dialogue makes of it.

use std::collections::HashMap;

use onetrip_wire::mysql::dialogue::{Dialogue, Event, Reply, Settings, Side};
use onetrip_wire::mysql::{BinaryRow, Capabilities, ColumnType, TextRow, command};

/// A connection's bytes in the order in which they were passed on.
#[derive(Debug, Default, Clone)]
pub(crate) struct Recording(pub(crate) Vec<(Side, Vec<u8>)>);

/// What was understood of it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Understood {
    pub(crate) replies: Vec<Reply>,
    /// Texts of the units that have one, or whose prepared statement does.
    pub(crate) texts: HashMap<u64, Vec<u8>>,
    pub(crate) codes: Vec<u8>,
    pub(crate) trips: u64,
    pub(crate) capabilities: Capabilities,
    pub(crate) others: Vec<String>,
}

impl Recording {
    /// Round trips by turn-taking: the server speaks behind the client. This counts without any protocol.
    pub(crate) fn turns(&self) -> u64 {
        let pairs = self.0.windows(2);
        pairs.filter(|pair| pair[0].0 == Side::Client && pair[1].0 == Side::Server).count() as u64
    }

    /// Gives all bytes to a dialogue in pieces of at most `cut`.
    pub(crate) fn understand(&self, cut: usize) -> Understood {
        let mut understood = Understood::default();
        // Nothing is kept of rows, so that only those in one piece are looked into.
        let mut dialogue = Dialogue::new(Settings { row_bytes_max: 0, ..Settings::default() });
        let mut types = Vec::new();
        let mut columns = 0;
        for (side, bytes) in &self.0 {
            for piece in bytes.chunks(cut) {
                dialogue.take(*side, piece, |event| {
                    match &event {
                        Event::Columns(count) => {
                            columns = *count;
                            types.clear();
                        }
                        Event::Column(column) => types.push(column.column_type),
                        Event::Row(row) if row.payload.len() as u64 == row.payload_len => {
                            check_row(row.payload, row.is_binary, columns, &types);
                        }
                        _ => {}
                    }
                    understood.on(event);
                });
            }
        }
        assert_eq!(dialogue.lost(), None, "{:?}", understood.texts.values().last());
        assert_eq!(dialogue.awaited(), 0, "something was not answered: {:?}", understood.codes);
        understood.trips = dialogue.trips();
        understood.capabilities = dialogue.capabilities();
        understood
    }

    /// Understands it in several cuts, which must make no difference, and checks trips against the turns.
    pub(crate) fn check(&self) -> Understood {
        let understood = self.understand(usize::MAX);
        assert_eq!(understood.trips, self.turns(), "trips by the dialogue, and by turn-taking");
        for cut in [1, 7, 1000] {
            assert_eq!(self.understand(cut), understood, "in pieces of {cut}");
        }
        understood
    }
}

impl Understood {
    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::Command(sent) => {
                self.codes.push(sent.code);
                let prepared_by = sent.statement.and_then(|statement| statement.prepared_by);
                let text = sent.text.map(<[u8]>::to_vec).or_else(|| self.texts.get(&prepared_by?).cloned());
                self.texts.extend(text.map(|text| (sent.unit, text)));
            }
            Event::Replied(reply) => self.replies.push(reply),
            Event::Progress(_) => self.others.push("progress".to_owned()),
            Event::FileWanted(name) => self.others.push(format!("file {}", String::from_utf8_lossy(name))),
            Event::FileSent(bytes) => self.others.push(format!("{bytes} bytes")),
            Event::AuthSwitch(switch) => self.others.push(format!("{switch:?}")),
            Event::AuthData(side, data) => self.others.push(format!("{side:?} {}", data.len())),
            Event::Unasked(error) => self.others.push(format!("unasked {}", error.code)),
            Event::Lost(lost) => panic!("{lost}; so far {:?}", self.codes),
            _ => {}
        }
    }

    /// Rows of the statements whose text has this in it, fetched ones included.
    pub(crate) fn rows_of(&self, mark: &str) -> u64 {
        self.marked(mark).map(|reply| reply.rows).sum()
    }

    /// Errors of those, but for failed preparations, whose statement some drivers then send as a text.
    pub(crate) fn errors_of(&self, mark: &str) -> u64 {
        let is_error = |reply: &&Reply| {
            matches!(reply.kind, onetrip_wire::mysql::dialogue::ReplyKind::Failed(_))
                && reply.code != command::STMT_PREPARE
        };
        self.marked(mark).filter(is_error).count() as u64
    }

    fn marked(&self, mark: &str) -> impl Iterator<Item = &Reply> {
        let has_mark = move |text: &Vec<u8>| text.windows(mark.len()).any(|part| part == mark.as_bytes());
        self.replies.iter().filter(move |reply| self.texts.get(&reply.unit).is_some_and(has_mark))
    }
}

/// A row of a real server is a row here, and encodes back.
fn check_row(payload: &[u8], is_binary: bool, columns: u64, types: &[ColumnType]) {
    let mut again = Vec::new();
    if !is_binary {
        let row = TextRow::decode(payload, columns).expect("a row of texts");
        TextRow::encode(&mut again, row.values());
    } else if types.len() as u64 == columns {
        let row = BinaryRow::decode(payload, types).expect("a row of binary values");
        assert_eq!(row.values(types).count(), types.len());
        row.encode(&mut again);
    } else {
        return; // a cursor's rows, whose columns were described with another unit
    }
    assert_eq!(again, payload);
}

//! The dialogue on bytes made by hand: what no server here says, and what goes wrong.

use onetrip_wire::WireError;
use onetrip_wire::mysql::dialogue::{Dialogue, Event, Lost, LostReason, ReplyKind, Settings, Side};
use onetrip_wire::mysql::{Capabilities, Compression, OutOfSequence, command, pack, packet};
use proptest::prelude::*;

use Side::{Client, Server};

const PLAIN: u64 = 0x8_8201;
const DEPRECATE_EOF: u64 = 1 << 24;
const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x21\0\0\0\0\0\x08\0\0\0\0\0";
const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const END: &[u8] = b"\xfe\0\0\x02\0";

/// What goes wrong, payloads that do, and what is said of it.
type Case<'a> = (&'a str, &'a [(Side, u8, &'a [u8])], LostReason);

/// A conversation, payload by payload.
struct Talk {
    dialogue: Dialogue,
    told: Vec<String>,
}

impl Talk {
    fn new(settings: Settings) -> Self {
        Self { dialogue: Dialogue::new(settings), told: Vec::new() }
    }

    /// Past its login.
    fn joined(capabilities: u64) -> Self {
        let dialogue = Dialogue::joined(Settings::default(), Capabilities(capabilities));
        Self { dialogue, told: Vec::new() }
    }

    fn bytes(&mut self, side: Side, bytes: &[u8]) -> &mut Self {
        let told = &mut self.told;
        self.dialogue.take(side, bytes, |event| {
            told.push(match event {
                Event::Greeting(_) => "greeting".to_owned(),
                Event::Login(_) => "login".to_owned(),
                Event::AuthSwitch(_) => "switch".to_owned(),
                Event::AuthData(side, data) => format!("{side:?} {data:?}"),
                Event::Command(command) => format!("command {}", command.code),
                Event::CommandRest(bytes) => format!("{bytes} more"),
                Event::Replied(reply) => format!("{:?} {} rows", reply.kind, reply.rows),
                Event::Failed(error) => format!("failed {}", error.code),
                Event::Unasked(error) => format!("unasked {}", error.code),
                Event::Progress(progress) => format!("progress {}", progress.stage),
                Event::Row(row) => format!("row {}", row.payload_len),
                Event::Tls(_) => "tls".to_owned(),
                Event::Asked(bytes) => format!("asked behind {bytes}"),
                Event::Lost(_) => "lost".to_owned(),
                _ => return,
            });
        });
        self
    }

    fn payload(&mut self, side: Side, sequence: u8, payload: &[u8]) -> &mut Self {
        let mut bytes = Vec::new();
        packet(&mut bytes, sequence, |out| out.extend_from_slice(payload));
        self.bytes(side, &bytes)
    }

    fn greet(&mut self, capabilities: u64) -> &mut Self {
        let mut greeting = b"\x0a8.0.36\0\x01\0\0\0challeng\0".to_vec();
        greeting.extend_from_slice(&capabilities.to_le_bytes()[..2]);
        greeting.extend_from_slice(b"\xff\x02\0");
        greeting.extend_from_slice(&capabilities.to_le_bytes()[2..4]);
        greeting.extend_from_slice(b"\x15\0\0\0\0\0\0\0\0\0\0challenge123\0caching_sha2_password\0");
        self.payload(Server, 0, &greeting)
    }

    fn log_in(&mut self, sequence: u8, capabilities: u64) -> &mut Self {
        let mut response = (capabilities as u32).to_le_bytes().to_vec();
        response.extend_from_slice(&[0; 28]);
        response.extend_from_slice(b"me\0\x01acaching_sha2_password\0");
        response.extend((capabilities & 1 << 26 != 0).then_some(3));
        self.payload(Client, sequence, &response)
    }

    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    fn lost(&self) -> Option<LostReason> {
        self.dialogue.lost().map(|lost| lost.reason)
    }
}

#[test]
fn caching_sha2_is_one_trip_or_up_to_four_not_verified_on_8() {
    // Fast.
    let mut talk = Talk::new(Settings::default());
    talk.greet(PLAIN).log_in(1, PLAIN).payload(Server, 2, b"\x01\x03").payload(Server, 3, OK);
    assert_eq!(talk.told(), ["greeting", "login", "Server [1, 3]", "Done 0 rows"]);
    assert_eq!((talk.dialogue.trips(), talk.lost()), (1, None));
    // Full, with the server's key, behind a switch.
    let mut talk = Talk::new(Settings::default());
    talk.greet(PLAIN).log_in(1, PLAIN).payload(Server, 2, b"\xfecaching_sha2_password\0challenge\0");
    talk.payload(Client, 3, b"answer").payload(Server, 4, b"\x01\x04");
    talk.payload(Client, 5, b"\x02").payload(Server, 6, b"\x01key").payload(Client, 7, b"secret");
    talk.payload(Server, 8, OK).payload(Client, 0, b"\x0e").payload(Server, 1, OK);
    assert_eq!(talk.told().last().map(String::as_str), Some("Done 0 rows"));
    assert_eq!((talk.dialogue.trips(), talk.dialogue.awaited(), talk.lost()), (5, 0, None));
    // The client must not speak before it is asked.
    let mut talk = Talk::new(Settings::default());
    talk.greet(PLAIN).log_in(1, PLAIN).payload(Client, 2, b"\x0e");
    assert_eq!(talk.lost(), Some(LostReason::OutOfTurn));
}

#[test]
fn a_question_of_the_servers_is_told_with_the_bytes_so_far() {
    let mut talk = Talk::new(Settings::default());
    talk.greet(PLAIN).log_in(1, PLAIN).payload(Server, 2, b"\x01\x04").payload(Client, 3, b"\x02");
    talk.payload(Server, 4, b"\x01key").payload(Client, 5, b"secret").payload(Server, 6, OK);
    assert_eq!(
        talk.told(),
        [
            "greeting",
            "login",
            "Server [1, 4]",
            "asked behind 6",
            "Client [2]",
            "Server [1, 107, 101, 121]",
            "asked behind 14",
            "Client [115, 101, 99, 114, 101, 116]",
            "Done 0 rows"
        ]
    );
    let mut talk = Talk::joined(PLAIN);
    talk.payload(Client, 0, b"\x03LOAD").payload(Server, 1, b"\xfbname");
    assert!(!talk.dialogue.is_inside(Client));
    talk.bytes(Client, b"\x02\0");
    assert!(talk.dialogue.is_inside(Client) && !talk.dialogue.is_inside(Server));
    talk.bytes(Client, b"\0\x02ab").payload(Client, 3, b"").payload(Server, 4, OK);
    assert_eq!(talk.told(), ["command 3", "asked behind 9", "Done 0 rows"]);
}

#[test]
fn tls_ends_it_unless_the_bytes_come_decrypted() {
    let request = [&0x8_8a01u32.to_le_bytes()[..], &[0; 28]].concat();
    let mut talk = Talk::new(Settings::default());
    talk.greet(PLAIN | 0x800)
        .payload(Client, 1, &request)
        .bytes(Client, b"\x16\x03\x01garbage")
        .bytes(Server, b"\x16");
    assert_eq!((talk.told(), talk.lost()), (vec!["greeting".to_owned(), "tls".to_owned()], None));
    let mut talk = Talk::new(Settings { is_decrypted: true, ..Settings::default() });
    talk.greet(PLAIN | 0x800).payload(Client, 1, &request).log_in(2, PLAIN | 0x800).payload(Server, 3, OK);
    assert_eq!(talk.told(), ["greeting", "tls", "login", "Done 0 rows"]);
}

#[test]
fn what_follows_a_compressed_login_is_compressed_zstd_not_verified_on_8() {
    for (flag, compression) in [(1 << 5, Compression::Zlib), (1 << 26, Compression::Zstd)] {
        let mut talk = Talk::new(Settings::default());
        talk.greet(PLAIN | flag).log_in(1, PLAIN | flag).payload(Server, 2, OK);
        let mut plain = Vec::new();
        packet(&mut plain, 0, |out| out.extend_from_slice(&b"\x03SELECT 'a' ".repeat(9)));
        let mut packed = Vec::new();
        pack(&mut packed, compression, 1, 0, &plain);
        talk.bytes(Client, &packed);
        let mut plain = Vec::new();
        for (sequence, payload) in
            [&b"\x01"[..], COLUMN, END, b"\x01x", b"\x01x", b"\x01x", END].into_iter().enumerate()
        {
            packet(&mut plain, 77 + sequence as u8, |out| out.extend_from_slice(payload));
        }
        packed.clear();
        // Cut where no packet ends.
        let (first, second) = plain.split_at(9);
        let next = pack(&mut packed, compression, 1, 1, first);
        pack(&mut packed, compression, 1, next, second);
        talk.bytes(Server, &packed);
        assert_eq!(talk.told()[3..], ["command 3", "row 2", "row 2", "row 2", "Rows 3 rows"]);
        talk.bytes(Client, b"\x03\0\0\0\x09\0\0abc");
        assert!(matches!(talk.lost(), Some(LostReason::Compression(_))));
    }
}

#[test]
fn definitions_may_be_left_out_not_verified_on_8() {
    for (flag, eof) in [(1u64 << 25, true), (1 << 25, false), (1 << 36, true), (1 << 36, false)] {
        let mut talk = Talk::joined(PLAIN | flag | if eof { 0 } else { DEPRECATE_EOF });
        talk.payload(Client, 0, b"\x03SELECT").payload(Server, 1, b"\x02\0");
        let mut sequence = 2;
        if eof {
            talk.payload(Server, sequence, END);
            sequence += 1;
        }
        talk.payload(Server, sequence, b"\x01x\xfb");
        let end = if eof { END } else { b"\xfe\0\0\x02\0\0\0" };
        talk.payload(Server, sequence + 1, end);
        assert_eq!(talk.told(), ["command 3", "row 3", "Rows 1 rows"], "{flag:#x} {eof}");
    }
    // Nor need those of a prepared statement follow.
    let mut talk = Talk::joined(PLAIN | 1 << 25);
    talk.payload(Client, 0, b"\x16SELECT ?").payload(Server, 1, b"\0\x01\0\0\0\x01\0\x01\0\0\0\0\0");
    assert_eq!(talk.told(), ["command 22", "Prepared 0 rows"]);
}

#[test]
fn attributes_stand_before_the_text_not_verified_on_8() {
    let mut dialogue =
        Dialogue::joined(Settings::default(), Capabilities(PLAIN) | Capabilities::QUERY_ATTRIBUTES);
    let mut bytes = Vec::new();
    packet(&mut bytes, 0, |out| out.extend_from_slice(b"\x03\x01\x01\0\x01\xfe\0\x01a\x011DO 1"));
    packet(&mut bytes, 0, |out| out.extend_from_slice(b"\x03\0\x01DO 2"));
    packet(&mut bytes, 0, |out| out.extend_from_slice(b"\x03\x01\x01broken"));
    let mut texts = Vec::new();
    dialogue.take(Client, &bytes, |event| {
        if let Event::Command(command) = event {
            texts.push(command.text.map(<[u8]>::to_vec));
        }
    });
    assert_eq!(texts, [Some(b"DO 1".to_vec()), Some(b"DO 2".to_vec()), None]);
    assert_eq!(dialogue.awaited(), 3);
}

#[test]
fn what_a_login_that_was_not_seen_has_settled_shows_as_it_is_used() {
    const OK_END: &[u8] = b"\xfe\0\0\x02\0\0\0";
    let extended = |more: &[u8]| [&COLUMN[..10], &[more.len() as u8], more, &COLUMN[10..]].concat();
    let columns = [COLUMN.to_vec(), extended(b""), extended(b"\0\x04uuid"), extended(b"\0\x0alinestring")];
    for ends_by_ok in [false, true] {
        for column in &columns {
            let mut talk = Talk { dialogue: Dialogue::supposed(Settings::default()), told: Vec::new() };
            for is_cached in [false, true] {
                let mut number = 1;
                let mut say = |talk: &mut Talk, payload: &[u8]| {
                    talk.payload(Server, number, payload);
                    number += 1;
                };
                talk.payload(Client, 0, b"\x03\0\x01SELECT 1");
                say(&mut talk, if is_cached { b"\x01\x00" } else { b"\x01" });
                if !is_cached {
                    say(&mut talk, column);
                }
                if !ends_by_ok {
                    say(&mut talk, END);
                }
                say(&mut talk, b"\x011");
                say(&mut talk, if ends_by_ok { OK_END } else { END });
                let case = format!("{ends_by_ok} {column:?} {is_cached}");
                assert_eq!(talk.told(), ["command 3", "row 2", "Rows 1 rows"], "{case}");
            }
            let capabilities = talk.dialogue.capabilities();
            assert_eq!(capabilities.has(Capabilities::DEPRECATE_EOF), ends_by_ok);
            assert!(capabilities.has(Capabilities::QUERY_ATTRIBUTES));
            let is_extended = capabilities.has(Capabilities::MARIADB_EXTENDED_METADATA);
            assert_eq!(is_extended, column.as_slice() != COLUMN, "{column:?}");
        }
    }
}

#[test]
fn a_compressed_connection_is_joined_between_its_packets() {
    let mut talk = Talk::joined(PLAIN | Capabilities::COMPRESS.0);
    let mut bytes = Vec::new();
    pack(&mut bytes, Compression::Zlib, 1, 0, b"\x01\0\0\0\x0e");
    talk.bytes(Client, &bytes);
    assert_eq!(talk.told(), ["command 14"]);
}

#[test]
fn progress_goes_on_and_an_unasked_error_answers_nothing() {
    let progress = b"\xff\xff\xff\x01\x02\x03\x10\x27\0\x04copy";
    let mut talk = Talk::joined(PLAIN);
    talk.payload(Client, 0, b"\x03ALTER")
        .payload(Server, 1, progress)
        .payload(Server, 2, progress)
        .payload(Server, 3, OK);
    talk.payload(Server, 0, b"\xff\x87\x07#70100Connection was killed");
    assert_eq!(talk.told(), ["command 3", "progress 2", "progress 2", "Done 0 rows", "unasked 1927"]);
    let mut talk = Talk::new(Settings::default());
    talk.payload(Server, 0, b"\xff\x10\x04Too many connections").bytes(Server, b"what then?");
    assert_eq!((talk.told(), talk.lost()), (vec!["unasked 1040".to_owned()], None));
}

#[test]
fn what_is_not_understood_is_said_with_its_place() {
    let cases: [Case<'_>; 9] = [
        ("nothing was asked", &[(Server, 0, OK)], LostReason::NothingAsked(0)),
        (
            "a command has another number",
            &[(Client, 1, b"\x0e")],
            OutOfSequence { expected: 0, found: 1 }.into(),
        ),
        (
            "an answer has",
            &[(Client, 0, b"\x0e"), (Server, 2, OK)],
            OutOfSequence { expected: 1, found: 2 }.into(),
        ),
        ("a command is empty", &[(Client, 0, b"")], WireError::Truncated.into()),
        ("an answer is cut", &[(Client, 0, b"\x0e"), (Server, 1, b"\0\0")], WireError::Truncated.into()),
        (
            "an answer is of another sort",
            &[(Client, 0, b"\x03x"), (Server, 1, b"\xfe\0\0\0\0")],
            LostReason::UnexpectedAnswer { code: command::QUERY, first: 0xfe },
        ),
        (
            "a binary row begins otherwise",
            &[(Client, 0, b"\x1c\0\0\0\0\x01\0\0\0"), (Server, 1, b"\x05")],
            LostReason::UnexpectedAnswer { code: command::STMT_FETCH, first: 5 },
        ),
        (
            "a file is wanted amid commands",
            &[(Client, 0, b"\x03x"), (Client, 0, b"\x03y"), (Server, 1, b"\xfbname")],
            LostReason::FileBehindCommands,
        ),
        (
            "no column",
            &[(Client, 0, b"\x03x"), (Server, 1, b"\xfc\x01\0")],
            WireError::OverlongInteger(1).into(),
        ),
    ];
    for (name, payloads, expected) in cases {
        let mut talk = Talk::joined(PLAIN);
        let mut given = [0u64; 2];
        for (side, sequence, payload) in payloads {
            talk.payload(*side, *sequence, payload);
            given[*side as usize] += payload.len() as u64 + 4;
        }
        let side = payloads.last().map_or(Client, |payload| payload.0);
        let lost = Lost { side, offset: given[side as usize], reason: expected };
        assert_eq!(talk.dialogue.lost(), Some(lost), "{name}");
        talk.told();
        talk.payload(Client, 0, b"\x0e").payload(Server, 1, OK);
        assert!(talk.told().is_empty(), "{name}: nothing is told behind it");
    }
}

#[test]
fn memory_is_bounded_and_says_so() {
    let settings =
        Settings { awaited_max: 2, control_bytes_max: 100, command_bytes_max: 10, ..Settings::default() };
    let mut dialogue = Dialogue::joined(settings, Capabilities(PLAIN));
    let mut long = Vec::new();
    packet(&mut long, 0, |out| out.extend_from_slice(&[&b"\x03"[..], &[b'x'; 5000]].concat()));
    let mut seen = Vec::new();
    for piece in long.chunks(8) {
        dialogue.take(Client, piece, |event| {
            if let Event::Command(command) = event {
                seen.push((command.payload_len, command.payload.len(), command.text.map(<[u8]>::len)));
            }
        });
    }
    assert_eq!(seen, [(5001, 10, Some(9))]);
    let mut lost = None;
    for _ in 0..2 {
        dialogue.take(Client, b"\x01\0\0\0\x0e", |event| {
            lost = matches!(event, Event::Lost(_)).then_some(()).or(lost)
        });
    }
    assert!(lost.is_some());
    assert_eq!(dialogue.lost().map(|lost| lost.reason), Some(LostReason::TooManyAwaited(2)));

    let mut dialogue = Dialogue::joined(settings, Capabilities(PLAIN));
    dialogue.take(Client, b"\x01\0\0\0\x0e", |_| ());
    let mut answer = Vec::new();
    packet(&mut answer, 1, |out| out.extend_from_slice(&[OK, &[b'x'; 500]].concat()));
    for piece in answer.chunks(100) {
        dialogue.take(Server, piece, |_| ());
    }
    assert_eq!(dialogue.lost().map(|lost| lost.reason), Some(LostReason::TooLong(507)));
}

#[test]
fn a_row_that_begins_like_an_end_is_told_by_its_length() {
    let mut talk = Talk::joined(PLAIN | DEPRECATE_EOF);
    talk.payload(Client, 0, b"\x03SELECT").payload(Server, 1, b"\x01").payload(Server, 2, COLUMN);
    let mut row = Vec::new();
    onetrip_wire::mysql::put_lenenc_bytes(&mut row, &vec![b'x'; 17 << 20]);
    assert_eq!(row[0], 0xfe);
    talk.payload(Server, 3, &row).payload(Server, 5, b"\xfe\0\0\x02\0\0\0");
    assert_eq!(talk.told()[1..], [format!("row {}", (17 << 20) + 9), "Rows 1 rows".to_owned()]);
}

#[test]
fn a_kind_of_reply_is_what_came() {
    let mut dialogue = Dialogue::joined(Settings::default(), Capabilities(PLAIN));
    let mut kinds = Vec::new();
    let mut both = |side, bytes: &[u8]| {
        dialogue.take(side, bytes, |event| {
            if let Event::Replied(reply) = event {
                kinds.push((reply.kind, reply.results));
            }
        });
    };
    both(Client, b"\x02\0\0\0\x03a\x02\0\0\0\x03b\x01\0\0\0\x09");
    both(Server, b"\x07\0\0\x01\0\x05\0\x0a\0\0\0\x07\0\0\x02\0\x06\0\x02\0\0\0");
    both(Server, b"\x09\0\0\x01\xff\x28\x04#42000\x04\0\0\x01Up 1");
    assert_eq!(kinds, [(ReplyKind::Done, 2), (ReplyKind::Failed(1064), 0), (ReplyKind::Text, 0)]);
}

/// As MySQL 5.6 sends them, and MySQL 8 to a client that knows EOF packets.
#[test]
fn the_ok_of_a_call_follows_the_values_of_its_parameters() {
    let mut talk = Talk::joined(PLAIN);
    talk.payload(Client, 0, b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\x03\0\x05\0\0\0");
    talk.payload(Server, 1, b"\x01").payload(Server, 2, COLUMN).payload(Server, 3, b"\xfe\0\0\x0a\x10");
    talk.payload(Server, 4, b"\0\0\x05\0\0\0").payload(Server, 5, END);
    assert_eq!(talk.told(), ["command 23", "row 6"]);
    talk.payload(Server, 6, OK);
    assert_eq!(talk.told(), ["Rows 1 rows"]);
    talk.payload(Client, 0, b"\x0e").payload(Server, 1, OK);
    assert_eq!((talk.dialogue.awaited(), talk.lost()), (0, None));
}

/// As both servers answer a command that is longer than `max_allowed_packet`.
#[test]
fn a_command_may_be_answered_before_all_of_it_has_come() {
    let mut bytes = Vec::new();
    packet(&mut bytes, 0, |out| out.extend_from_slice(b"\x03SELECT 'too long'"));
    let mut talk = Talk::joined(PLAIN);
    talk.bytes(Client, &bytes[..12]).payload(Server, 1, b"\xff\x81\x04#08S01too long");
    assert_eq!(talk.told(), ["command 3", "failed 1153", "Failed(1153) 0 rows"]);
    talk.bytes(Client, &bytes[12..]).payload(Client, 0, b"\x0e").payload(Server, 1, OK);
    assert_eq!(talk.told(), ["10 more", "command 14", "Done 0 rows"]);
    assert_eq!((talk.dialogue.trips(), talk.dialogue.awaited(), talk.lost()), (2, 0, None));
    // Nobody waits for an answer to it, so that the error is about something else.
    let mut talk = Talk::joined(PLAIN);
    talk.bytes(Client, b"\x09\0\0\0\x18\x01\0").payload(Server, 0, b"\xff\x81\x04#08S01too long");
    assert_eq!(talk.told(), ["unasked 1153"]);
}

/// What both sides of a statement say: its command, and its answer with these payloads where rows are.
fn with_rows(is_binary: bool, rows: &[Vec<u8>], wrong_number: Option<usize>) -> (Vec<u8>, Vec<u8>) {
    let (mut asked, mut answer) = (Vec::new(), Vec::new());
    let command = if is_binary { &b"\x17\x01\0\0\0\0\x01\0\0\0"[..] } else { b"\x03SELECT a" };
    packet(&mut asked, 0, |out| out.extend_from_slice(command));
    let mut sequence = 1;
    for payload in [b"\x01", COLUMN, END] {
        sequence = packet(&mut answer, sequence, |out| out.extend_from_slice(payload));
    }
    for (place, payload) in rows.iter().map(Vec::as_slice).chain([END]).enumerate() {
        let number = sequence.wrapping_add(u8::from(wrong_number == Some(place)));
        sequence = packet(&mut answer, number, |out| out.extend_from_slice(payload));
    }
    (asked, answer)
}

proptest! {
    #[test]
    fn rows_mean_the_same_whole_and_in_pieces(
        rows in proptest::collection::vec(
            (prop_oneof![Just(0), Just(1), Just(0xfb), Just(0xfe), Just(0xff)], proptest::collection::vec(any::<u8>(), 0..9)),
            0..300,
        ),
        plain in 0..300_usize,
        is_binary: bool,
        wrong_number in proptest::option::of(0..300_usize),
        piece in 1..50_usize,
    ) {
        // Most of what comes are rows; what is none is among them once, if at all.
        let rows: Vec<Vec<u8>> = rows
            .into_iter()
            .enumerate()
            .map(|(place, (first, rest))| [&[if place == plain { first } else { 0 }][..], &rest].concat())
            .collect();
        let (asked, answer) = with_rows(is_binary, &rows, wrong_number);
        let told = |piece: usize| {
            let mut dialogue = Dialogue::joined(Settings::default(), Capabilities(PLAIN));
            let mut told = Vec::new();
            dialogue.take(Client, &asked, |event| told.push(format!("{event:?}")));
            answer.chunks(piece).for_each(|piece| dialogue.take(Server, piece, |event| told.push(format!("{event:?}"))));
            told
        };
        prop_assert_eq!(told(answer.len()), told(piece));
    }
}

//! Large values: what is fetched along, what reading costs in trips, and that every byte is right.

mod common;

use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};

use common::{Server, Turns};
use onetrip_client::blocking::{Client, Lob, LobReader, LobSource};
use onetrip_client::core::Prefetch;

fn content(seed: u32, length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) ^ seed) as u8).collect()
}

fn read_all(client: &mut Client, lob: &mut Lob<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    client.read_lob(lob).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_thousand_large_objects_are_two_trips() {
    let turns = Turns::before(Server::shared());
    let mut client = Client::connect(&Server::shared().url_at(turns.port)).unwrap();
    client
        .script(
            "CREATE TABLE lobs AS SELECT id, lo_from_bytea(0, decode(repeat(md5(id::text), 125), 'escape')) AS object
             FROM generate_series(1, 1000) AS id",
        )
        .unwrap();
    let trips = turns.of(|| {
        let mut oids: Vec<u32> = Vec::new();
        let mut rows = client.query("SELECT object FROM lobs ORDER BY id", &[]).unwrap();
        while let Some(row) = rows.next_row().unwrap() {
            oids.push(row.get(0).unwrap());
        }
        let sources: Vec<_> = oids.iter().map(|oid| (LobSource::Object(*oid), None)).collect();
        let mut lobs = client.prefetch(&sources, None).unwrap();
        let memory: usize = lobs.iter().map(|lob| lob.memory()).sum();
        assert!(memory <= client.core().limits().read_ahead, "{memory} bytes");
        for lob in &mut lobs {
            assert!(lob.is_whole() && lob.length() == Some(4000));
            assert_eq!(read_all(&mut client, lob).len(), 4000);
            assert_eq!(lob.memory(), 0, "what was read is freed");
        }
    });
    assert!(trips <= 5, "{trips} trips");
}

#[test]
fn every_prefetch_reads_the_same() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    let wanted = content(7, 1_000_003);
    let oid = client.create_large_object().unwrap();
    let mut writer = client.write_large_object(oid, 0).unwrap();
    writer.write_all(&wanted).unwrap();
    assert_eq!(writer.finish().unwrap(), wanted.len() as u64);
    client.script("CREATE TEMP TABLE page (id int, body bytea, words text)").unwrap();
    client
        .execute("INSERT INTO page VALUES (1, $1, $2)", &[&wanted, &"schöne Wörter ".repeat(50_000)])
        .unwrap();
    let body = LobSource::Value { read: "SELECT substr(body, $2, $3) FROM page WHERE id = $1", key: &1 };
    let words = LobSource::Value { read: "SELECT substr(words, $2, $3) FROM page WHERE id = $1", key: &1 };
    let levels =
        [Prefetch::Locator, Prefetch::Length, Prefetch::First(1), Prefetch::First(1000), Prefetch::Auto];
    for level in levels {
        for source in [LobSource::Object(oid), body] {
            let lobs = client.prefetch(&[(source, None)], Some(level)).unwrap();
            for mut lob in lobs {
                match level {
                    Prefetch::Locator => assert_eq!((lob.length(), lob.prefetched().len()), (None, 0)),
                    Prefetch::First(size) => assert_eq!(lob.prefetched(), &wanted[..size as usize]),
                    Prefetch::Auto => assert!(lob.is_whole()),
                    Prefetch::Length => {}
                }
                assert!(read_all(&mut client, &mut lob) == wanted, "{level:?} {source:?}");
            }
        }
        let mut lob = client.prefetch(&[(words, Some(level))], None).unwrap().remove(0);
        if let Prefetch::First(1000) = level {
            let text = std::str::from_utf8(lob.prefetched()).unwrap();
            assert_eq!(text.chars().count(), 1000, "of text, characters are counted");
        }
        assert_eq!(
            String::from_utf8(read_all(&mut client, &mut lob)).unwrap(),
            "schöne Wörter ".repeat(50_000)
        );
    }
    let known = client.prefetch(&[(LobSource::Object(oid), Some(Prefetch::Length))], None).unwrap().remove(0);
    assert_eq!((known.length(), known.prefetched().len()), (Some(1_000_003), 0));
}

#[test]
fn a_large_object_that_is_not_there_is_an_error_and_writing_is_all_or_nothing() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    let error = client.prefetch(&[(LobSource::Object(4_000_000_000), None)], None).unwrap_err();
    assert_eq!(error.sqlstate(), Some("42704"));
    let mut writer = client.write_large_object(4_000_000_000, 0).unwrap();
    writer.write_all(&content(1, 600_000)).unwrap();
    assert_eq!(writer.finish().unwrap_err().sqlstate(), Some("42704"));
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
}

#[test]
fn a_reader_goes_elsewhere_without_a_trip() {
    let turns = Turns::before(Server::shared());
    let mut client = Client::connect(&Server::shared().url_at(turns.port)).unwrap();
    let wanted = content(5, 3_000_001);
    let oid = client.create_large_object().unwrap();
    let mut writer = client.write_large_object(oid, 0).unwrap();
    writer.write_all(&wanted).unwrap();
    writer.finish().unwrap();
    let mut lob = Lob::new(LobSource::Object(oid));
    let mut reader = client.read_lob(&mut lob);
    assert_eq!(reader.seek(SeekFrom::End(0)).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(reader.seek(SeekFrom::Current(-1)).unwrap_err().kind(), ErrorKind::InvalidInput);
    let mut part = vec![0; 1000];
    let mut check = |reader: &mut LobReader<'_, '_>, to: SeekFrom, at: usize| {
        assert_eq!(reader.seek(to).unwrap(), at as u64, "{to:?}");
        reader.read_exact(&mut part).unwrap();
        assert!(part == wanted[at..at + 1000], "{to:?}");
        assert_eq!(reader.stream_position().unwrap(), at as u64 + 1000);
    };
    check(&mut reader, SeekFrom::Start(0), 0);
    let trips = turns.of(|| {
        check(&mut reader, SeekFrom::Current(-500), 500);
        check(&mut reader, SeekFrom::Start(60_000), 60_000);
        check(&mut reader, SeekFrom::Start(100_000), 100_000);
        for at in (100_000..2_900_000).step_by(200_000) {
            check(&mut reader, SeekFrom::Start(at), at as usize);
        }
    });
    assert!(trips <= 3, "{trips} trips: pieces that are on their way are not asked for again");
    check(&mut reader, SeekFrom::Start(10), 10);
    check(&mut reader, SeekFrom::End(-1000), 2_999_001);
    assert_eq!(reader.seek(SeekFrom::End(7)).unwrap(), 3_000_008);
    assert!(reader.fill().unwrap().is_empty());
    check(&mut reader, SeekFrom::Start(2_000_000), 2_000_000);
    reader.seek(SeekFrom::Current(300_000)).unwrap();
    drop(reader);
    client.execute("SELECT 1", &[]).unwrap();
    let mut rest = Vec::new();
    client.read_lob(&mut lob).read_to_end(&mut rest).unwrap();
    assert!(rest == wanted[2_301_000..], "where it was left");
}

#[test]
fn text_is_sought_by_characters_and_a_value_that_is_measured_is_not_read_behind_its_end() {
    let turns = Turns::before(Server::shared());
    let mut client = Client::connect(&Server::shared().url_at(turns.port)).unwrap();
    let words = "schöne Wörter 世界 🙂 ".repeat(30_000);
    client.script("CREATE TEMP TABLE page (id int, words text)").unwrap();
    client.execute("INSERT INTO page VALUES (1, $1)", &[&words]).unwrap();
    let read = "SELECT substr(words, $2, $3) FROM page WHERE id = $1";
    let length = "SELECT length(words) FROM page WHERE id = $1";
    let source = LobSource::Measured { read, length, key: &1 };
    let characters = words.chars().count();
    let mut lob = client.prefetch(&[(source, None)], Some(Prefetch::Length)).unwrap().remove(0);
    assert_eq!((lob.length(), lob.memory()), (Some(characters as u64), 0));
    let mut reader = client.read_lob(&mut lob);
    for at in [0, 5, 4, 70_000, 200_000, 100_000, 65_536] {
        assert_eq!(reader.seek(SeekFrom::Start(at)).unwrap(), at);
        let wanted: String = words.chars().skip(at as usize).take(10).collect();
        let mut part = vec![0; wanted.len()];
        reader.read_exact(&mut part).unwrap();
        assert_eq!(
            (std::str::from_utf8(&part).unwrap(), reader.stream_position().unwrap()),
            (&*wanted, at + 10)
        );
    }
    drop(reader);
    for source in [source, LobSource::Value { read, key: &1 }] {
        let mut lob = Lob::new(source);
        let trips = turns.of(|| assert!(read_all(&mut client, &mut lob) == words.as_bytes()));
        assert!(trips <= 4, "{trips} trips, {source:?}");
        assert_eq!(lob.length(), Some(characters as u64), "{source:?}");
    }
    let mut missing = client
        .prefetch(&[(LobSource::Measured { read, length, key: &2 }, None)], Some(Prefetch::Length))
        .unwrap()
        .remove(0);
    assert_eq!((missing.length(), read_all(&mut client, &mut missing).len()), (None, 0));
}

#[cfg(feature = "aio")]
mod awaiting {
    use std::time::Duration;

    use onetrip_client::aio::{Client, Lob};
    use tokio::time::timeout;

    use super::*;

    fn run(test: impl AsyncFnOnce(Client)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::connect(&Server::shared().url()).await.unwrap();
            test(client).await;
        });
    }

    async fn read_all(client: &mut Client, lob: &mut Lob<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let count = client.read_lob(lob).read_to_end(&mut bytes).await.unwrap();
        assert_eq!(count, bytes.len());
        bytes
    }

    async fn object(client: &mut Client, content: &[u8]) -> u32 {
        let oid = client.create_large_object().await.unwrap();
        let mut writer = client.write_large_object(oid, 0).await.unwrap();
        for piece in content.chunks(100_000) {
            writer.write(piece).await.unwrap();
        }
        assert_eq!(writer.finish().await.unwrap(), content.len() as u64);
        oid
    }

    #[test]
    fn every_prefetch_reads_the_same() {
        run(async |mut client| {
            let wanted = content(3, 700_001);
            let oid = object(&mut client, &wanted).await;
            client.script("CREATE TEMP TABLE page (id int, words text)").await.unwrap();
            let words = "schöne Wörter ".repeat(20_000);
            client.execute("INSERT INTO page VALUES (1, $1)", &[&words]).await.unwrap();
            let read = "SELECT substr(words, $2, $3) FROM page WHERE id = $1";
            for level in [
                Prefetch::Locator,
                Prefetch::Length,
                Prefetch::First(1),
                Prefetch::First(999),
                Prefetch::Auto,
            ] {
                let sources =
                    [(LobSource::Object(oid), None), (LobSource::Value { read, key: &1 }, Some(level))];
                let mut lobs = client.prefetch(&sources, Some(level)).await.unwrap();
                assert!(read_all(&mut client, &mut lobs[0]).await == wanted, "{level:?}");
                assert!(read_all(&mut client, &mut lobs[1]).await == words.as_bytes(), "{level:?}");
            }
            let missing =
                client.prefetch(&[(LobSource::Object(4_000_000_000), None)], None).await.unwrap_err();
            assert_eq!(missing.sqlstate(), Some("42704"));
            let mut writer = client.write_large_object(4_000_000_000, 0).await.unwrap();
            writer.write(&wanted).await.unwrap();
            assert_eq!(writer.finish().await.unwrap_err().sqlstate(), Some("42704"));
            let mut missing = Lob::new(LobSource::Object(4_000_000_000));
            let error = client.read_lob(&mut missing).fill().await.map(<[u8]>::len).unwrap_err();
            assert_eq!(error.sqlstate(), Some("42704"));
            assert_eq!(client.execute("SELECT 1", &[]).await.unwrap(), 1);
        });
    }

    #[test]
    fn a_thousand_large_objects_are_one_trip_after_their_names() {
        run(async |_| {
            let turns = Turns::before(Server::shared());
            let mut client = Client::connect(&Server::shared().url_at(turns.port)).await.unwrap();
            let make = "SELECT lo_from_bytea(0, decode(repeat(md5(id::text), 125), 'escape')) FROM generate_series(1, 1000) AS id";
            let mut oids: Vec<u32> = Vec::new();
            let mut rows = client.query(make, &[]).await.unwrap();
            while let Some(row) = rows.next_row().await.unwrap() {
                oids.push(row.get(0).unwrap());
            }
            let before = client.core().trips();
            let sources: Vec<_> = oids.iter().map(|oid| (LobSource::Object(*oid), None)).collect();
            let mut lobs = client.prefetch(&sources, None).await.unwrap();
            for lob in &mut lobs {
                assert_eq!(read_all(&mut client, lob).await.len(), 4000);
                assert_eq!(lob.memory(), 0, "what was read is freed");
            }
            assert_eq!(client.core().trips() - before, 1);
        });
    }

    #[test]
    fn a_dropped_wait_loses_no_byte_and_another_call_may_come_between() {
        run(async |_| {
            let far = Turns::far_from(Server::shared(), Duration::from_millis(3));
            let mut client = Client::connect(&Server::shared().url_at(far.port)).await.unwrap();
            let wanted = content(9, 600_007);
            let oid = object(&mut client, &wanted).await;
            let mut lob = client
                .prefetch(&[(LobSource::Object(oid), None)], Some(Prefetch::First(10)))
                .await
                .unwrap()
                .remove(0);
            let (mut read, mut dropped) = (Vec::new(), 0);
            while read.len() < wanted.len() {
                let until = (read.len() + 200_000).min(wanted.len());
                let mut reader = client.read_lob(&mut lob);
                while read.len() < until {
                    let Ok(bytes) = timeout(Duration::from_millis(1), reader.fill()).await else {
                        dropped += 1;
                        continue;
                    };
                    let bytes = bytes.unwrap();
                    let count = bytes.len().min(50_000);
                    read.extend_from_slice(&bytes[..count]);
                    reader.consume(count);
                }
                drop(reader);
                assert_eq!(client.execute("SELECT 1", &[]).await.unwrap(), 1);
            }
            assert!(read == wanted);
            assert!(dropped > 0, "nothing was waited for");
            assert!(client.read_lob(&mut lob).fill().await.unwrap().is_empty());
        });
    }

    #[test]
    fn a_reader_goes_elsewhere_while_pieces_are_on_their_way() {
        run(async |mut client| {
            let wanted = content(4, 900_001);
            let oid = object(&mut client, &wanted).await;
            let mut lob = Lob::new(LobSource::Object(oid));
            let mut reader = client.read_lob(&mut lob);
            for at in [0, 10, 70_000, 250_000, 20, 899_000, 65_536] {
                assert_eq!(reader.seek(SeekFrom::Start(at)).unwrap(), at);
                let bytes = reader.fill().await.unwrap();
                let count = bytes.len();
                assert!(bytes == &wanted[at as usize..at as usize + count], "{at}");
                reader.consume(count.min(100));
                assert_eq!(reader.seek(SeekFrom::Current(0)).unwrap(), at + count.min(100) as u64);
            }
            reader.seek(SeekFrom::End(-3)).unwrap();
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).await.unwrap();
            assert!(rest == wanted[899_998..]);
        });
    }
}

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// Longest secret that any version has, in bytes.
const SECRET_BYTES_MAX: usize = 48;
/// The other part of the line: a client's random number.
pub(super) const RANDOM_BYTES: usize = 32;

/// What a client's key log says of its TLS sessions: the format that `SSLKEYLOGFILE` has made common (RFC 9850).
#[derive(Default)]
pub struct KeyLog {
    sessions: HashMap<[u8; RANDOM_BYTES], Secrets, RandomState>,
}

/// The secrets of one session.
#[derive(Default, Clone)]
pub(super) struct Secrets {
    /// The master secret of TLS 1.2.
    pub(super) master: Option<Box<[u8]>>,
    /// Secrets of TLS 1.3, of client and server each.
    pub(super) handshake: [Option<Box<[u8]>>; 2],
    pub(super) traffic: [Option<Box<[u8]>>; 2],
}

/// A line of a key log that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: {reason}; a key log has lines such as CLIENT_RANDOM, 64 hexadecimal digits, and a secret"
)]
pub struct KeyLogError {
    /// Its number, from one.
    pub line: usize,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl std::fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Secrets are shown nowhere.
        f.debug_struct("KeyLog").field("sessions", &self.sessions.len()).finish_non_exhaustive()
    }
}

impl KeyLog {
    /// Reads a key log. Comments, empty lines and labels of other secrets are passed over.
    ///
    /// # Errors
    ///
    /// A line that is no line of a key log. A last line without its end is one that is being written, and is passed over.
    pub fn parse(text: &[u8]) -> Result<Self, KeyLogError> {
        let mut log = Self::default();
        let whole = match text.last() {
            Some(b'\n') | None => text.len(),
            Some(_) => text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1),
        };
        for (place, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let is_last = line.as_ptr() as usize - text.as_ptr() as usize >= whole;
            let failed = |reason| KeyLogError { line: place + 1, reason };
            match log.line(line) {
                Err(_) if is_last => {}
                done => done.map_err(failed)?,
            }
        }
        Ok(log)
    }

    /// Sessions that it has secrets of.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn secrets(&self, random: &[u8; RANDOM_BYTES]) -> Option<&Secrets> {
        self.sessions.get(random)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let line = line.trim_ascii();
        if line.is_empty() || line[0] == b'#' {
            return Ok(());
        }
        let mut words = line.split(u8::is_ascii_whitespace);
        let (Some(label), Some(random), Some(secret), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("it does not have three words");
        };
        let is_label =
            label.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_');
        if !is_label {
            return Err("its first word is no label");
        }
        let place: fn(&mut Secrets) -> &mut Option<Box<[u8]>> = match label {
            b"CLIENT_RANDOM" => |secrets| &mut secrets.master,
            b"CLIENT_HANDSHAKE_TRAFFIC_SECRET" => |secrets| &mut secrets.handshake[0],
            b"SERVER_HANDSHAKE_TRAFFIC_SECRET" => |secrets| &mut secrets.handshake[1],
            b"CLIENT_TRAFFIC_SECRET_0" => |secrets| &mut secrets.traffic[0],
            b"SERVER_TRAFFIC_SECRET_0" => |secrets| &mut secrets.traffic[1],
            _ => return Ok(()), // other secrets
        };
        let random = hexadecimal(random).ok_or("its second word is not hexadecimal")?;
        let secret = hexadecimal(secret).ok_or("its third word is not hexadecimal")?;
        let random = <[u8; RANDOM_BYTES]>::try_from(&*random)
            .map_err(|_| "its second word does not have 64 digits")?;
        if secret.is_empty() || secret.len() > SECRET_BYTES_MAX {
            return Err("its secret is longer than any");
        }
        *place(self.sessions.entry(random).or_default()) = Some(secret);
        Ok(())
    }
}

fn hexadecimal(digits: &[u8]) -> Option<Box<[u8]>> {
    if digits.len() % 2 != 0 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    digits.chunks_exact(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_log_gives_the_secrets_of_its_sessions() {
        let random = "0f".repeat(32);
        let text = format!(
            "# made by a program\n\nCLIENT_RANDOM {random} {}\r\nEXPORTER_SECRET {random} 00ff\nSERVER_TRAFFIC_SECRET_0 {} 0102\n\
             CLIENT_TRAFFIC_SECRET_0 {random} 01",
            "ab".repeat(48),
            "ff".repeat(32),
        );
        let log = KeyLog::parse(text.as_bytes()).expect("it is a key log");
        assert_eq!(log.sessions(), 2);
        let secrets = log.secrets(&[0x0f; 32]).expect("they are there");
        assert_eq!(secrets.master.as_deref(), Some(&[0xab; 48][..]));
        assert_eq!(secrets.traffic, [Some(Box::from([1_u8])), None], "a last line may be whole");
        assert_eq!(format!("{log:?}"), "KeyLog { sessions: 2, .. }");
    }

    #[test]
    fn a_line_that_is_none_is_an_error_with_its_number_unless_it_is_being_written() {
        let good = format!("CLIENT_RANDOM {} 00\n", "0f".repeat(32));
        for (bad, reason) in [
            ("CLIENT_RANDOM 0f", "it does not have three words"),
            ("client 00 00", "its first word is no label"),
            ("CLIENT_RANDOM 0f 00", "its second word does not have 64 digits"),
            ("CLIENT_RANDOM 0g 00", "its second word is not hexadecimal"),
        ] {
            let error = KeyLog::parse(format!("{good}{bad}\n{good}").as_bytes()).map(|_| ()).expect_err(bad);
            assert_eq!((error.line, error.reason), (2, reason));
            assert!(KeyLog::parse(format!("{good}{bad}").as_bytes()).is_ok(), "{bad}: it may go on");
        }
        assert!(KeyLog::parse(b"\x7fELF\x02\x01\0\n").is_err());
        assert_eq!(KeyLog::parse(b"").map(|log| log.sessions()), Ok(0));
    }
}

//! Large objects, as far as the tests need them.

use std::collections::BTreeMap;

use super::{error, message};

/// Opened for reading, and for writing as well.
pub(crate) const READ: i32 = 0x4_0000;
pub(crate) const READ_WRITE: i32 = 0x6_0000;
/// An object's oid; those in the rows of `emp` are its multiples.
pub(crate) const FIRST: u32 = 3;

/// Descriptors as PostgreSQL has them: the lowest number that is free, closed with the savepoint that they were opened in.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// What another session has written: the object's bytes from now on.
    pub(crate) written: BTreeMap<u32, Vec<u8>>,
    /// Number, oid, place; the bytes that it sees, unless it sees what is there.
    pub(crate) open: BTreeMap<i32, (u32, usize, Option<Vec<u8>>)>,
    /// Numbers at each savepoint.
    saved: Vec<Vec<i32>>,
    /// Descriptors get higher numbers by so many, as nothing makes them in a real server.
    pub(crate) shift: i32,
    pub(crate) close_fails: bool,
    /// What may not be called.
    pub(crate) forbidden: Vec<u32>,
    /// What was called: "read 0 4000".
    pub(crate) calls: Vec<String>,
}

impl Objects {
    fn bytes(&self, oid: u32) -> Vec<u8> {
        let length = 100 + oid as usize;
        let made = || (0..length).map(|at| (at as u32 * 7 + oid) as u8).collect();
        self.written.get(&oid).cloned().unwrap_or_else(made)
    }

    pub(crate) fn savepoint(&mut self) {
        self.saved.push(self.open.keys().copied().collect());
    }

    pub(crate) fn has_savepoint(&self) -> bool {
        !self.saved.is_empty()
    }

    pub(crate) fn rollback_to(&mut self) {
        if let Some(saved) = self.saved.last() {
            self.open.retain(|fd, _| saved.contains(fd));
        }
    }

    pub(crate) fn release(&mut self) {
        self.saved.pop();
    }

    pub(crate) fn transaction_over(&mut self) {
        self.open.clear();
        self.saved.clear();
    }

    pub(crate) fn unlink(&mut self, oid: u32) {
        self.open.retain(|_, (open, ..)| *open != oid);
        self.written.insert(oid, Vec::new());
    }

    /// What a FunctionCall with this body returns.
    pub(crate) fn call(&mut self, body: &[u8]) -> Result<Vec<u8>, Vec<u8>> {
        let function = int4(body) as u32;
        let values = values_of(body);
        let number = |at: usize| match values[at].len() {
            8 => i64::from_be_bytes(values[at].try_into().expect("eight bytes")),
            _ => i64::from(int4(values[at])),
        };
        let names = [(952, "open"), (953, "close"), (954, "read"), (956, "seek"), (958, "tell")];
        let wide = [(3170, "seek"), (3171, "tell")];
        let name =
            names.into_iter().chain(wide).find(|(oid, _)| *oid == function).map_or("?", |(_, name)| name);
        let shown: Vec<String> = (0..values.len()).map(|at| number(at).to_string()).collect();
        self.calls.push(format!("{name} {}", shown.join(" ")));
        if self.forbidden.contains(&function) {
            return Err(error("ERROR", "42501", "permission denied for function"));
        }
        if name == "open" {
            return Ok(self.opens(number(0) as u32, number(1) as i32).to_be_bytes().to_vec());
        }
        let fd = number(0) as i32;
        let Some((oid, place, seen)) = self.open.get(&fd).cloned() else {
            return Err(error("ERROR", "42704", "invalid large-object descriptor"));
        };
        let bytes = seen.unwrap_or_else(|| self.bytes(oid));
        let told = |place: usize| match function {
            3170 | 3171 => (place as i64).to_be_bytes().to_vec(),
            _ => (place as i32).to_be_bytes().to_vec(),
        };
        let (to, said) = match name {
            "close" if self.close_fails => return Err(error("ERROR", "57014", "canceling statement")),
            "close" => {
                self.open.remove(&fd);
                return Ok(vec![0; 4]);
            }
            "read" => {
                let end = bytes.len().min(place + number(1) as usize);
                let read = bytes.get(place..end).unwrap_or_default();
                (place + read.len(), read.to_vec())
            }
            "seek" => {
                let from = [0, place, bytes.len()][number(2) as usize];
                let to = (from as i64 + number(1)) as usize;
                (to, told(to))
            }
            _ => (place, told(place)),
        };
        if let Some((_, place, _)) = self.open.get_mut(&fd) {
            *place = to;
        }
        Ok(said)
    }

    fn opens(&mut self, oid: u32, mode: i32) -> i32 {
        let free = (0..).find(|fd| !self.open.contains_key(fd)).unwrap_or_default() + self.shift;
        let seen = (mode == READ).then(|| self.bytes(oid));
        self.open.insert(free, (oid, 0, seen));
        free
    }
}

fn int4(bytes: &[u8]) -> i32 {
    bytes.first_chunk().copied().map_or(0, i32::from_be_bytes)
}

/// Arguments of a call in which all is binary.
fn values_of(body: &[u8]) -> Vec<&[u8]> {
    let mut rest = &body[8..]; // one format for all
    let count = u16::from_be_bytes([rest[0], rest[1]]);
    rest = &rest[2..];
    let mut values = Vec::new();
    for _ in 0..count {
        let (value, after) = rest[4..].split_at(int4(rest) as usize);
        values.push(value);
        rest = after;
    }
    values
}

/// A call of this function.
pub(crate) fn call(function: u32, values: &[&[u8]]) -> Vec<u8> {
    let mut body = function.to_be_bytes().to_vec();
    body.extend([0, 1, 0, 1]);
    body.extend((values.len() as u16).to_be_bytes());
    for value in values {
        body.extend((value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
    }
    body.extend([0, 1]);
    message(b'F', &body)
}

pub(crate) fn open(oid: u32, mode: i32) -> Vec<u8> {
    call(952, &[&oid.to_be_bytes(), &mode.to_be_bytes()])
}

pub(crate) fn read(fd: i32, count: i32) -> Vec<u8> {
    call(954, &[&fd.to_be_bytes(), &count.to_be_bytes()])
}

/// From the start, the place or the end: 0, 1, 2.
pub(crate) fn seek(fd: i32, offset: i64, whence: i32) -> Vec<u8> {
    call(3170, &[&fd.to_be_bytes(), &offset.to_be_bytes(), &whence.to_be_bytes()])
}

pub(crate) fn tell(fd: i32) -> Vec<u8> {
    call(3171, &[&fd.to_be_bytes()])
}

pub(crate) fn close(fd: i32) -> Vec<u8> {
    call(953, &[&fd.to_be_bytes()])
}

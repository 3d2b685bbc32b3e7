//! Output of a session's statements for its own client: `put_line`, `get_line`, `get_lines`.
//!
//! The output of a statement stays until it is taken, across transactions, and ends with the session. PostgreSQL has
//! no such output. Other servers have it as a package (`dbms_output`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Registry, integer_arg, or_null, owned, text_arg};
use crate::error::SqlError;
use crate::types::{Base, SqlType};
use crate::value::{Stored, read_text};

/// Bytes of lines that may wait, and what each takes besides its text.
const WAITING_BYTES_MAX: usize = 16 << 20;
const LINE_BYTES: usize = 64;

/// Lines that wait for the client.
#[derive(Debug, Default)]
struct Lines {
    waiting: VecDeque<String>,
    bytes: usize,
}

impl Lines {
    fn put(&mut self, line: String) -> Result<(), SqlError> {
        if self.bytes + cost(&line) > WAITING_BYTES_MAX {
            let limit = WAITING_BYTES_MAX >> 20;
            return Err(SqlError::new("54000", format!("lines of more than {limit} MiB wait for get_line")));
        }
        self.bytes += cost(&line);
        self.waiting.push_back(line);
        Ok(())
    }

    fn take(&mut self) -> Option<String> {
        let line = self.waiting.pop_front()?;
        self.bytes -= cost(&line);
        Some(line)
    }
}

/// What a line takes: empty ones take memory too.
fn cost(line: &str) -> usize {
    line.len() + LINE_BYTES
}

pub(super) fn register(registry: &Registry<'_>) -> rusqlite::Result<()> {
    let lines = Arc::new(Mutex::new(Lines::default()));
    let waiting = Arc::clone(&lines);
    registry.volatile("put_line", 1, move |context| {
        let line = or_null!(text_arg(context, 0)).into_owned();
        locked(&waiting).put(line)?;
        Ok(Stored::Text(""))
    })?;
    let waiting = Arc::clone(&lines);
    registry.volatile("get_line", 0, move |_| {
        Ok(locked(&waiting).take().map_or(Stored::Null, Stored::OwnedText))
    })?;
    registry.volatile("get_lines", 1, move |context| {
        let most = usize::try_from(or_null!(integer_arg(context, 0))).unwrap_or(0);
        let mut lines = locked(&lines);
        let taken: Vec<String> = std::iter::from_fn(|| lines.take()).take(most).collect();
        Ok(owned(read_text(SqlType::array_of(Base::Text), &as_array(&taken))?.as_ref()))
    })
}

/// An array of texts as its type prints it.
fn as_array(lines: &[String]) -> String {
    let quoted: Vec<String> =
        lines.iter().map(|line| format!("\"{}\"", line.replace('\\', "\\\\").replace('"', "\\\""))).collect();
    format!("{{{}}}", quoted.join(","))
}

fn locked(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    // The queue is whole between any two statements.
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_as_they_went_in_and_are_bounded() {
        let mut lines = Lines::default();
        lines.put("one".into()).unwrap();
        lines.put("two".into()).unwrap();
        assert_eq!((lines.take().as_deref(), lines.bytes), (Some("one"), cost("two")));
        let error = lines.put("x".repeat(WAITING_BYTES_MAX)).unwrap_err();
        assert_eq!(error.sqlstate, "54000");
        assert_eq!((lines.take().as_deref(), lines.take()), (Some("two"), None));
        assert_eq!(as_array(&["a \"b\" \\".to_owned()]), "{\"a \\\"b\\\" \\\\\"}");
    }
}

//! What a statement's text tells by itself: what it does, what it has to do with cursors, large objects and prepared
//! statements, and whether it is one that no server refuses. Texts alone: nothing is known here of a session.

mod cursors;
mod effect;
pub(crate) mod grammar;
mod prefetch;
mod secrets;
mod sql;
mod words;

use std::sync::Arc;

use onetrip_sql::{Lifted, StatementKind};

pub(crate) use self::cursors::{CursorUse, cursor_use, makes_cursor_code, mentions};
pub(crate) use self::effect::{Effect, has_no_query};
pub(crate) use self::grammar::{Deferral, deferral, leaves_savepoints};
pub(crate) use self::prefetch::{Change, SETTING, of_comments, parse, sets_prefetch_alone};
pub(crate) use self::secrets::{kept_parameter, kept_template};
pub(crate) use self::sql::fetch;
pub(crate) use self::words::place_of;

/// Longest name that the server does not cut, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// The name that DEALLOCATE takes away; `None` for other statements, and for names that the server may read otherwise.
pub(crate) fn deallocated(lifted: &Lifted<'_>) -> Option<Arc<[u8]>> {
    if lifted.kind() != StatementKind::Deallocate || lifted.facts().all {
        return None;
    }
    let name: Arc<[u8]> = lifted.name()?.folded().collect();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b' ');
    let is_plain = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.iter().all(is_word);
    is_plain.then_some(name)
}

//! `onetrip.lob_prefetch` in texts: what sets it, what may, and what speaks for one statement.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use onetrip_sql::{Lifted, StatementKind};
use onetrip_wire::Prefetch;

/// What programs set.
pub(crate) const SETTING: &[u8] = b"onetrip.lob_prefetch";
/// Comments come with every statement of some programs: few are taken apart.
static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(SETTING));

/// What a statement does to the setting, once the server has run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// `None` is a text that is no policy.
    Set {
        value: Option<Prefetch>,
        is_local: bool,
    },
    /// What the connection began with holds again.
    Reset {
        is_local: bool,
    },
    /// It may have any value.
    Doubt,
    /// Several statements, which may end the transaction or reset it.
    Several,
    /// Ends the transaction, if the server says so.
    Commit,
    Rollback,
    RollbackTo,
}

/// Whether a statement does nothing but SET or RESET the setting, which nobody but the session reads.
pub(crate) fn sets_prefetch_alone(lifted: &Lifted<'_>) -> bool {
    matches!(lifted.kind(), StatementKind::Set | StatementKind::Reset)
        && lifted.name().is_some_and(|name| name.is(SETTING))
}

impl Change {
    /// What a statement may do to the setting; `None` for nearly all.
    pub(crate) fn of(lifted: &Lifted<'_>, scratch: &mut Vec<u8>) -> Option<Self> {
        use StatementKind as S;
        let is_meant = lifted.name().is_some_and(|name| name.is(SETTING));
        let facts = lifted.facts();
        match lifted.kind() {
            S::Commit => Some(Self::Commit),
            S::Rollback => Some(Self::Rollback),
            S::RollbackTo => Some(Self::RollbackTo),
            S::Set if is_meant => Some(Self::of_set(lifted, scratch)),
            S::Reset => (is_meant || facts.all).then_some(Self::Reset { is_local: false }),
            S::Discard => facts.all.then_some(Self::Reset { is_local: false }),
            S::Multi if is_meant || names_setting(lifted, scratch) => Some(Self::Doubt),
            S::Multi => facts.parts().iter().any(|part| is_of_several(*part)).then_some(Self::Several),
            S::Set | S::Show => None,
            _ => names_setting(lifted, scratch).then_some(Self::Doubt),
        }
    }

    fn of_set(lifted: &Lifted<'_>, scratch: &mut Vec<u8>) -> Self {
        let is_local = lifted.facts().local;
        let text = match (lifted.setting_literal(), lifted.setting_word()) {
            (Some(literal), _) => literal.value(scratch).to_vec(),
            (None, Some(word)) if word.is(b"default") => return Self::Reset { is_local },
            (None, Some(word)) => word.folded().collect(),
            (None, None) => return Self::Doubt,
        };
        Self::Set { value: parse(&text), is_local }
    }
}

fn is_of_several(part: StatementKind) -> bool {
    use StatementKind as S;
    matches!(part, S::Set | S::Reset | S::Discard | S::Commit | S::Rollback | S::RollbackTo)
}

/// Whether a literal is the setting's name, as in a call of `set_config`.
fn names_setting(lifted: &Lifted<'_>, scratch: &mut Vec<u8>) -> bool {
    let may_be = |length: usize| (SETTING.len()..SETTING.len() + 8).contains(&length);
    lifted
        .literals()
        .filter(|literal| may_be(literal.source.len()))
        .any(|literal| literal.value(scratch).eq_ignore_ascii_case(SETTING))
}

pub(crate) fn parse(value: &[u8]) -> Option<Prefetch> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// What the tag in a statement's comments says: `/* onetrip.lob_prefetch=0 */`.
pub(crate) fn of_comments(lifted: &Lifted<'_>) -> Option<Prefetch> {
    if !lifted.comments().any(|comment| FINDER.find(comment).is_some()) {
        return None;
    }
    let tags = lifted.comments().flat_map(onetrip_sql::sqlcommenter::tags);
    let mut meant = tags.filter(|(key, _)| key.as_written() == SETTING);
    meant.find_map(|(_, value)| parse(value.decode(&mut Vec::new())))
}

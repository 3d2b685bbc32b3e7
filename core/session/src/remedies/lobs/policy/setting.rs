//! `onetrip.lob_prefetch`: the connection's level, as far as the statements that went by tell what the server has for it.
//!
//! To the server it is a parameter that nobody defines: it takes any text, undoes it with the transaction, and does not
//! tell when it changes. What cannot be told from the texts alone leaves it unknown, so that the gateway's policy holds.

use std::collections::VecDeque;

use onetrip_wire::Prefetch;

use crate::reading::{Change, SETTING, parse};

/// Statements under way that may change it.
const PENDING_MAX: usize = 256;

/// What is known of the setting. `None` is a value that is not known, or says no policy.
#[derive(Debug, Default)]
pub(crate) struct Setting {
    /// What the connection began with, as far as its startup packet tells.
    first: Option<Prefetch>,
    /// What it was when the transaction began, and is when that is rolled back.
    before: Option<Prefetch>,
    /// What it will be when the transaction is committed.
    after: Option<Prefetch>,
    now: Option<Prefetch>,
    /// It was touched since the transaction began.
    is_changed: bool,
    /// The transaction has failed, as far as it was not rolled back to a savepoint.
    has_failed: bool,
    /// What the server is running: unit, statement.
    pending: VecDeque<(u64, Option<u16>, Change)>,
}

impl Setting {
    /// What holds for the connection.
    pub(super) fn now(&self) -> Option<Prefetch> {
        self.now
    }

    /// Takes what the startup packet says, itself or in its `options`; that itself counts, as for the server.
    pub(crate) fn begin(&mut self, parameters: &[(&[u8], &[u8])]) {
        let mut last_first = parameters.iter().rev();
        let options =
            last_first.find(|(name, _)| *name == b"options").and_then(|(_, value)| of_options(value));
        let own = parameters.iter().find(|(name, _)| name.eq_ignore_ascii_case(SETTING));
        let own = own.map(|(_, value)| parse(value));
        self.first = own.or(options).flatten();
        (self.before, self.after, self.now) = (self.first, self.first, self.first);
    }

    /// A statement goes to the server; `oldest` is the oldest unit that is not answered.
    pub(crate) fn sent(&mut self, oldest: u64, unit: u64, statement: Option<u16>, change: Change) {
        while self.pending.front().is_some_and(|(unit, ..)| *unit < oldest) {
            self.pending.pop_front();
        }
        if self.pending.len() < PENDING_MAX {
            self.pending.push_back((unit, statement, change));
        } else {
            self.doubt();
        }
    }

    /// The server has run a statement, and says so by this tag.
    pub(crate) fn ran(&mut self, unit: u64, statement: Option<u16>, tag: &[u8]) {
        if self.pending.is_empty() {
            return;
        }
        let found = self.pending.iter().position(|(of, slot, _)| *of == unit && *slot == statement);
        if let Some((_, _, change)) = found.and_then(|position| self.pending.remove(position)) {
            self.apply(change, tag);
        }
    }

    /// The server does this, whatever it will say.
    pub(crate) fn apply(&mut self, change: Change, tag: &[u8]) {
        match change {
            Change::Set { value, is_local } => self.put(value, is_local),
            Change::Reset { is_local } => self.put(self.first, is_local),
            Change::Doubt => self.doubt(),
            Change::Several if self.is_changed || self.now != self.first => self.doubt(),
            Change::Several => {}
            Change::Commit if tag == b"COMMIT" => {
                self.has_failed = false;
                self.transaction_over();
            }
            Change::Commit | Change::Rollback => {
                self.has_failed = true;
                self.transaction_over();
            }
            Change::RollbackTo => {
                self.has_failed = false;
                if self.is_changed {
                    self.doubt();
                }
            }
        }
    }

    /// A statement has failed, and what its transaction did is undone unless that goes back to a savepoint.
    pub(crate) fn failed(&mut self) {
        self.has_failed = true;
    }

    /// The transaction is over, an implicit one as well.
    pub(crate) fn transaction_over(&mut self) {
        if self.has_failed {
            self.after = self.before;
        }
        (self.before, self.now) = (self.after, self.after);
        (self.is_changed, self.has_failed) = (false, false);
    }

    fn put(&mut self, value: Option<Prefetch>, is_local: bool) {
        self.is_changed = true;
        self.now = value;
        if !is_local {
            self.after = value;
        }
    }

    fn doubt(&mut self) {
        self.put(None, false);
    }
}

/// The value in the words of a server's command line: `-c name=value`, `-cname=value` or `--name=value`, with a backslash
/// in front of blanks that are meant (`pg_split_opts`). The last one counts.
fn of_options(options: &[u8]) -> Option<Option<Prefetch>> {
    let words = split(options);
    let mut found = None;
    let mut follows = false;
    for word in &words {
        let assignment = match word.as_slice() {
            word if std::mem::take(&mut follows) => word,
            b"-c" => {
                follows = true;
                continue;
            }
            [b'-', b'-' | b'c', rest @ ..] => rest,
            _ => continue,
        };
        let Some(equals) = assignment.iter().position(|byte| *byte == b'=') else { continue };
        let name: Vec<u8> =
            assignment[..equals].iter().map(|byte| if *byte == b'-' { b'_' } else { *byte }).collect();
        if name.eq_ignore_ascii_case(SETTING) {
            found = Some(parse(&assignment[equals + 1..]));
        }
    }
    found
}

fn split(options: &[u8]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bytes = options.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => words.last_mut().into_iter().for_each(|word| word.extend(bytes.next())),
            byte if byte.is_ascii_whitespace() => words.push(Vec::new()),
            byte => words.last_mut().into_iter().for_each(|word| word.push(*byte)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use onetrip_sql::Lifter;

    use super::*;
    use crate::reading::of_comments;

    const LENGTH: Option<Prefetch> = Some(Prefetch::Length);
    const FIRST: Option<Prefetch> = Some(Prefetch::First(4000));

    fn change(text: &str) -> Option<Change> {
        Change::of(&Lifter::new().lift(text.as_bytes(), true), &mut Vec::new())
    }

    /// A connection whose startup packet says so.
    fn begun(parameters: &[(&str, &str)]) -> Setting {
        let user = [("user", "ann")];
        let all = user.iter().chain(parameters).map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let mut setting = Setting::default();
        setting.begin(&all.collect::<Vec<_>>());
        setting
    }

    /// Runs statements one by one; a `!` in front of one lets it fail, a `.` ends the transaction.
    fn run(setting: &mut Setting, script: &[&str]) -> Option<Prefetch> {
        for (unit, text) in (0..).zip(script) {
            match text.strip_prefix('!') {
                _ if *text == "." => setting.transaction_over(),
                Some(_) => setting.failed(),
                None => {
                    if let Some(change) = change(text) {
                        setting.sent(unit, unit, Some(0), change);
                    }
                    let tag = if text.starts_with("COMMIT") { "COMMIT" } else { "any" };
                    setting.ran(unit, Some(0), tag.as_bytes());
                }
            }
        }
        setting.now()
    }

    #[test]
    fn every_way_to_write_it_is_read() {
        let set = |value, is_local| Some(Change::Set { value, is_local });
        for (text, wanted) in [
            ("SET onetrip.lob_prefetch = 0", set(LENGTH, false)),
            ("set session OneTrip.Lob_Prefetch to '4000'", set(FIRST, false)),
            ("SET LOCAL \"onetrip\".\"lob_prefetch\" = -1", set(Some(Prefetch::Locator), true)),
            ("SET onetrip.lob_prefetch TO auto /* why */", set(Some(Prefetch::Auto), false)),
            ("SET onetrip.lob_prefetch = '4kB'", set(None, false)),
            ("SET onetrip.lob_prefetch TO DEFAULT", Some(Change::Reset { is_local: false })),
            ("RESET onetrip.lob_prefetch", Some(Change::Reset { is_local: false })),
            ("RESET ALL", Some(Change::Reset { is_local: false })),
            ("DISCARD ALL", Some(Change::Reset { is_local: false })),
            ("SELECT set_config('onetrip.lob_prefetch', '0', false)", Some(Change::Doubt)),
            ("SET a.b = 1; SET onetrip.lob_prefetch = 0", Some(Change::Several)),
            ("SET onetrip.lob_prefetch = 0; SELECT 1", Some(Change::Doubt)),
            ("SELECT 1; RESET ALL", Some(Change::Several)),
            ("ROLLBACK TO s", Some(Change::RollbackTo)),
            ("SET onetrip.scope = 'x'", None),
            ("RESET onetrip.scope", None),
            ("SHOW onetrip.lob_prefetch", None),
            ("DISCARD PLANS", None),
            ("SELECT 'lob_prefetch'", None),
            ("/* onetrip.lob_prefetch=0 */ SELECT 1", None),
        ] {
            assert_eq!(change(text), wanted, "{text}");
        }
    }

    #[test]
    fn it_ends_with_what_set_it() {
        for (script, wanted) in [
            (&["SET onetrip.lob_prefetch = 0", "."][..], LENGTH),
            (&["BEGIN", "SET onetrip.lob_prefetch = 0", "COMMIT", "."], LENGTH),
            (&["BEGIN", "SET onetrip.lob_prefetch = 0", "ROLLBACK", "."], None),
            (&["BEGIN", "SET LOCAL onetrip.lob_prefetch = 0"], LENGTH),
            (&["BEGIN", "SET LOCAL onetrip.lob_prefetch = 0", "COMMIT", "."], None),
            (&["SET LOCAL onetrip.lob_prefetch = 0", "."], None),
            (
                &[
                    "BEGIN",
                    "SET onetrip.lob_prefetch = 4000",
                    "SET LOCAL onetrip.lob_prefetch = 0",
                    "COMMIT",
                    ".",
                ],
                FIRST,
            ),
            (
                &[
                    "BEGIN",
                    "SET LOCAL onetrip.lob_prefetch = 0",
                    "SET onetrip.lob_prefetch = 4000",
                    "COMMIT",
                    ".",
                ],
                FIRST,
            ),
            (&["SET onetrip.lob_prefetch = 4000", ".", "RESET ALL", "."], None),
            (
                &[
                    "SET onetrip.lob_prefetch = 4000",
                    ".",
                    "BEGIN",
                    "RESET onetrip.lob_prefetch",
                    "ROLLBACK",
                    ".",
                ],
                FIRST,
            ),
            (&["BEGIN", "SET onetrip.lob_prefetch = 4000", "!fails", "ROLLBACK", "."], None),
            (&["SET onetrip.lob_prefetch = 4000", "!fails", "."], None),
            (&["!SET onetrip.lob_prefetch = 4000", ".", "SELECT 1"], None),
        ] {
            assert_eq!(run(&mut begun(&[]), script), wanted, "{script:?}");
        }
    }

    #[test]
    fn what_is_not_sure_leaves_the_wider_level() {
        let held = ["SET onetrip.lob_prefetch = 0", ".", "BEGIN"];
        for (script, inside, behind) in [
            (&["SAVEPOINT s", "SET onetrip.lob_prefetch = 4000", "ROLLBACK TO s"][..], None, None),
            (&["SAVEPOINT s", "!fails", "ROLLBACK TO s"], LENGTH, LENGTH),
            (&["SELECT set_config('onetrip.lob_prefetch', '7', true)"], None, None),
            (&["SELECT 1; RESET ALL"], None, None),
        ] {
            let mut setting = begun(&[]);
            run(&mut setting, &held);
            assert_eq!(run(&mut setting, script), inside, "{script:?}");
            assert_eq!(run(&mut setting, &["COMMIT", "."]), behind, "{script:?}");
        }
        let mut setting = begun(&[]);
        run(&mut setting, &held);
        run(&mut setting, &["SAVEPOINT s", "SET onetrip.lob_prefetch = 4000", "ROLLBACK TO s"]);
        assert_eq!(run(&mut setting, &["ROLLBACK", "."]), LENGTH, "that much is sure");
    }

    #[test]
    fn a_startup_packet_sets_what_reset_goes_back_to() {
        for (parameters, wanted) in [
            (&[("options", "-c onetrip.lob_prefetch=0")][..], LENGTH),
            (&[("options", "-c geqo=off  -conetrip.lob_prefetch=4000")], FIRST),
            (&[("options", "--onetrip.lob-prefetch=0 -c a.b=x\\ -c\\ onetrip.lob_prefetch=7")], LENGTH),
            (&[("options", "-c onetrip.lob_prefetch=0 -c onetrip.lob_prefetch=4000")], FIRST),
            (&[("options", "-c onetrip.lob_prefetch")], None),
            (&[("options", "-e onetrip.lob_prefetch=0")], None),
            (&[("onetrip.lob_prefetch", "4000"), ("options", "-c onetrip.lob_prefetch=0")], FIRST),
        ] {
            let mut setting = begun(parameters);
            assert_eq!(setting.now(), wanted, "{parameters:?}");
            assert_eq!(run(&mut setting, &["SET onetrip.lob_prefetch = 9", ".", "DISCARD ALL", "."]), wanted);
        }
    }

    #[test]
    fn a_comment_speaks_for_its_statement() {
        let of = |text: &str| of_comments(&Lifter::new().lift(text.as_bytes(), true));
        assert_eq!(of("/* onetrip.lob_prefetch=0 */ SELECT id, photo FROM person"), LENGTH);
        assert_eq!(of("SELECT 1 /*action='show',onetrip.lob_prefetch='4000'*/"), FIRST);
        assert_eq!(of("SELECT 1 -- onetrip.lob_prefetch=-1"), Some(Prefetch::Locator));
        assert_eq!(of("SELECT 1 /* onetrip.lob_prefetch=lots */"), None);
        assert_eq!(of("SELECT '/* onetrip.lob_prefetch=0 */'"), None);
    }
}

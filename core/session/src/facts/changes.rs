//! Changes of one database's catalogue that pass through the gateway: what was learned of it holds until the next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onetrip_ledger::Moment;
use onetrip_sql::purity::Acts;

use crate::statements::Mark;

/// What functions of users may do is not relied on when it was found out longer ago.
const FRESH: Duration = Duration::from_secs(60);

/// Changes of one database's catalogue that pass through the gateway (rule S3): those that a statement's text tells, and those
/// of functions and triggers that it may run.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    state: Mutex<State>,
    everywhere: Arc<Everywhere>,
}

/// What texts tell of all databases of a server: roles, for one, are in catalogues that these share, and a role's name
/// decides what names mean.
#[derive(Debug, Default)]
pub(crate) struct Everywhere {
    /// Sessions in whose transactions something may be changing.
    defining: AtomicU64,
    /// How often a text told so, or a server has read its configuration anew.
    texts: AtomicU64,
    /// When the server was asked first for settings that none of its processes is known to have read anew since, in
    /// nanoseconds; 0 before the first time.
    settings_since: AtomicU64,
    /// How often a configuration turned out to have been read anew.
    configured: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Goes up when something may have changed.
    epoch: u64,
    /// Sessions in whose transactions something may be changing, as a text tells.
    defining: u64,
    /// How often a text told so.
    texts: u64,
    /// How often one told that it may make code which finds cursors (rule R9).
    code: u64,
    /// Sessions in whose transactions a function of a user may have run, by [`Doubt`].
    doubts: [u64; Doubt::ALL.len()],
    /// How often such a transaction was over.
    doubted: u64,
    /// What functions of users may do, and when the server was asked.
    acts: Option<(Acts, Moment)>,
}

/// Where a function of a user may run that changes the catalogue: its statement's text does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The statement may call it.
    Called,
    /// It writes rows.
    Written,
    /// It reads rows, and is not proven to do nothing else.
    Read,
    /// It is a login, which an event trigger may wait for (PostgreSQL 17 and later).
    Login,
}

/// The doubts of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Doubts([bool; Doubt::ALL.len()]);

/// When the server was asked what functions may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActsAsked {
    at: Moment,
    texts: u64,
    doubted: u64,
}

impl Changes {
    /// Those of one more database of a server.
    pub(crate) fn of(everywhere: &Arc<Everywhere>) -> Self {
        Self { everywhere: Arc::clone(everywhere), ..Self::default() }
    }

    /// This moment.
    pub(crate) fn mark(&self) -> Mark {
        let mut state = self.lock();
        Mark { epoch: self.epoch_now(&mut state), texts: self.everywhere.texts() }
    }

    /// Whether nothing has changed since. Where no function acts, only texts can have changed anything.
    pub(crate) fn is_as_at(&self, mark: Mark) -> bool {
        let mut state = self.lock();
        let is_same_epoch = self.epoch_now(&mut state) == mark.epoch;
        let is_plain = state.acts.is_some_and(|(acts, _)| acts == Acts::default());
        is_same_epoch || is_plain && !self.everywhere.is_changing() && self.everywhere.texts() == mark.texts
    }

    /// The number of this moment's epoch: both of its parts only go up.
    fn epoch_now(&self, state: &mut State) -> u64 {
        if state.is_changing() || self.everywhere.is_changing() {
            // What is learnt now may be over at any moment: each epoch is over when the next one asks.
            state.epoch += 1;
        }
        state.epoch + self.everywhere.texts()
    }

    /// What is learnt of the catalogue now holds until this is another.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch_now(&mut self.lock())
    }

    /// How often a text was sent that may have made code which finds cursors.
    pub(crate) fn code(&self) -> u64 {
        self.lock().code
    }

    /// Such a text is sent.
    pub(crate) fn code_made(&self) {
        self.lock().code += 1;
    }

    /// A session's process has told its settings, and that it has read the server's configuration by this moment. Each process
    /// reads for itself what is read anew (`ProcessConfigFile`), and not all descriptions are the same with it. Returns whether
    /// it may have been read anew since another one has told its settings.
    pub(crate) fn settings_told(&self, asked_at: Moment, read_by: Moment) -> bool {
        let everywhere = &self.everywhere;
        let since = everywhere.settings_since.load(Ordering::SeqCst);
        let is_first = since == 0;
        let is_anew = !is_first && read_by.0 > since;
        if is_first || is_anew {
            everywhere.settings_since.fetch_max(asked_at.0.max(1), Ordering::SeqCst);
        }
        if is_anew {
            everywhere.texts.fetch_add(1, Ordering::SeqCst);
            everywhere.configured.fetch_add(1, Ordering::SeqCst);
        }
        is_anew
    }

    /// How often a configuration turned out to have been read anew.
    pub(crate) fn configured(&self) -> u64 {
        self.everywhere.configured.load(Ordering::SeqCst)
    }

    /// A transaction begins to do what may change the catalogue: until it is over nothing that is known is relied on, as
    /// the server may already let nobody else see what it changes.
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        state.defining += 1;
        state.text_acts();
        self.everywhere.defining.fetch_add(1, Ordering::SeqCst);
        self.everywhere.texts.fetch_add(1, Ordering::SeqCst);
    }

    /// It is over.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.defining -= 1;
        state.text_acts();
        self.everywhere.texts.fetch_add(1, Ordering::SeqCst);
        self.everywhere.defining.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether functions of users are known to do no more than read and write rows: then none leaves a doubt.
    pub(crate) fn are_functions_plain(&self) -> bool {
        self.lock().acts.is_some_and(|(acts, _)| acts == Acts::default())
    }

    /// Whether code of users may do anything but read where a statement is only parsed or planned; it may, unless it is known.
    pub(crate) fn may_act_unrun(&self) -> bool {
        self.lock().acts.is_none_or(|(acts, _)| acts.parsed)
    }

    /// Whether such code is known to be there: then nothing is known to only read.
    pub(crate) fn acts_unrun(&self) -> bool {
        self.lock().acts.is_some_and(|(acts, _)| acts.parsed)
    }

    /// A function of a user may run in a transaction, unless none does more than read and write rows. Until that is known,
    /// nothing is relied on.
    pub(crate) fn doubt(&self, doubt: Doubt, doubts: &mut Doubts) {
        let mut state = self.lock();
        let is_harmless = state.acts.is_some_and(|(acts, _)| !doubt.acts(acts));
        if !is_harmless && !std::mem::replace(&mut doubts.0[doubt as usize], true) {
            state.doubts[doubt as usize] += 1;
        }
    }

    /// The transaction is over.
    pub(crate) fn settle(&self, doubts: &mut Doubts) {
        let Doubts(doubts) = std::mem::take(doubts);
        if !doubts.contains(&true) {
            return;
        }
        let mut state = self.lock();
        state.doubted += 1;
        for doubt in Doubt::ALL.into_iter().filter(|one| doubts[*one as usize]) {
            state.doubts[doubt as usize] -= 1;
            match state.acts {
                // It may have made other functions, and triggers.
                Some((acts, _)) if doubt.acts(acts) => (state.acts, state.epoch) = (None, state.epoch + 1),
                Some(_) => {}
                None => state.epoch += 1,
            }
        }
    }

    /// What functions of users may do, if that is known. Without it nothing that is known together is relied on.
    pub(crate) fn acts(&self, now: Moment) -> Option<Acts> {
        let state = self.lock();
        state.acts.filter(|(_, at)| now.since(*at) < FRESH.as_nanos() as u64).map(|(acts, _)| acts)
    }

    /// Whether the server is to be asked for that.
    pub(crate) fn wants_acts(&self, now: Moment) -> bool {
        let state = self.lock();
        state.acts.is_none_or(|(_, at)| 3 * now.since(at) > 2 * FRESH.as_nanos() as u64)
    }

    /// The server is asked what functions may do.
    pub(crate) fn acts_asked(&self, now: Moment) -> ActsAsked {
        let state = self.lock();
        ActsAsked { at: now, texts: state.texts, doubted: state.doubted }
    }

    /// It has answered. Where no function acts, none can have made one that does, whatever was under way.
    pub(crate) fn acts_told(&self, asked: ActsAsked, acts: Acts) {
        let mut state = self.lock();
        let is_plain = acts == Acts::default();
        let holds = state.texts == asked.texts && (is_plain || state.doubted == asked.doubted);
        if holds && state.defining == 0 {
            state.acts = Some((acts, asked.at));
        }
    }

    /// A panic elsewhere leaves the counts whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Everywhere {
    fn is_changing(&self) -> bool {
        self.defining.load(Ordering::SeqCst) > 0
    }

    fn texts(&self) -> u64 {
        self.texts.load(Ordering::SeqCst)
    }
}

impl State {
    fn is_changing(&self) -> bool {
        let acts_now = |doubt: Doubt| {
            self.doubts[doubt as usize] > 0 && self.acts.is_some_and(|(acts, _)| doubt.acts(acts))
        };
        Doubt::ALL.into_iter().any(acts_now)
    }

    /// The text of a statement tells that it may change the catalogue.
    fn text_acts(&mut self) {
        self.epoch += 1;
        self.texts += 1;
        self.acts = None;
    }
}

impl Doubt {
    const ALL: [Self; 4] = [Self::Called, Self::Written, Self::Read, Self::Login];

    fn acts(self, acts: Acts) -> bool {
        match self {
            Self::Called => acts.called,
            Self::Written => acts.written,
            Self::Read => acts.read,
            Self::Login => acts.login,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_holds_while_something_may_change_and_nothing_from_before_holds_afterwards() {
        let changes = Changes::default();
        let before = changes.epoch();
        assert_eq!(changes.epoch(), before);
        changes.begin();
        let during = changes.epoch();
        assert!(during != before && changes.epoch() != during);
        changes.end();
        let after = changes.epoch();
        assert!(after != during && after != before && changes.epoch() == after);
    }

    #[test]
    fn what_a_text_changes_in_one_database_ends_the_epochs_of_all() {
        let everywhere = Arc::new(Everywhere::default());
        let (shop, news) = (Changes::of(&everywhere), Changes::of(&everywhere));
        news.acts_told(news.acts_asked(Moment(0)), NOTHING);
        let (before, mark) = (news.epoch(), news.mark());
        shop.begin();
        assert!(news.epoch() != before && news.epoch() != news.epoch() && !news.is_as_at(mark));
        shop.end();
        assert!(news.epoch() != before && news.epoch() == news.epoch() && !news.is_as_at(mark));
        assert_eq!(news.acts(Moment(0)), Some(NOTHING), "it makes no function here");
    }

    const NOTHING: Acts = Acts { called: false, written: false, read: false, parsed: false, login: false };
    const BY_TRIGGER: Acts = Acts { called: true, written: true, read: false, parsed: false, login: false };

    fn told(acts: Acts) -> Changes {
        let changes = Changes::default();
        changes.acts_told(changes.acts_asked(Moment(0)), acts);
        changes
    }

    #[test]
    fn what_a_function_may_do_ends_an_epoch_when_its_transaction_is_over() {
        let (changes, mut doubts) = (told(BY_TRIGGER), Doubts::default());
        let before = changes.epoch();
        changes.doubt(Doubt::Read, &mut doubts);
        changes.doubt(Doubt::Login, &mut doubts);
        assert_eq!(changes.epoch(), before, "no view acts, and nothing at a login");
        changes.doubt(Doubt::Written, &mut doubts);
        assert!(changes.epoch() != changes.epoch(), "a trigger may be at work");
        changes.settle(&mut doubts);
        assert_eq!(changes.epoch(), changes.epoch());
        assert_eq!(changes.acts(Moment(0)), None, "it may have made another");
    }

    #[test]
    fn where_no_function_acts_nothing_is_in_doubt() {
        let (changes, mut doubts) = (told(NOTHING), Doubts::default());
        let before = changes.epoch();
        for doubt in Doubt::ALL {
            changes.doubt(doubt, &mut doubts);
        }
        changes.settle(&mut doubts);
        assert_eq!((changes.epoch(), changes.acts(Moment(0))), (before, Some(NOTHING)));
    }

    #[test]
    fn what_ran_before_anything_was_known_ends_an_epoch_unless_it_turns_out_to_be_harmless() {
        for (acts, ends) in [(NOTHING, false), (BY_TRIGGER, true)] {
            let (changes, mut doubts) = (Changes::default(), Doubts::default());
            let before = changes.epoch();
            changes.doubt(Doubt::Written, &mut doubts);
            assert_eq!(changes.epoch(), before, "there is time to ask");
            changes.acts_told(changes.acts_asked(Moment(0)), acts);
            changes.settle(&mut doubts);
            assert_eq!(changes.epoch() != before, ends, "{acts:?}");
        }
    }

    #[test]
    fn an_answer_from_before_a_change_is_none() {
        let (changes, mut doubts) = (Changes::default(), Doubts::default());
        let asked = changes.acts_asked(Moment(0));
        changes.begin();
        changes.end();
        changes.acts_told(asked, NOTHING);
        assert_eq!(changes.acts(Moment(0)), None, "a text has made a function");
        let asked = changes.acts_asked(Moment(0));
        changes.doubt(Doubt::Called, &mut doubts);
        changes.settle(&mut doubts);
        changes.acts_told(asked, BY_TRIGGER);
        assert_eq!(changes.acts(Moment(0)), None, "a function has made a trigger");
        changes.acts_told(asked, NOTHING);
        assert_eq!(changes.acts(Moment(0)), Some(NOTHING), "there was none that could");
        assert!(changes.acts(Moment(60_000_000_000)).is_none() && changes.wants_acts(Moment(41_000_000_000)));
    }
}

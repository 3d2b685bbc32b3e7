//! Every remedy, once: in which order they hear of what happens, and in which they are asked for an answer.

use onetrip_ledger::Moment;
use onetrip_wire::pg::FrameHeader;

use super::remedy::{Cx, Remedy};
use crate::events::Event;
use crate::session::{Session, SessionError, Verdict};

impl Session {
    /// Tells everyone what has happened: what is known changes first, as remedies look at it. The order of the remedies
    /// does not matter here, for none sees another.
    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        let Self { core, config, facts, lobs, statements, begin, commit, chatter, loops, cursors, .. } = self;
        facts.on_event(core, &config.common, event);
        let mut cx = Cx { core, facts, config };
        lobs.on_event(&mut cx, event);
        statements.on_event(&mut cx, event);
        begin.on_event(&mut cx, event);
        commit.on_event(&mut cx, event);
        chatter.on_event(&mut cx, event);
        loops.on_event(&mut cx, event);
        cursors.on_event(&mut cx, event);
    }

    /// What a remedy makes of the message at the front of `input`: the first that answers it, or has it wait, is the one.
    ///
    /// # Errors
    ///
    /// The session ends where one cannot go on as its program believes.
    pub(crate) fn answer(
        &mut self,
        now: Moment,
        header: FrameHeader,
        input: &[u8],
    ) -> Result<Option<Verdict>, SessionError> {
        if self.core.units().is_open() {
            // Only rows are asked for amid a unit.
            return self.read_cursor(now, header, input);
        }
        // First, as it also puts descriptors to their places before anything goes to the server that could tell.
        if let Some(verdict) = self.answer_lob(now, header, input) {
            return Ok(Some(verdict));
        }
        // Before all that answer: behind a statement that was told, and is not confirmed, only its Bind goes (rule S6).
        if let Some(verdict) = self.behind_told(now, input)? {
            return Ok(Some(verdict));
        }
        // `begin`, `commit` and `chatter` know their texts, and no text is known to two of them. `loops` is behind them, as
        // it looks into any statement. The unnamed objects come last of these: what was answered needs none of them.
        let answered = self
            .answer_begin(now, header, input)
            .or_else(|| self.answer_commit(now, input))
            .or_else(|| self.answer_chatter(now, input))
            .or_else(|| self.answer_loops(now, header, input))
            .or_else(|| self.show_unseen(header.tag, input));
        if answered.is_some() {
            return Ok(answered);
        }
        // A Parse is no request for rows: the order of these two does not matter.
        let read = self.read_cursor(now, header, input)?;
        Ok(read.or_else(|| self.answer_prepare(now, input)))
    }
}

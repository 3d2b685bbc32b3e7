//! What becomes of a connection without a message of its client: what it waited for fails, it is told something, it has been
//! idle for too long, or another client has used its session.

use std::sync::Arc;

use onetrip_wire::pg::{Execute, Formats, backend, frame, frontend};

use super::super::analysis::{analyze, describe};
use super::super::backend::{Output, Prepared, World};
use super::super::failure::Failure;
use super::super::replies::put_rows;
use super::super::syntax::Statement;
use super::Connection;

impl Connection {
    /// A statement that waits for a row has begun: rows that it has locked are told, and a simple query leaves its portal.
    pub(super) fn leave_waiting(&mut self, tag: u8, body: &[u8]) {
        let Some(progress) = self.backend.progress.take() else { return };
        let zone = self.backend.settings.zone_hours();
        let locks = |prepared: &Prepared| matches!(&prepared.statement, Some(Statement::Select(_)));
        let rows = progress.returned;
        if let Some((statements, at)) = &self.query {
            let Some(statement) = statements.get(*at).and_then(|prepared| prepared.statement.clone()) else {
                return;
            };
            let analyzed = analyze(&statement, &[], false).unwrap_or_default();
            let prepared = Prepared { statement: Some(statement), analyzed };
            if locks(&prepared) {
                let columns = prepared.analyzed.columns.as_deref();
                describe(columns, Formats::default(), &mut self.out);
                let count = rows.len();
                let output = Output { columns: columns.map(Arc::from), rows, ..Output::default() };
                put_rows(&mut self.out, &output, 0..count, &[], zone);
            }
            return self.leave_failed(prepared);
        }
        let Some(portal) = Execute::decode(body).ok().filter(|_| tag == frontend::EXECUTE) else { return };
        let Some(portal) = self.backend.portals.get(portal.portal).filter(|portal| locks(&portal.prepared))
        else {
            return;
        };
        let columns = portal.prepared.analyzed.columns.as_deref().map(Arc::from);
        let count = rows.len();
        put_rows(
            &mut self.out,
            &Output { columns, rows, ..Output::default() },
            0..count,
            &portal.formats,
            zone,
        );
    }

    /// Notifications are for sessions without a transaction.
    pub(super) fn hear_notification(&mut self) {
        if self.backend.transaction.is_none() && std::mem::take(&mut self.is_notified) {
            frame(&mut self.said, backend::NOTIFICATION_RESPONSE, |out| {
                out.extend_from_slice(&[&0u32.to_be_bytes()[..], b"a\0told\0"].concat());
            });
        }
    }

    /// When it has been idle in a transaction for too long, in nanoseconds.
    pub(crate) fn idle_deadline(&self) -> Option<u64> {
        Some(self.idle_since? + self.backend.settings.idle_timeout()?)
    }

    /// It was idle for too long.
    pub(crate) fn end_idle(&mut self, world: &mut World) {
        let text = "terminating connection due to idle-in-transaction timeout";
        Failure::new("25P03", text).encode(&mut self.out);
        self.said.append(&mut self.out);
        self.backend.roll_back(world);
        (self.has_ended, self.idle_since) = (true, None);
    }

    /// A pooler's next client goes on with these.
    pub(super) fn share_settings(&self, world: &mut World) {
        let is_changed = self.took.as_ref().is_some_and(|took| !took.is_kept_in(&self.backend.settings));
        if let Some(shared) =
            world.faults.shared.as_mut().filter(|_| is_changed && !self.backend.is_in_block())
        {
            shared.go_on_as(&self.backend.settings);
        }
    }
}

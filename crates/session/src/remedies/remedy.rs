use std::fmt::Debug;

use crate::events::Event;
use crate::facts::Facts;
use crate::session::{Core, SessionConfig};

/// What takes round trips out of a program: private state, and what it makes of what happens. None knows another.
pub(crate) trait Remedy: Debug {
    /// Something has happened. There is no default: to ignore an event is a line that says so.
    fn on_event(&mut self, cx: &mut Cx<'_>, event: &Event<'_>);
}

/// All of a session but its remedies.
pub(crate) struct Cx<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) facts: &'a mut Facts,
    pub(crate) config: &'a SessionConfig,
}

impl Cx<'_> {
    /// Whether this remedy is on and can be of use here.
    pub(crate) fn may_remedy(&self, remedy: onetrip_ledger::Remedy) -> bool {
        self.config.remedies.has(remedy) && self.facts.path.is_worth_it()
    }
}

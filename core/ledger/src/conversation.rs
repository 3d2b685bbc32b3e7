use crate::Moment;

/// A unit that arrives within this time after the last reply left was on its way before the client could have
/// read that reply: waking a reader across two cores takes longer, and a spinning one on the same core as long.
const REACTION_MIN_NANOS: u64 = 8_000;
/// The same for a client that has been seen to send without waiting: what comes so soon is likely to be a straggler.
const PIPELINER_REACTION_MIN_NANOS: u64 = 30_000;

/// Counts the turns of one connection.
///
/// A trip starts with a unit that arrives when no unit is unanswered; units arriving meanwhile share it. Where the
/// database answers faster than a pipelining client writes, a unit that the client sent without waiting still
/// finds nothing unanswered. Units that arrive before the client can have read the reply, or hardly after it on a
/// connection that has been seen to pipeline, are therefore marked: the count is an upper bound.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    unanswered: u32,
    pipelines: bool,
    last_reply_at: Option<Moment>,
    /// The client had not received that reply when it sent what comes next.
    has_unread: bool,
}

/// What a unit's arrival means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The unit starts a trip.
    pub starts_trip: bool,
    /// The trip that it starts may be one with the trip before.
    pub may_share: bool,
}

impl Conversation {
    /// The first byte of a unit arrived. Each call is matched by one of [`Self::unit_answered`] or
    /// [`Self::unit_served`].
    pub fn unit_arrived(&mut self, now: Moment) -> Arrival {
        let starts_trip = self.unanswered == 0 && !(self.has_unread && self.last_reply_at.is_some());
        self.unanswered += 1;
        self.pipelines |= !starts_trip;
        let reaction_min = if self.pipelines { PIPELINER_REACTION_MIN_NANOS } else { REACTION_MIN_NANOS };
        // Who corrects its moments can go back: how soon this was is not known then.
        let too_soon = self.last_reply_at.is_some_and(|last| last <= now && now.since(last) < reaction_min);
        Arrival { starts_trip, may_share: starts_trip && too_soon }
    }

    /// Whether the client had received the last reply when it sent what arrives next. Who sees acknowledgements knows; a
    /// unit that was sent before shares the trip, however late it is seen.
    pub fn client_has_read(&mut self, has_read: bool) {
        self.has_unread = !has_read;
    }

    /// The last byte of a unit's reply left for the client.
    pub fn unit_answered(&mut self, now: Moment) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.last_reply_at = Some(now);
    }

    /// A remedy answered a unit: there was no trip that another could have shared.
    pub fn unit_served(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    /// Units that wait for their reply.
    pub fn unanswered(&self) -> u32 {
        self.unanswered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_arrive_while_one_is_unanswered_share_its_trip() {
        let mut conversation = Conversation::default();
        assert!(conversation.unit_arrived(Moment(0)).starts_trip);
        assert!(!conversation.unit_arrived(Moment(1_000)).starts_trip);
        conversation.unit_answered(Moment(50_000));
        assert!(!conversation.unit_arrived(Moment(60_000)).starts_trip);
        conversation.unit_answered(Moment(70_000));
        conversation.unit_answered(Moment(80_000));
        let next = conversation.unit_arrived(Moment(100_000));
        assert!(next.starts_trip && next.may_share, "a client that pipelines can straggle");
        conversation.unit_answered(Moment(200_000));
        let later = conversation.unit_arrived(Moment(400_000));
        assert!(later.starts_trip && !later.may_share, "it had time to read the reply");
    }

    #[test]
    fn a_client_that_waits_is_counted_exactly() {
        let mut conversation = Conversation::default();
        for round in 0..5 {
            let start = Moment(round * 1_000_000);
            assert_eq!(conversation.unit_arrived(start), Arrival { starts_trip: true, may_share: false });
            conversation.unit_answered(Moment(start.0 + 100_000));
        }
        let straggler = conversation.unit_arrived(Moment(4_105_000));
        assert!(straggler.may_share, "5 us after a reply no client can have read it");
    }
}

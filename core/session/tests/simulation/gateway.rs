//! A session as its driver sees it, and ten ways to break it from outside: each stands for a bug that a session
//! could have, planted at its edges so that no code of the session knows of it.

use onetrip_ledger::Moment;
use onetrip_session::{Opening, Session, SessionError, Verdict};
use onetrip_wire::pg::{FrameHeader, backend, encode_ready_for_query, frontend};

use crate::backend::{PROCESS_ID, REAL_KEY};

/// A bug to plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A Sync is forwarded and not expected to be answered.
    SyncNotQueued,
    /// A notice is taken and not passed on.
    NoticeLost,
    /// An error does not make the queue skip to Sync.
    ErrorWithoutSkip,
    /// A query that the server skips is answered all the same.
    SkippedQueryAnswered,
    /// Flush does not end a unit.
    FlushNotCounted,
    /// The client gets the backend's own key.
    KeyNotReplaced,
    /// The end of COPY data does not reach the server.
    CopyDoneSwallowed,
    /// Two messages of the server change places.
    RepliesReordered,
    /// What there is of a message when its rest is yet to come is lost.
    PartialFrameLost,
    /// A notice counts as the end of a statement.
    NoticeCountedAsAnswer,
}

/// What leaves for the other side after a turn, and how much of the input it used up.
pub(crate) struct Turn {
    pub(crate) used: usize,
    pub(crate) out: Vec<u8>,
}

/// A session, sound or with a bug planted.
pub(crate) struct Gateway {
    pub(crate) session: Session,
    bug: Option<Bug>,
    /// For bugs that look at the conversation: an error came and no Sync since.
    skipping: bool,
    /// A reply that waits for the next to go before it.
    delayed: Vec<u8>,
}

impl Gateway {
    pub(crate) fn new(session: Session, bug: Option<Bug>) -> Self {
        Self { session, bug, skipping: false, delayed: Vec::new() }
    }

    /// Shows the session what the client sent; `None` when it waits for more.
    pub(crate) fn client(&mut self, now: Moment, input: &[u8]) -> Result<Option<Turn>, SessionError> {
        let whole = whole_frame(input).filter(|_| self.session.is_serving());
        if let Some((tag, frame)) = whole {
            let hidden = match tag {
                frontend::SYNC => self.bug == Some(Bug::SyncNotQueued),
                frontend::FLUSH => self.bug == Some(Bug::FlushNotCounted),
                _ => false,
            };
            if hidden {
                return Ok(Some(Turn::forward(frame)));
            }
            if tag == frontend::SYNC {
                self.skipping = false;
            }
            if tag == frontend::QUERY && self.skipping && self.bug == Some(Bug::SkippedQueryAnswered) {
                encode_ready_for_query(self.session.to_client(), Default::default());
            }
        }
        if self.session.is_opening() {
            let used = match self.session.handle_opening(now, input)? {
                Opening::Wait => return Ok(None),
                Opening::Answer(bytes) | Opening::Connect(bytes) | Opening::Cancel { bytes, .. } => bytes,
            };
            return Ok(Some(Turn { used, out: Vec::new() }));
        }
        let verdict = self.session.handle_client(now, input)?;
        let mut turn = self.turn(verdict, input);
        if let (Some(turn), Some((frontend::COPY_DONE, _)), Some(Bug::CopyDoneSwallowed)) =
            (&mut turn, whole, self.bug)
        {
            turn.out.clear();
        }
        Ok(turn)
    }

    /// Shows the session what the server sent; `None` when it waits for more.
    pub(crate) fn server(&mut self, now: Moment, input: &[u8]) -> Result<Option<Turn>, SessionError> {
        let whole = whole_frame(input).filter(|_| self.session.is_serving());
        if let Some((tag, frame)) = whole {
            self.skipping |= tag == backend::ERROR_RESPONSE;
            match (tag, self.bug) {
                (backend::ERROR_RESPONSE, Some(Bug::ErrorWithoutSkip)) => {
                    return Ok(Some(Turn::forward(frame)));
                }
                (backend::NOTICE_RESPONSE, Some(Bug::NoticeCountedAsAnswer)) => {
                    self.session.handle_server(now, b"C\0\0\0\x0dSELECT 1\0")?;
                    return Ok(Some(Turn::forward(frame)));
                }
                _ => {}
            }
        }
        let verdict = self.session.handle_server(now, input)?;
        if verdict == Verdict::Wait && self.bug == Some(Bug::PartialFrameLost) && !input.is_empty() {
            return Ok(Some(Turn { used: input.len(), out: Vec::new() }));
        }
        let Some(mut turn) = self.turn(verdict, input) else { return Ok(None) };
        if let Some((tag, frame)) = whole {
            match (tag, self.bug) {
                (backend::NOTICE_RESPONSE, Some(Bug::NoticeLost)) => turn.out.clear(),
                (backend::BIND_COMPLETE | backend::DATA_ROW, Some(Bug::RepliesReordered)) => {
                    self.delayed = std::mem::take(&mut turn.out);
                }
                _ => turn.out.append(&mut self.delayed),
            }
            debug_assert!(turn.used <= frame.len());
        }
        if input[0] == backend::BACKEND_KEY_DATA && self.bug == Some(Bug::KeyNotReplaced) {
            turn.out = [&b"K\0\0\0\x0c"[..], &PROCESS_ID.to_be_bytes(), REAL_KEY].concat();
        }
        Ok(Some(turn))
    }

    fn turn(&mut self, verdict: Verdict, input: &[u8]) -> Option<Turn> {
        let used = match verdict {
            Verdict::Wait | Verdict::Hold => return None,
            Verdict::Forward(bytes) => return Some(Turn::forward(&input[..bytes])),
            Verdict::Replace(bytes) => bytes,
        };
        Some(Turn { used, out: Vec::new() })
    }
}

impl Turn {
    fn forward(bytes: &[u8]) -> Self {
        Self { used: bytes.len(), out: bytes.to_vec() }
    }
}

fn whole_frame(input: &[u8]) -> Option<(u8, &[u8])> {
    let header = FrameHeader::peek(input, u32::MAX)?.ok()?;
    Some((header.tag, input.get(..header.frame_len())?))
}

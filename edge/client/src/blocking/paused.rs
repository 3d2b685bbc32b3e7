//! A COPY between two calls that go on with it.

use super::{Client, CopyIn, CopyOut};
use crate::core::{CopyingIn, CopyingOut, Gather};

/// What a call has begun, and another one goes on with.
#[derive(Debug)]
pub(super) enum Paused {
    In(CopyingIn),
    Out(CopyingOut),
    /// Rows that are taken by the piece.
    Rows(Box<Gather>),
}

impl CopyIn<'_> {
    /// Lets it wait for [`Client::resume_copy_in`]. Any other call of the client gives it up.
    pub fn pause(mut self) {
        self.client.paused = Some(Paused::In(self.copying.pause()));
    }
}

impl CopyOut<'_> {
    /// Lets it wait for [`Client::resume_copy_out`]. Any other call of the client throws the rest away.
    pub fn pause(self) {
        self.client.paused = Some(Paused::Out(self.copying));
    }
}

impl Client {
    /// Goes on with a COPY that takes data and was [paused](CopyIn::pause); `None` where none was, or another call has
    /// given it up.
    pub fn resume_copy_in(&mut self) -> Option<CopyIn<'_>> {
        match self.paused.take() {
            Some(Paused::In(copying)) => {
                self.start_clock();
                Some(CopyIn { client: self, copying })
            }
            other => {
                self.paused = other;
                None
            }
        }
    }

    /// Goes on with a COPY whose data was read in part when it was [paused](CopyOut::pause); `None` where none was, or
    /// another call has thrown the rest away.
    pub fn resume_copy_out(&mut self) -> Option<CopyOut<'_>> {
        match self.paused.take() {
            Some(Paused::Out(copying)) => {
                self.start_clock();
                Some(CopyOut { client: self, copying })
            }
            other => {
                self.paused = other;
                None
            }
        }
    }

    /// Nobody goes on with a COPY.
    pub(super) fn leave_copy(&mut self) {
        if let Some(Paused::In(copying)) = self.paused.take() {
            copying.leave(&mut self.core);
        }
    }
}

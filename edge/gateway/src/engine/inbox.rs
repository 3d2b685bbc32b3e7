//! What others want of a worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::{io, mem};

use mio::{Registry, Token};

use super::connection::Served;
use crate::shared::Stop;

/// The loop's token of its inbox; connections count from zero.
pub(super) const TOKEN: Token = Token(usize::MAX);

/// Something to do.
#[derive(Debug)]
pub(super) enum Errand {
    /// Serve this connection from now on.
    Serve(Box<dyn Served>),
    /// See what there is to do for the connection of this number in this seat, if it is still there.
    Look { seat: usize, number: u32 },
    /// Connections do not go on as they did.
    Stop(Stop),
    /// No connections come any more.
    Close,
}

/// Errands of one worker. Its sender wakes the worker, so none is sent per message.
#[derive(Debug)]
pub(crate) struct Inbox {
    errands: Mutex<Vec<Errand>>,
    /// The worker was told.
    is_told: AtomicBool,
    worker: mio::Waker,
}

impl Inbox {
    pub(super) fn new(registry: &Registry) -> io::Result<Self> {
        let worker = mio::Waker::new(registry, TOKEN)?;
        Ok(Self { errands: Mutex::default(), is_told: AtomicBool::new(false), worker })
    }

    pub(super) fn send(&self, errand: Errand) {
        lock(&self.errands).push(errand);
        if !self.is_told.swap(true, Ordering::AcqRel) {
            // It fails only where the kernel has no memory left for the counter that it already has.
            let _ = self.worker.wake();
        }
    }

    /// Takes all of them.
    pub(super) fn take(&self) -> Vec<Errand> {
        // First: whoever comes in between wakes the worker again.
        self.is_told.store(false, Ordering::Release);
        mem::take(&mut *lock(&self.errands))
    }
}

/// Where a connection sits, so that whoever holds its waker finds it.
#[derive(Debug, Default)]
pub(super) struct Place(Mutex<Option<(Arc<Inbox>, usize, u32)>>);

impl Place {
    /// From now on it is there.
    pub(super) fn is_at(&self, inbox: &Arc<Inbox>, seat: usize, number: u32) {
        *lock(&self.0) = Some((Arc::clone(inbox), seat, number));
    }

    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }
}

impl Wake for Place {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some((inbox, seat, number)) = &*lock(&self.0) {
            inbox.send(Errand::Look { seat: *seat, number: *number });
        }
    }
}

/// A panic elsewhere leaves these whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! How other threads talk to a relay's.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::stats::LinkStats;

/// What other threads want from a pacer.
#[derive(Debug)]
pub(crate) struct Control {
    wake: OwnedFd,
    stop: AtomicBool,
    /// Who waits for statistics; `None` once the pacer has ended.
    asked: Mutex<Option<Vec<Sender<LinkStats>>>>,
}

impl Control {
    /// Fails if the system has no file descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { wake, stop: AtomicBool::new(false), asked: Mutex::new(Some(Vec::new())) })
    }

    /// Asks for the end; returns at once.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// Becomes readable when there is something to look at.
    pub(crate) fn wake_fd(&self) -> &OwnedFd {
        &self.wake
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Makes the descriptor unreadable again and returns who waits for statistics.
    pub(crate) fn take_asked(&self) -> Vec<Sender<LinkStats>> {
        // An empty counter (EAGAIN) only means that nobody woke us.
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// From now on nobody will be answered.
    pub(crate) fn close(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What has happened so far. Fails once the pacer has ended.
    pub(crate) fn ask(&self) -> io::Result<LinkStats> {
        let (answer, answered) = mpsc::channel();
        match self.asked.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(asked) => asked.push(answer),
            None => return Err(stopped()),
        }
        self.wake();
        answered.recv().map_err(|_| stopped())
    }

    pub(crate) fn wake(&self) {
        // It can only fail when the counter is full (EAGAIN), and then the pacer is awake already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// What asks a relay that has ended.
pub(crate) fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the link's relay has stopped")
}

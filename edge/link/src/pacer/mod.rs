//! The thread that keeps the schedule. It alone reads, waits and writes, so that nothing but the kernel stands
//! between a deadline and its send: it sleeps until shortly before the deadline and spins the rest.

mod agenda;
mod connection;
mod priority;
mod running;
mod socket;
mod watch;

use std::io;
use std::net::TcpListener;
use std::num::NonZeroU64;
use std::sync::Arc;

use rustix::event::epoll;
use rustix::fd::OwnedFd;

use crate::control::Control;
use crate::spec::LinkSpec;
use crate::stats::LinkStats;
use crate::target::{Prepare, Target};
use running::Running;

/// A relay that is ready to run: everything that can be refused has been granted.
pub(crate) struct Pacer {
    spec: LinkSpec,
    target: Target,
    prepare: Prepare,
    listener: TcpListener,
    control: Arc<Control>,
    events: OwnedFd,
}

impl Pacer {
    pub(crate) fn new(
        spec: LinkSpec,
        listener: TcpListener,
        (target, prepare): (Target, Prepare),
        control: Arc<Control>,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&events, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        epoll::add(&events, control.wake_fd(), epoll::EventData::new_u64(CONTROL), epoll::EventFlags::IN)?;
        Ok(Self { spec, target, prepare, listener, control, events })
    }

    /// Runs in the calling thread until shutdown.
    pub(crate) fn run(self) -> io::Result<LinkStats> {
        // By default the kernel may round a thread's timers up by 50 µs.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let control = Arc::clone(&self.control);
        let outcome = Running::new(self).run();
        control.close();
        outcome
    }
}

/// Tokens of the events that are not a connection's; connections count from zero.
const LISTENER: u64 = u64::MAX;
const CONTROL: u64 = u64::MAX - 1;

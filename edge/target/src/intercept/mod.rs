//! `run --redirect`: what a program and its children connect to at the database's address goes to the gateway.
//!
//! A seccomp filter turns each `connect` into a question, which a thread of ours answers: either the call goes on, or
//! the same socket is connected to the gateway. It works for static binaries, too, for it is the kernel that asks.
//! A filter stays as long as its processes: for those that outlive us a process of ours stays, which lets all calls go on.
//! Not covered: 32-bit programs, io_uring, and TCP's fast open, which connect without `connect`. Of io_uring it is known
//! at least that it is used.

mod sys;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
    SocketType, recvmsg, sockopt,
};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use tokio::process::Command;

use sys::{Call, Question, Reply};

/// `struct sockaddr_un`, the longest address that is looked at.
const ADDRESS_BYTES_MAX: usize = 110;
/// Destinations that are remembered.
const DESTINATIONS_MAX: usize = 100;

/// Where a program connects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// By TCP; addresses of IPv4 that are written as IPv6 are IPv4's.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Where the C library and others ask the system for names, users and logs, whatever the program does.
const SYSTEM_SOCKETS: [&str; 6] =
    ["/run/nscd/", "/run/systemd/", "/run/dbus/", "/run/avahi-daemon/", "/var/lib/sss/", "/dev/log"];

impl Destination {
    /// Whether it is a service of the system that the C library itself asks, which is never a database.
    pub fn is_of_the_system(&self) -> bool {
        let Self::Unix(path) = self else { return false };
        let path = path.to_string_lossy();
        let path = path.strip_prefix("/var").filter(|rest| rest.starts_with("/run/")).unwrap_or(&path);
        SYSTEM_SOCKETS.iter().any(|system| path.starts_with(system))
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// How often a program connected to a place, and how often that went to the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// All calls.
    pub connects: u64,
    /// Those that were led to the gateway.
    pub led: u64,
}

/// What a program did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Where it connected.
    pub places: BTreeMap<Destination, Count>,
    /// It uses io_uring, by which it may have connected unseen.
    pub has_io_uring: bool,
}

/// Says where a connection goes instead; `None` leaves it as it is.
pub type Lead = Box<dyn FnMut(&Destination) -> Option<Destination> + Send>;

/// Why a program's connections cannot be intercepted.
#[derive(Debug, thiserror::Error)]
pub enum InterceptError {
    /// The kernel or a container's rules forbid it.
    #[error(
        "this system does not let a program's connections be redirected (seccomp user notification and pidfd_getfd). In a container, allow both, or start `onetrip gateway` and put its address into the program's settings"
    )]
    Unavailable,
    /// The program could not be confined.
    #[error(
        "the program's connections cannot be redirected: another tool already listens to its system calls; `--redirect=preload` does without"
    )]
    Refused,
    /// The system failed.
    #[error("the program's connections cannot be redirected")]
    System(#[from] io::Error),
}

/// A program's connections, to be intercepted: made before it starts.
#[derive(Debug)]
pub struct Interception {
    channel: OwnedFd,
}

/// The thread that answers.
#[derive(Debug)]
pub struct Interceptor {
    thread: JoinHandle<()>,
    stop: OwnedFd,
    seen: Arc<Mutex<Seen>>,
}

/// Whether this system lets a program's connections be intercepted.
pub fn is_available() -> bool {
    sys::is_available() && may_take_descriptors()
}

impl Interception {
    /// Prepares a command.
    ///
    /// # Errors
    /// A system that does not allow it.
    pub fn prepare(command: &mut Command) -> Result<Self, InterceptError> {
        if !is_available() {
            return Err(InterceptError::Unavailable);
        }
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(io::Error::from)?;
        sys::confine(command, theirs);
        Ok(Self { channel: ours })
    }

    /// Whether a program that could not be started could not be because of the filter.
    pub fn is_refused(&self) -> bool {
        self.receive().is_err_and(|error| matches!(error, InterceptError::Refused))
    }

    /// Begins to answer, once the program has been started.
    ///
    /// # Errors
    /// A program that was not confined.
    pub fn begin(self, lead: Lead) -> Result<Interceptor, InterceptError> {
        let listener = self.receive()?;
        let (stop, stopped) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        let seen = Arc::default();
        let mut answering = Answering { listener, stopped: stop, lead, seen: Arc::clone(&seen) };
        let thread = thread::Builder::new().name("onetrip-redirect".into()).spawn(move || {
            answering.answer_all();
            answering.leave();
        })?;
        Ok(Interceptor { thread, stop: stopped, seen })
    }

    fn receive(&self) -> Result<OwnedFd, InterceptError> {
        let mut byte = [0; 1];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let message = recvmsg(
            &self.channel,
            &mut [io::IoSliceMut::new(&mut byte)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        )
        .map_err(io::Error::from)?;
        let fds = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        match fds {
            Some(listener) if sys::is_done(&byte[..message.bytes]) => Ok(listener),
            _ => Err(InterceptError::Refused),
        }
    }
}

impl Interceptor {
    /// Stops leading. What still runs of the program connects where it says from now on: a process that we leave behind
    /// lets it, and ends with the last of them.
    pub fn stop(self) -> Seen {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        drop(self.stop);
        // A panic of that thread has been printed.
        let _ = self.thread.join();
        seen
    }
}

struct Answering {
    listener: OwnedFd,
    stopped: OwnedFd,
    lead: Lead,
    seen: Arc<Mutex<Seen>>,
}

impl Answering {
    fn answer_all(&mut self) {
        loop {
            let mut polled =
                [PollFd::new(&self.listener, PollFlags::IN), PollFd::new(&self.stopped, PollFlags::IN)];
            match poll(&mut polled, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            let [asked, stopped] = polled.map(|polled| polled.revents());
            if !stopped.is_empty() || !asked.contains(PollFlags::IN) {
                return; // told to stop, or nobody is left who could ask
            }
            if let Ok(question) = sys::receive(self.listener.as_fd()) {
                let reply = self.decide(&question).unwrap_or(Reply::GoOn);
                sys::reply(self.listener.as_fd(), &question, reply);
            }
        }
    }

    /// Leaves a process behind for those of the program that are still there, if any: without a listener their calls
    /// would fail with ENOSYS.
    fn leave(&self) {
        let mut polled = [PollFd::new(&self.listener, PollFlags::IN)];
        let is_over = poll(&mut polled, Some(&rustix::event::Timespec::default())).is_ok()
            && polled[0].revents().contains(PollFlags::HUP);
        if !is_over {
            // No process can be had: nobody is left to tell, for the program has ended.
            let _ = sys::leave_behind(&self.listener);
        }
    }

    /// `None` where the call is not ours to change, or cannot be looked at.
    fn decide(&mut self, question: &Question) -> Option<Reply> {
        if question.call != Call::Connect {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).has_io_uring = true;
            return None;
        }
        let address = read_address(question)?;
        let destination = destination(&address)?;
        if !sys::is_asked(self.listener.as_fd(), question) {
            return None;
        }
        let socket = take_descriptor(question)?;
        if sockopt::socket_type(&socket).ok()? != SocketType::STREAM {
            return None;
        }
        let led = (self.lead)(&destination);
        let reply = led.as_ref().and_then(|to| connect(&socket, to).ok());
        self.remember(destination, reply.is_some());
        reply.map(Reply::Done)
    }

    fn remember(&self, destination: Destination, led: bool) {
        let seen = &mut self.seen.lock().unwrap_or_else(PoisonError::into_inner).places;
        if seen.len() < DESTINATIONS_MAX || seen.contains_key(&destination) {
            let count = seen.entry(destination).or_default();
            count.connects += 1;
            count.led += u64::from(led);
        }
    }
}

/// Connects a program's socket for it; what its `connect` will say. An error where it cannot be done at all.
fn connect(socket: &OwnedFd, to: &Destination) -> io::Result<i32> {
    let family = sockopt::socket_domain(socket)?;
    let done = match to {
        Destination::Unix(path) if family == AddressFamily::UNIX => {
            rustix::net::connect(socket, &SocketAddrUnix::new(path)?)
        }
        Destination::Tcp(address) if family == AddressFamily::INET && address.is_ipv4() => {
            rustix::net::connect(socket, address)
        }
        Destination::Tcp(address) if family == AddressFamily::INET6 => {
            let address = match address {
                SocketAddr::V4(v4) => {
                    // The gateway is at an address of IPv4; a socket that was not bound may still be told so.
                    sockopt::set_ipv6_v6only(socket, false)?;
                    SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0)
                }
                SocketAddr::V6(v6) => *v6,
            };
            rustix::net::connect(socket, &address)
        }
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    Ok(match done {
        Ok(()) => 0,
        // An earlier answer of ours came too late for a call that a signal had interrupted.
        Err(rustix::io::Errno::ISCONN) => 0,
        Err(error) => error.raw_os_error(),
    })
}

fn read_address(question: &Question) -> Option<Vec<u8>> {
    let length = usize::try_from(question.length).ok()?.min(ADDRESS_BYTES_MAX);
    let mut address = vec![0; length];
    let memory = File::open(format!("/proc/{}/mem", question.thread)).ok()?;
    memory.read_exact_at(&mut address, question.address).ok()?;
    Some(address)
}

/// Reads a `struct sockaddr`.
fn destination(address: &[u8]) -> Option<Destination> {
    let family = u16::from_ne_bytes(*address.first_chunk()?);
    let port = || Some(u16::from_be_bytes(*address.get(2..)?.first_chunk()?));
    match i32::from(family) {
        libc::AF_INET => {
            let ip = Ipv4Addr::from(*address.get(4..)?.first_chunk::<4>()?);
            Some(Destination::Tcp(SocketAddrV4::new(ip, port()?).into()))
        }
        libc::AF_INET6 => {
            let ip = IpAddr::from(*address.get(8..)?.first_chunk::<16>()?).to_canonical();
            Some(Destination::Tcp(SocketAddr::new(ip, port()?)))
        }
        libc::AF_UNIX => {
            let path = address.get(2..)?;
            let path = match path.first()? {
                0 => return None, // abstract
                _ => path.split(|byte| *byte == 0).next()?,
            };
            Some(Destination::Unix(Path::new(std::ffi::OsStr::from_bytes(path)).to_owned()))
        }
        _ => None,
    }
}

/// Our own descriptor of the program's socket.
fn take_descriptor(question: &Question) -> Option<OwnedFd> {
    // Descriptors belong to the process, and only its first thread can be named here.
    let status = std::fs::read_to_string(format!("/proc/{}/status", question.thread)).ok()?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()?;
    let process = pidfd_open(Pid::from_raw(process)?, PidfdFlags::empty()).ok()?;
    pidfd_getfd(process.as_fd(), question.fd, PidfdGetfdFlags::empty()).ok()
}

/// Containers often forbid it.
fn may_take_descriptors() -> bool {
    let own = pidfd_open(rustix::process::getpid(), PidfdFlags::empty());
    own.is_ok_and(|own| {
        pidfd_getfd(own.as_fd(), 0, PidfdGetfdFlags::empty())
            .map_or_else(|error| error == rustix::io::Errno::BADF, |_| true)
    })
}

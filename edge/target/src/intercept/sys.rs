//! What the kernel offers for intercepting `connect`, and for which there is no safe wrapper. That is a seccomp filter that
//! asks us, the three calls that serve its questions, and a process that does so after us. `seccomp_unotify(2)` is the
//! reference.

#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::process::Command;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

/// Only a fatal signal ends a question that we have read (Linux 5.19).
const FLAG_WAIT_KILLABLE_RECV: libc::c_ulong = 1 << 5;
/// Descriptors that are closed one by one where the kernel cannot close a range of them.
const CLOSED_MAX: i32 = 65_536;
/// What a program that could not be confined sends instead of a listener.
const FAILED: &[u8] = b"F";
const DONE: &[u8] = b"D";

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Connect,
    /// `io_uring_setup`: what is done by the ring is not asked about.
    IoUring,
}

/// One call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    id: u64,
    pub(super) call: Call,
    /// The thread that asks.
    pub(super) thread: u32,
    /// Its file descriptor.
    pub(super) fd: i32,
    /// Where its memory holds the address.
    pub(super) address: u64,
    /// How many bytes it says the address has.
    pub(super) length: u64,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The program's own call goes on.
    GoOn,
    /// It has been made for the program, and this came of it: zero, or an error number.
    Done(i32),
}

/// Whether the kernel, and whatever confines this process, lets a filter ask.
pub(super) fn is_available() -> bool {
    let action = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the kernel reads four bytes at the pointer, which is a live u32.
    let answer =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    answer == 0 && ARCHITECTURE != 0
}

/// Confines the program that `command` will start, and sends the listener of its filter through `channel`.
pub(super) fn confine(command: &mut Command, channel: OwnedFd) {
    let confine = move || match install() {
        Ok(listener) => send(&channel, DONE, Some(&listener)),
        Err(error) => {
            send(&channel, FAILED, None)?;
            Err(error)
        }
    };
    // SAFETY: between fork and exec only system calls are made: prctl, seccomp, sendmsg and close. Nothing allocates,
    // locks or unwinds; what the closure owns was made before the fork.
    unsafe { command.pre_exec(confine) };
}

/// Whether what came through the channel says that the filter is there.
pub(super) fn is_done(message: &[u8]) -> bool {
    message == DONE
}

fn send(channel: &OwnedFd, message: &[u8], listener: Option<&OwnedFd>) -> io::Result<()> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: [BorrowedFd<'_>; 1];
    if let Some(listener) = listener {
        fds = [std::os::fd::AsFd::as_fd(listener)];
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    sendmsg(channel, &[io::IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Makes every later `connect` and `io_uring_setup` of this process and its children a question.
fn install() -> io::Result<OwnedFd> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // Other calling conventions of the same machine (32 bits, x32) have other numbers and pass.
    let filter = [
        step(LOAD, 0, 0, 4),
        step(IF_EQUAL, 0, 4, ARCHITECTURE),
        step(LOAD, 0, 0, 0),
        step(IF_EQUAL, 1, 0, libc::SYS_connect as u32),
        step(IF_EQUAL, 0, 1, libc::SYS_io_uring_setup as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    let install = |flags: libc::c_ulong| {
        // SAFETY: `program` and the filter that it points at live through the call, which only reads them.
        let fd = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        };
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(fd as i32) }
    };
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let best = || match install(listen | FLAG_WAIT_KILLABLE_RECV) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => install(listen),
        installed => installed,
    };
    let fd = match best() {
        // Without privileges, a filter needs the promise that the program will gain none.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            // SAFETY: prctl with these numbers reads no memory.
            if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
                return Err(io::Error::last_os_error());
            }
            best()?
        }
        installed => installed?,
    };
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The next question. The kernel says `ENOENT` for one whose thread died meanwhile.
pub(super) fn receive(listener: BorrowedFd<'_>) -> io::Result<Question> {
    // SAFETY: all bits zero are a valid value of this plain structure, and the kernel wants it so.
    let mut question: libc::seccomp_notif = unsafe { zeroed() };
    // SAFETY: the request's number says how large the structure is that the kernel writes, and ours is as large.
    let answer = unsafe {
        libc::ioctl(listener.as_raw_fd(), number(0, 3, size_of::<libc::seccomp_notif>()), &raw mut question)
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    let [fd, address, length, ..] = question.data.args;
    let is_ring = i64::from(question.data.nr) == libc::SYS_io_uring_setup;
    let call = if is_ring { Call::IoUring } else { Call::Connect };
    Ok(Question { id: question.id, call, thread: question.pid, fd: fd as i32, address, length })
}

/// Whether the thread still waits. What was read of its memory was its own only if it does.
pub(super) fn is_asked(listener: BorrowedFd<'_>, question: &Question) -> bool {
    // SAFETY: the kernel reads eight bytes at the pointer, which is a live u64.
    unsafe { libc::ioctl(listener.as_raw_fd(), number(2, 1, size_of::<u64>()), &raw const question.id) == 0 }
}

/// Answers. That nobody waits any more is no error.
pub(super) fn reply(listener: BorrowedFd<'_>, question: &Question, reply: Reply) {
    let (error, flags) = match reply {
        Reply::GoOn => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Reply::Done(error) => (-error, 0),
    };
    let mut answer = libc::seccomp_notif_resp { id: question.id, val: 0, error, flags };
    // SAFETY: the request's number says how large the structure is that the kernel reads, and ours is as large.
    let _ = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            number(1, 3, size_of::<libc::seccomp_notif_resp>()),
            &raw mut answer,
        )
    };
}

/// Starts a process that lets every call go on until nobody is left who could ask, which the kernel tells since Linux
/// 5.9. It keeps nothing of ours open, so that whoever waits for the end of our output does not wait for it.
pub(super) fn leave_behind(listener: &OwnedFd) -> io::Result<()> {
    // SAFETY: other threads do not exist in the child, whatever they held stays locked: it makes system calls alone,
    // neither allocates nor unwinds, and never returns.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => let_all_go_on(listener.as_raw_fd()),
        _ => Ok(()),
    }
}

/// The life of the process that is left behind.
fn let_all_go_on(listener: i32) -> ! {
    // SAFETY: none of these calls takes memory of ours but the name, which is static and ends with a zero. What was open
    // is closed under owners that this process never comes back to. The signals whose handlers we had end it again, but
    // for the end of its terminal.
    unsafe {
        libc::dup2(listener, 0);
        if libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0) != 0 {
            (1..CLOSED_MAX).for_each(|fd| _ = libc::close(fd));
        }
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, c"onetrip-left".as_ptr());
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2] {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
    }
    loop {
        let mut polled = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one structure at the pointer, which is live.
        let answer = unsafe { libc::poll(&raw mut polled, 1, -1) };
        let is_interrupted = answer < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if is_interrupted {
            continue;
        }
        if answer < 0 || polled.revents & libc::POLLIN == 0 {
            // SAFETY: ends this process without what we had registered for our own end.
            unsafe { libc::_exit(0) }
        }
        // SAFETY: it was made the listener above, and stays open as long as this process.
        let listener = unsafe { BorrowedFd::borrow_raw(0) };
        if let Ok(question) = receive(listener) {
            reply(listener, &question, Reply::GoOn);
        }
    }
}

/// The number of seccomp's ioctl, as `_IOC` makes it: 1 writes, 3 reads and writes.
fn number(call: libc::Ioctl, direction: libc::Ioctl, bytes: usize) -> libc::Ioctl {
    direction << 30 | (bytes as libc::Ioctl) << 16 | libc::Ioctl::from(b'!') << 8 | call
}

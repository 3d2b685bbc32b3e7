//! A session's socket, whose waits are asked for or announced.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::blocking;

/// Reads what is there, and writes, even where it has to wait until the client reads.
pub(super) struct Wire<'s> {
    pub(super) stream: &'s TcpStream,
    /// Whether reading waits where nothing is there.
    pub(super) waits: bool,
}

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let flags = if self.waits { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let (count, _) = recv(self.stream, buffer, flags)?;
        Ok(count)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match send(self.stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN) => {
                blocking::announce();
                Ok(send(self.stream, bytes, SendFlags::NOSIGNAL)?)
            }
            sent => Ok(sent?),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::Mutex;
    use std::thread::{self, JoinHandle};
    use std::time::Duration;

    use super::*;
    use crate::blocking::Announcing;

    /// The client, which begins to read when it is told that the server waits.
    static CLIENT: Mutex<Option<TcpStream>> = Mutex::new(None);
    static READING: Mutex<Option<JoinHandle<usize>>> = Mutex::new(None);

    #[test]
    fn a_wait_for_the_client_is_announced_before_it_begins() {
        const BYTES: usize = 32 << 20; // more than both sockets hold
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        *CLIENT.lock().unwrap() = Some(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let (stream, _) = listener.accept().unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut wire = Wire { stream: &stream, waits: false };
        assert_eq!(wire.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let _announcing = Announcing::start(|| {
            let Some(mut client) = CLIENT.lock().unwrap().take() else { return };
            let read = move || io::copy(&mut client, &mut io::sink()).unwrap() as usize;
            *READING.lock().unwrap() = Some(thread::spawn(read));
        });
        wire.write_all(b"small").unwrap();
        assert!(READING.lock().unwrap().is_none());
        // Without a reader this does not end before its timeout.
        wire.write_all(&vec![0; BYTES]).unwrap();
        drop(stream);
        let reading = READING.lock().unwrap().take().expect("it was told");
        assert_eq!(reading.join().unwrap(), BYTES + 5);
    }
}

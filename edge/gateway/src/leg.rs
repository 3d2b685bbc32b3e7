//! One end of a connection: a socket, with TLS on it or without.

use std::io::{self, Read, Write};
use std::task::{Context, Poll};
use std::time::Duration;

use onetrip_link::LinkSpec;
use onetrip_target::tls::TlsAcceptor;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConnection, HandshakeKind, ProtocolVersion, ServerConnection};

use crate::socket::{PathTime, Socket};

/// A client's leg or the database's: plain, or with TLS.
#[derive(Debug)]
pub(crate) struct Leg {
    socket: Socket,
    tls: Option<Box<rustls::Connection>>,
    /// The path between the other end of a simulated link and the peer, of which the kernel does not know.
    beyond: PathTime,
}

impl Leg {
    pub(crate) fn plain(socket: Socket) -> Self {
        Self { socket, tls: None, beyond: PathTime::default() }
    }

    /// Shakes hands over `socket`.
    pub(crate) async fn start_tls(socket: Socket, tls: ClientConnection) -> Result<Self, HandshakeError> {
        let mut leg = Self { socket, tls: Some(Box::new(tls.into())), beyond: PathTime::default() };
        std::future::poll_fn(|cx| leg.poll_handshake(cx)).await?;
        Ok(leg)
    }

    /// Shakes hands with a client; `early` are bytes of its handshake that came already.
    pub(crate) async fn accept_tls(
        &mut self,
        acceptor: &TlsAcceptor,
        mut early: &[u8],
    ) -> Result<(), HandshakeError> {
        let mut tls = ServerConnection::new(acceptor.config()).map_err(HandshakeError::Tls)?;
        while !early.is_empty() {
            tls.read_tls(&mut early)?;
            if let Err(error) = tls.process_new_packets() {
                self.tls = Some(Box::new(tls.into()));
                // The alert tells the client why; that it may not get through changes nothing.
                let _ = std::future::poll_fn(|cx| self.poll_flush(cx)).await;
                return Err(HandshakeError::Tls(error));
            }
        }
        self.tls = Some(Box::new(tls.into()));
        std::future::poll_fn(|cx| self.poll_handshake(cx)).await
    }

    /// PostgreSQL speaks no TLS on Unix sockets.
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.socket, Socket::Tcp(_))
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Whether the client said that PostgreSQL's protocol follows (ALPN).
    pub(crate) fn has_protocol(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.alpn_protocol().is_some())
    }

    /// The certificate that the other end showed.
    pub(crate) fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.as_ref()?.peer_certificates()?.first()
    }

    /// The same leg over a simulated link, which takes this long.
    pub(crate) fn over(self, link: &LinkSpec) -> Self {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let beyond = PathTime { rtt_us: micros(link.rtt + link.jitter / 2), rtt_min_us: micros(link.rtt) };
        Self { beyond, ..self }
    }

    pub(crate) fn path_time(&self) -> Option<PathTime> {
        let near = self.socket.path_time()?;
        Some(PathTime {
            rtt_us: near.rtt_us.saturating_add(self.beyond.rtt_us),
            rtt_min_us: near.rtt_min_us.saturating_add(self.beyond.rtt_min_us),
        })
    }

    /// The version of TLS that is spoken, as `1.3`; `None` on a plain leg.
    pub(crate) fn tls_version(&self) -> Option<&'static str> {
        match self.tls.as_ref()?.protocol_version()? {
            ProtocolVersion::TLSv1_3 => Some("1.3"),
            ProtocolVersion::TLSv1_2 => Some("1.2"),
            _ => None,
        }
    }

    /// Round trips of the TLS handshake: one with TLS 1.3, unless the server asked for another key; two before.
    pub(crate) fn handshake_trips(&self) -> u32 {
        let Some(tls) = &self.tls else { return 0 };
        let repeated = tls.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest);
        if self.tls_version() == Some("1.3") && !repeated { 1 } else { 2 }
    }

    /// Reads into `into`; zero bytes are the end of the stream.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let Some(tls) = &mut self.tls else { return self.socket.poll_read(cx, into) };
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A peer that closes without saying so in TLS has closed all the same.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(0)),
                done => return Poll::Ready(done),
            }
            let mut raw = Adapter { socket: &mut self.socket, cx };
            match tls.read_tls(&mut raw) {
                Ok(_) => {
                    tls.process_new_packets()
                        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Writes some of `from`; with TLS, bytes taken are sent by this call or by [`Self::poll_flush`].
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let Some(tls) = &mut self.tls else { return self.socket.poll_write(cx, from) };
            let taken = tls.writer().write(from)?;
            let flushed = self.poll_flush(cx)?;
            if taken > 0 || from.is_empty() {
                return Poll::Ready(Ok(taken));
            }
            // TLS was full. If all of it could be sent now, there is room.
            if flushed.is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Sends what TLS has encrypted; nothing to do on a plain leg.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(tls) = &mut self.tls else { return Poll::Ready(Ok(())) };
        while tls.wants_write() {
            let mut raw = Adapter { socket: &mut self.socket, cx };
            match tls.write_tls(&mut raw) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Says that nothing more will be sent.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            if self.poll_flush(cx)?.is_pending() {
                return Poll::Pending;
            }
        }
        self.socket.poll_shutdown(cx)
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), HandshakeError>> {
        loop {
            if self.poll_flush(cx)?.is_pending() {
                return Poll::Pending;
            }
            let Some(tls) = self.tls.as_mut().filter(|tls| tls.is_handshaking()) else {
                return Poll::Ready(Ok(()));
            };
            let mut raw = Adapter { socket: &mut self.socket, cx };
            match tls.read_tls(&mut raw) {
                Ok(0) => return Poll::Ready(Err(HandshakeError::Io(io::ErrorKind::UnexpectedEof.into()))),
                Ok(_) => {
                    if let Err(error) = tls.process_new_packets() {
                        // The alert tells the server why; that it may not get through changes nothing.
                        let _ = self.poll_flush(cx);
                        return Poll::Ready(Err(HandshakeError::Tls(error)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

/// Why TLS did not come about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Tls(rustls::Error),
}

/// The socket as rustls wants it: blocking calls that say "would block".
struct Adapter<'a, 'c, 'w> {
    socket: &'a mut Socket,
    cx: &'c mut Context<'w>,
}

impl Read for Adapter<'_, '_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.socket.poll_read(self.cx, into) {
            Poll::Ready(done) => done,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Adapter<'_, '_, '_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self.socket.poll_write(self.cx, from) {
            Poll::Ready(done) => done,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

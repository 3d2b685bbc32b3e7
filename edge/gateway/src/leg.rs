//! One end of a connection that opens: a socket of the runtime's, with TLS on it or without.

use std::io::{self, Read, Write};
use std::task::{Context, Poll};
use std::time::Duration;

use onetrip_link::LinkSpec;
use onetrip_target::tls::TlsAcceptor;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConnection, ServerConnection};

use crate::channel::{Channel, HandshakeError};
use crate::line::Line;
use crate::socket::{PathTime, Socket};

/// A client's leg or the database's: plain, or with TLS.
#[derive(Debug)]
pub(crate) struct Leg {
    socket: Socket,
    channel: Channel,
    /// The path between the other end of a simulated link and the peer, of which the kernel does not know.
    beyond: PathTime,
}

impl Leg {
    pub(crate) fn plain(socket: Socket) -> Self {
        Self { socket, channel: Channel::default(), beyond: PathTime::default() }
    }

    /// Shakes hands over `socket`.
    pub(crate) async fn start_tls(socket: Socket, tls: ClientConnection) -> Result<Self, HandshakeError> {
        let mut leg = Self::plain(socket);
        leg.begin_tls(tls).await?;
        Ok(leg)
    }

    /// Shakes hands with a server that was spoken to in the clear before.
    pub(crate) async fn begin_tls(&mut self, tls: ClientConnection) -> Result<(), HandshakeError> {
        self.channel = Channel::with_tls(tls);
        std::future::poll_fn(|cx| self.poll_handshake(cx)).await
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
                self.channel = Channel::with_tls(tls);
                // The alert tells the client why; that it may not get through changes nothing.
                let _ = std::future::poll_fn(|cx| self.poll_flush(cx)).await;
                return Err(HandshakeError::Tls(error));
            }
        }
        self.channel = Channel::with_tls(tls);
        std::future::poll_fn(|cx| self.poll_handshake(cx)).await
    }

    /// PostgreSQL speaks no TLS on Unix sockets.
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.socket, Socket::Tcp(_))
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.channel.is_plain()
    }

    /// Whether the client said that PostgreSQL's protocol follows (ALPN).
    pub(crate) fn has_protocol(&self) -> bool {
        self.channel.has_protocol()
    }

    /// The certificate that the other end showed.
    pub(crate) fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.channel.peer_certificate()
    }

    /// The same leg over a simulated link, which takes this long.
    pub(crate) fn over(self, link: &LinkSpec) -> Self {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let beyond = PathTime { rtt_us: micros(link.rtt + link.jitter / 2), rtt_min_us: micros(link.rtt) };
        Self { beyond, ..self }
    }

    pub(crate) fn path_time(&self) -> Option<PathTime> {
        Some(self.socket.path_time()?.and(self.beyond))
    }

    /// The version of TLS that is spoken, as `1.3`; `None` on a plain leg.
    pub(crate) fn tls_version(&self) -> Option<&'static str> {
        self.channel.tls_version()
    }

    /// Round trips of the TLS handshake.
    pub(crate) fn handshake_trips(&self) -> u32 {
        self.channel.handshake_trips()
    }

    /// The same leg, without the runtime.
    pub(crate) fn into_line(self) -> io::Result<Line> {
        let Self { socket, channel, beyond } = self;
        let is_tcp = matches!(socket, Socket::Tcp(_));
        Ok(Line::new(socket.into_fd()?, is_tcp, channel, beyond))
    }

    /// Reads into `into`; zero bytes are the end of the stream.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        pending(self.channel.read(&mut Adapter { socket: &mut self.socket, cx }, into))
    }

    /// Writes some of `from`; with TLS, bytes taken are sent by this call or by [`Self::poll_flush`].
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        pending(self.channel.write(&mut Adapter { socket: &mut self.socket, cx }, from))
    }

    /// Sends what TLS has encrypted; nothing to do on a plain leg.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        unless_done(self.channel.flush(&mut Adapter { socket: &mut self.socket, cx })?)
    }

    /// Says that nothing more will be sent.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.channel.close(&mut Adapter { socket: &mut self.socket, cx })? {
            return Poll::Pending;
        }
        self.socket.poll_shutdown(cx)
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), HandshakeError>> {
        unless_done(self.channel.shake_hands(&mut Adapter { socket: &mut self.socket, cx })?)
    }
}

fn pending<T>(done: io::Result<T>) -> Poll<io::Result<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}

fn unless_done<E>(is_done: bool) -> Poll<Result<(), E>> {
    if is_done { Poll::Ready(Ok(())) } else { Poll::Pending }
}

/// The socket as [`Channel`] wants it: blocking calls that say "would block".
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

//! What goes over a socket: bytes as they are, or TLS. It knows no socket: whoever calls says what is read from and written to.
//! Such a `raw` end answers [`WouldBlock`](io::ErrorKind::WouldBlock) where it has nothing, or takes nothing, now.

use std::io::{self, Read, Write};

use rustls::pki_types::CertificateDer;
use rustls::{HandshakeKind, ProtocolVersion};

/// Plain, or with TLS.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    tls: Option<Box<rustls::Connection>>,
}

/// Why TLS did not come about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Tls(rustls::Error),
}

impl Channel {
    pub(crate) fn with_tls(tls: impl Into<rustls::Connection>) -> Self {
        Self { tls: Some(Box::new(tls.into())) }
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Whether the peer said that PostgreSQL's protocol follows (ALPN).
    pub(crate) fn has_protocol(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.alpn_protocol().is_some())
    }

    /// The certificate that the other end showed.
    pub(crate) fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.as_ref()?.peer_certificates()?.first()
    }

    /// The version of TLS that is spoken, as `1.3`; `None` on a plain channel.
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
    pub(crate) fn read(&mut self, raw: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return raw.read(into) };
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A peer that closes without saying so in TLS has closed all the same.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            tls.read_tls(raw)?;
            tls.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    /// Writes some of `from`; with TLS, bytes taken are sent by this call or by [`Self::flush`].
    pub(crate) fn write(&mut self, raw: &mut impl Write, from: &[u8]) -> io::Result<usize> {
        loop {
            let Some(tls) = &mut self.tls else { return raw.write(from) };
            let taken = tls.writer().write(from)?;
            let flushed = self.flush(raw)?;
            if taken > 0 || from.is_empty() {
                return Ok(taken);
            }
            // TLS was full. If all of it could be sent now, there is room.
            if !flushed {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    /// Sends what TLS has encrypted; `false` where not all of it is taken now.
    pub(crate) fn flush(&mut self, raw: &mut impl Write) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(raw) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Tells TLS, where there is one, that nothing more will be sent; `false` where that is not taken now.
    pub(crate) fn close(&mut self, raw: &mut impl Write) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush(raw)
    }

    /// Goes on with the handshake; `false` where the peer has to say, or to take, something first.
    pub(crate) fn shake_hands(&mut self, raw: &mut (impl Read + Write)) -> Result<bool, HandshakeError> {
        loop {
            if !self.flush(raw)? {
                return Ok(false);
            }
            let Some(tls) = self.tls.as_mut().filter(|tls| tls.is_handshaking()) else { return Ok(true) };
            match tls.read_tls(raw) {
                Ok(0) => return Err(HandshakeError::Io(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {
                    if let Err(error) = tls.process_new_packets() {
                        // The alert tells the peer why; that it may not get through changes nothing.
                        let _ = self.flush(raw);
                        return Err(HandshakeError::Tls(error));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

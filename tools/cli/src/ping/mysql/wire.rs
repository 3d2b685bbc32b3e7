//! A socket, with TLS on it or without.

use std::io::{self, Read, Write};

use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};
use tokio::net::TcpStream;

const READ_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub(super) struct Wire {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
    input: Vec<u8>,
}

/// Why TLS did not come about.
#[derive(Debug)]
pub(super) enum HandshakeError {
    Io(io::Error),
    Tls(rustls::Error),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Wire {
    pub(super) fn new(socket: TcpStream) -> Self {
        Self { socket, tls: None, input: vec![0; READ_BYTES] }
    }

    /// Shakes hands right behind the bytes that ask for it. Gives the round trips that it took.
    pub(super) async fn start_tls(
        &mut self,
        asked: &[u8],
        tls: ClientConnection,
    ) -> Result<u32, HandshakeError> {
        self.send(asked).await?;
        let Self { socket, tls: own, .. } = self;
        let tls = own.insert(Box::new(tls));
        loop {
            flush(socket, tls).await?;
            if !tls.is_handshaking() {
                break;
            }
            if read_tls(socket, tls).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            if let Err(error) = tls.process_new_packets() {
                // The alert tells the server why; that it may not get through changes nothing.
                let _ = flush(socket, tls).await;
                return Err(HandshakeError::Tls(error));
            }
        }
        let repeated = tls.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest);
        let is_short = tls.protocol_version() == Some(ProtocolVersion::TLSv1_3) && !repeated;
        Ok(if is_short { 1 } else { 2 })
    }

    /// The version of TLS that is spoken, as `1.3`.
    pub(super) fn tls_version(&self) -> Option<&'static str> {
        match self.tls.as_ref()?.protocol_version()? {
            ProtocolVersion::TLSv1_3 => Some("1.3"),
            ProtocolVersion::TLSv1_2 => Some("1.2"),
            _ => None,
        }
    }

    pub(super) async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Self { socket, tls, .. } = self;
        while !bytes.is_empty() {
            let sent = match tls {
                None => match socket.try_write(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        socket.writable().await?;
                        0
                    }
                    sent => sent?,
                },
                Some(tls) => {
                    let taken = tls.writer().write(bytes)?;
                    flush(socket, tls).await?;
                    taken
                }
            };
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// The next bytes; their end is an error.
    pub(super) async fn read(&mut self) -> io::Result<&[u8]> {
        let Self { socket, tls, input } = self;
        let bytes = loop {
            let Some(tls) = tls else {
                socket.readable().await?;
                match socket.try_read(input) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    bytes => break bytes?,
                }
            };
            match tls.reader().read(input) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                bytes => break bytes?,
            }
            read_tls(socket, tls).await?;
            tls.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        };
        if bytes == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(&input[..bytes]) }
    }
}

async fn flush(socket: &TcpStream, tls: &mut ClientConnection) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(&mut Raw(socket)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.writable().await?,
            sent => drop(sent?),
        }
    }
    Ok(())
}

async fn read_tls(socket: &TcpStream, tls: &mut ClientConnection) -> io::Result<usize> {
    loop {
        match tls.read_tls(&mut Raw(socket)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.readable().await?,
            read => return read,
        }
    }
}

/// The socket as TLS wants it: what would wait says so.
struct Raw<'a>(&'a TcpStream);

impl Read for Raw<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(into)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.0.try_write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

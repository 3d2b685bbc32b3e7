//! From the first byte to ReadyForQuery: encryption refused, version settled, user known.

use std::io;

use onetrip_wire::pg::{
    Authentication, FrameHeader, NegotiateProtocolVersion, PROTOCOL_3_0, Severity, Startup, StartupMessage,
    encode_sasl_mechanisms, frontend,
};
use onetrip_wire::{Reader, WireError};

use super::connection::{Context, Ends};
use super::input::Input;
use super::scram::{Exchange, Refusal, Secrets};
use crate::error::{SqlError, SqlResult};
use crate::session::settings::Settings;

/// Longest message before a client is known, in bytes.
const LOGIN_BYTES_MAX: u32 = 64 << 10;

/// Who opened a session, and what it asked for.
pub(super) struct Client {
    pub(super) user: String,
    pub(super) database: String,
    pub(super) settings: Settings,
}

/// Takes a connection through its start; `None` where it ends here, with everything said that is to be said.
pub(super) fn run(context: &Context, ends: &mut Ends<'_>, input: &mut Input) -> io::Result<Option<Client>> {
    let mut out = Vec::new();
    let result = greet(context, ends, input, &mut out);
    let client = match result {
        Ok(client) => client,
        Err(Ending::Quiet) => None,
        Err(Ending::Io(error)) => return Err(error),
        Err(Ending::Refused(error)) => {
            error.encode(&mut out, Severity::Fatal);
            None
        }
    };
    ends.sink.write_all(&out)?;
    Ok(client)
}

enum Ending {
    Quiet,
    Io(io::Error),
    Refused(Box<SqlError>),
}

impl From<io::Error> for Ending {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<SqlError> for Ending {
    fn from(error: SqlError) -> Self {
        Self::Refused(Box::new(error))
    }
}

fn greet(
    context: &Context,
    ends: &mut Ends<'_>,
    input: &mut Input,
    out: &mut Vec<u8>,
) -> Result<Option<Client>, Ending> {
    // TLS and GSSAPI may each be asked for once.
    for _ in 0..3 {
        let packet = startup_packet(ends, input)?;
        match Startup::decode(&packet) {
            Ok(Startup::SslRequest | Startup::GssEncRequest) => ends.sink.write_all(b"N")?,
            Ok(Startup::Cancel(cancel)) => {
                context.registry.cancel(cancel.process_id, cancel.key);
                return Ok(None);
            }
            Ok(Startup::Session(message)) => return open(context, ends, input, &message, out).map(Some),
            Err(WireError::UnsupportedProtocol { major, minor }) => {
                let message =
                    format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
                return Err(SqlError::new("0A000", message).into());
            }
            Err(_) => return Err(SqlError::protocol("invalid startup packet layout").into()),
        }
    }
    Err(SqlError::protocol("too many encryption requests").into())
}

fn startup_packet(ends: &mut Ends<'_>, input: &mut Input) -> Result<Vec<u8>, Ending> {
    loop {
        match Startup::peek_len(input.unread()) {
            Some(Err(_)) => return Err(SqlError::protocol("invalid length of startup packet").into()),
            Some(Ok(length)) if input.unread().len() >= length => {
                let packet = input.unread()[4..length].to_vec();
                input.consume(length);
                return Ok(packet);
            }
            _ => {}
        }
        if !input.fill(ends.source, LOGIN_BYTES_MAX)? {
            return Err(Ending::Quiet);
        }
    }
}

fn open(
    context: &Context,
    ends: &mut Ends<'_>,
    input: &mut Input,
    message: &StartupMessage<'_>,
    out: &mut Vec<u8>,
) -> Result<Client, Ending> {
    let unknown_options: Vec<_> =
        message.parameters.iter().map(|(name, _)| name).filter(|name| name.starts_with(b"_pq_.")).collect();
    if message.version > PROTOCOL_3_0 || !unknown_options.is_empty() {
        NegotiateProtocolVersion { version: PROTOCOL_3_0, unknown_options }.encode(out);
    }
    let text =
        |name: &str| message.parameters.get(name).map(|value| String::from_utf8_lossy(value).into_owned());
    let user = text("user")
        .filter(|user| !user.is_empty())
        .ok_or_else(|| SqlError::new("28000", "no PostgreSQL user name specified in startup packet"))?;
    if let Some(secrets) = &context.secrets {
        authenticate(secrets, &user, ends, input, out)?;
    }
    let database = text("database").filter(|name| !name.is_empty()).unwrap_or_else(|| user.clone());
    let mut settings = Settings::new(&user);
    for (name, value) in message.parameters.iter() {
        apply(&mut settings, &String::from_utf8_lossy(name), &String::from_utf8_lossy(value))?;
    }
    settings.start();
    Authentication::Ok.encode(out);
    Ok(Client { user, database, settings })
}

fn apply(settings: &mut Settings, name: &str, value: &str) -> SqlResult<()> {
    match name {
        "user" | "database" => Ok(()),
        "replication" => {
            let is_off = matches!(value, "false" | "off" | "no" | "0");
            if is_off { Ok(()) } else { Err(SqlError::unsupported("replication is not supported")) }
        }
        "options" => {
            let mut words = value.split_whitespace();
            while let Some(word) = words.next() {
                let setting = match word {
                    "-c" => words.next(),
                    word => word.strip_prefix("--").or_else(|| word.strip_prefix("-c")),
                };
                let (name, value) = setting.and_then(|setting| setting.split_once('=')).ok_or_else(|| {
                    SqlError::new("42601", format!("invalid command-line argument: {word}"))
                })?;
                settings.set(&name.replace('-', "_"), Some(value), false)?;
            }
            Ok(())
        }
        name if name.starts_with("_pq_.") => Ok(()),
        name => settings.set(name, Some(value), false),
    }
}

fn authenticate(
    secrets: &Secrets,
    user: &str,
    ends: &mut Ends<'_>,
    input: &mut Input,
    out: &mut Vec<u8>,
) -> Result<(), Ending> {
    const MECHANISM: &[u8] = b"SCRAM-SHA-256";
    let refuse = |refusal| match refusal {
        Refusal::Malformed => SqlError::protocol("malformed SCRAM message"),
        Refusal::Denied => {
            SqlError::new("28P01", format!("password authentication failed for user \"{user}\""))
        }
    };
    encode_sasl_mechanisms(out, [MECHANISM]);
    send(ends, out)?;
    let body = password_message(ends, input)?;
    let mut reader = Reader::new(&body);
    let malformed = |_: WireError| SqlError::protocol("malformed SASLInitialResponse");
    if reader.c_str().map_err(malformed)? != MECHANISM {
        return Err(SqlError::protocol("client selected an invalid SASL authentication mechanism").into());
    }
    let first = reader.value().map_err(malformed)?.unwrap_or_default();
    let exchange = Exchange::start(secrets, user, first, &Exchange::nonce()?).map_err(refuse)?;
    Authentication::SaslContinue(exchange.server_first().as_bytes()).encode(out);
    send(ends, out)?;
    let body = password_message(ends, input)?;
    let last = exchange.finish(&body).map_err(refuse)?;
    Authentication::SaslFinal(last.as_bytes()).encode(out);
    Ok(())
}

fn send(ends: &mut Ends<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    ends.sink.write_all(out)?;
    out.clear();
    Ok(())
}

fn password_message(ends: &mut Ends<'_>, input: &mut Input) -> Result<Vec<u8>, Ending> {
    loop {
        match input.next_frame(LOGIN_BYTES_MAX) {
            Ok(Some(frame)) if frame.tag == frontend::PASSWORD => return Ok(input.body(frame).to_vec()),
            Ok(Some(_)) => return Err(SqlError::protocol("expected a password message").into()),
            Ok(None) => {}
            Err(_) => return Err(SqlError::protocol("invalid message length").into()),
        }
        if FrameHeader::peek(input.unread(), LOGIN_BYTES_MAX).is_some_and(|header| header.is_err()) {
            return Err(SqlError::protocol("invalid message length").into());
        }
        if !input.fill(ends.source, LOGIN_BYTES_MAX)? {
            return Err(Ending::Quiet);
        }
    }
}

//! From settings to a session: hosts in their order, TLS as sslmode says, and the kind of server that is wanted.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use onetrip_target::address::{Address, candidates};
use onetrip_target::tls::{TlsPlan, connector};
use onetrip_target::{Host, tls::TlsError};

use super::Client;
use super::socket::Socket;
use crate::config::TargetSession;
use crate::core::{Connection, Opening, Security, Step};
use crate::{Config, ConnectError, Error};

/// Connects to the first server that will do.
pub(super) fn connect(config: Arc<Config>) -> Result<Client, Error> {
    let wanted = config.target_session()?;
    match connect_to(&config, wanted) {
        Err(Error::Connect(error)) if wanted == TargetSession::PreferStandby && is_about_traits(&error) => {
            connect_to(&config, TargetSession::Any)
        }
        connected => connected,
    }
}

fn is_about_traits(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Attributes { .. })
}

fn connect_to(config: &Arc<Config>, wanted: TargetSession) -> Result<Client, Error> {
    let plan = connector(&config.conninfo).map_err(ConnectError::from)?;
    let mut failed: Option<Error> = None;
    for (host, address) in candidates(&config.conninfo) {
        let attempt = address.map_err(|error| ConnectError::from(error).into()).and_then(|address| {
            let client = open(config, host, &address, plan.as_ref())?;
            check_traits(client, wanted)
        });
        match attempt {
            Ok(client) => return Ok(client),
            // Another server would refuse the password as well.
            Err(error) if is_final(&error) => return Err(error),
            // That a server was the wrong one tells more than that another was down.
            Err(error) => match &failed {
                Some(Error::Connect(known)) if is_about_traits(known) => {}
                _ => failed = Some(error),
            },
        }
    }
    Err(failed.unwrap_or(Error::Closed))
}

fn is_final(error: &Error) -> bool {
    let Error::Connect(error) = error else { return false };
    match &**error {
        ConnectError::Refused { source, .. } => source.sqlstate().starts_with("28"),
        ConnectError::NoPassword { .. } | ConnectError::Forbidden { .. } | ConnectError::Impostor { .. } => {
            true
        }
        _ => false,
    }
}

fn check_traits(mut client: Client, wanted: TargetSession) -> Result<Client, Error> {
    if wanted == TargetSession::Any {
        return Ok(client);
    }
    let (is_standby, is_read_only) = match client.setting("in_hot_standby") {
        // Servers from 14 on tell without being asked.
        Some(standby) => {
            let is_standby = standby == "on";
            (is_standby, is_standby || client.setting("default_transaction_read_only") == Some("on"))
        }
        None => {
            let mut rows = client
                .query("SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::bool", &[])?;
            let row = rows.next_row()?.ok_or(Error::Protocol("it returns no row where there must be one"))?;
            (row.get(0)?, row.get(1)?)
        }
    };
    if wanted.accepts(is_standby, is_read_only) {
        return Ok(client);
    }
    Err(ConnectError::Attributes { host: client.host.to_string(), wanted: wanted.as_str() }.into())
}

/// Opens a session with one server at one address.
fn open(
    config: &Arc<Config>,
    host: &Host,
    address: &Address,
    plan: Option<&TlsPlan>,
) -> Result<Client, Error> {
    let deadline = config.conninfo.connect_timeout.map(|timeout| Instant::now() + timeout);
    let plan = plan.filter(|plan| plan.applies_to(host));
    let mut attempts = Vec::new();
    match plan {
        Some(plan) if plan.starts_plain() => {
            attempts.extend([Security::Plain, Security::Tls(plan.clone())]);
        }
        Some(plan) if plan.may_be_plain() => {
            attempts.extend([Security::Tls(plan.clone()), Security::Plain]);
        }
        Some(plan) => attempts.push(Security::Tls(plan.clone())),
        None => attempts.push(Security::Plain),
    }
    let mut failed = None;
    for security in attempts {
        let is_tls = matches!(security, Security::Tls(_));
        match attempt(config, host, address, security, deadline) {
            Ok((socket, core)) => return Ok(Client::new(config, host, address, socket, core)),
            Err(error) if may_try_again(&error, is_tls) => failed = failed.or(Some(error)),
            Err(error) => return Err(failed.unwrap_or(error).into()),
        }
    }
    Err(failed.map_or(Error::Closed, Error::from))
}

/// Whether the other of plain and TLS could help: TLS failed, or the server let nobody in this way.
fn may_try_again(error: &ConnectError, is_tls: bool) -> bool {
    match error {
        ConnectError::Tls(TlsError::Handshake { .. } | TlsError::Certificate { .. }) => is_tls,
        ConnectError::Refused { source, .. } => source.sqlstate() == "28000",
        _ => false,
    }
}

fn attempt(
    config: &Config,
    host: &Host,
    address: &Address,
    security: Security,
    deadline: Option<Instant>,
) -> Result<(Socket, Connection), ConnectError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::TimedOut => ConnectError::TimedOut { host: host.to_string() },
        _ => ConnectError::unreachable(host, error),
    };
    let socket = Socket::connect(address, deadline).map_err(failed)?;
    let mut opening = Opening::new(host.clone(), config.login(host)?, security, config.limits.clone())?;
    loop {
        loop {
            let output = opening.output();
            if output.is_empty() {
                break;
            }
            match socket.send(output).map_err(failed)? {
                Some(count) => opening.sent(count),
                None if socket.wait(true, deadline, None).map_err(failed)? => {}
                None => return Err(failed(io::ErrorKind::TimedOut.into())),
            }
        }
        if !socket.wait(false, deadline, None).map_err(failed)? {
            return Err(failed(io::ErrorKind::TimedOut.into()));
        }
        let Some(count) = socket.receive(opening.input_space()).map_err(failed)? else { continue };
        if opening.received(count)? == Step::Open {
            return Ok((socket, opening.into_connection()));
        }
    }
}

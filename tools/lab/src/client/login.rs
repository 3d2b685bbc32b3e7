//! How a session proves who it is: trust, a password as it is, MD5, SCRAM-SHA-256. No TLS: the gateway speaks it.

use onetrip_target::Secret;
use onetrip_wire::pg::{
    Authentication, PROTOCOL_3_0, backend, check_scram_iterations, encode_password, encode_sasl_initial,
    encode_sasl_response, encode_startup,
};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use super::{Client, refusal};
use crate::LabError;

/// Who logs in, where to, and where its tables are.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) password: Option<Secret>,
    /// Schema of the tables, where it is not the usual one.
    pub(crate) schema: Option<String>,
}

impl Login {
    fn password(&self) -> Result<&str, LabError> {
        let missing = || LabError::Login("the server asks for a password and there is none".to_owned());
        self.password.as_ref().map(Secret::reveal).ok_or_else(missing)
    }
}

/// Sends the startup packet and answers until the session is ready.
pub(super) fn log_in(client: &mut Client, login: &Login) -> Result<(), LabError> {
    let mut pairs = vec![
        ("user", login.user.as_str()),
        ("database", login.database.as_str()),
        ("application_name", "onetrip lab"),
        ("client_encoding", "UTF8"),
    ];
    pairs.extend(login.schema.as_deref().map(|schema| ("search_path", schema)));
    let pairs = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    encode_startup(&mut client.output, PROTOCOL_3_0, pairs);
    client.send(0)?;
    let mut scram = None;
    loop {
        let header = client.next_header()?;
        match header.tag {
            backend::ERROR_RESPONSE => return Err(refusal("log in", client.body(&header))?),
            backend::READY_FOR_QUERY => {
                client.skip(&header);
                return Ok(());
            }
            backend::AUTHENTICATION => {
                let step = Authentication::decode(client.body(&header))?;
                let answer = answer_to(&step, login, &mut scram)?;
                client.skip(&header);
                if !answer.is_empty() {
                    client.output.extend_from_slice(&answer);
                    client.send(0)?;
                }
            }
            _ => client.skip(&header),
        }
    }
}

/// The message that answers a request; empty where nothing is to be said.
fn answer_to(
    step: &Authentication<'_>,
    login: &Login,
    scram: &mut Option<ScramSha256>,
) -> Result<Vec<u8>, LabError> {
    let failed = |error: std::io::Error| LabError::Login(error.to_string());
    let unasked = || LabError::Login("the server goes on with an exchange that it did not begin".to_owned());
    let mut answer = Vec::new();
    match step {
        Authentication::Ok => {}
        Authentication::CleartextPassword => encode_password(&mut answer, login.password()?.as_bytes()),
        Authentication::Md5Password { salt } => {
            let hash = md5_hash(login.user.as_bytes(), login.password()?.as_bytes(), *salt);
            encode_password(&mut answer, hash.as_bytes());
        }
        Authentication::Sasl { .. } => {
            let exchange = ScramSha256::new(login.password()?.as_bytes(), ChannelBinding::unsupported());
            encode_sasl_initial(&mut answer, SCRAM_SHA_256.as_bytes(), exchange.message());
            *scram = Some(exchange);
        }
        Authentication::SaslContinue(data) => {
            let exchange = scram.as_mut().ok_or_else(unasked)?;
            check_scram_iterations(data).map_err(|what| LabError::Login(what.to_owned()))?;
            exchange.update(data).map_err(failed)?;
            encode_sasl_response(&mut answer, exchange.message());
        }
        Authentication::SaslFinal(data) => {
            scram.as_mut().ok_or_else(unasked)?.finish(data).map_err(failed)?
        }
        Authentication::Other { kind, .. } => {
            return Err(LabError::Login(format!("the server wants authentication of kind {kind}")));
        }
    }
    Ok(answer)
}

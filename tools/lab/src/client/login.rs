//! How a session proves who it is. No TLS: the gateway speaks it.

use onetrip_login::{Channel, ChannelBinding, Dialogue, Heard, LoginError};
use onetrip_target::{RequireAuth, Secret};
use onetrip_wire::pg::PROTOCOL_3_0;

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
    fn to_dialogue(&self) -> onetrip_login::Login {
        let pairs = [
            ("database", Some(self.database.as_str())),
            ("application_name", Some("onetrip lab")),
            ("client_encoding", Some("UTF8")),
            ("search_path", self.schema.as_deref()),
        ];
        let pairs = pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        onetrip_login::Login {
            user: self.user.clone(),
            password: self.password.clone(),
            parameters: pairs.collect(),
            versions: (PROTOCOL_3_0, PROTOCOL_3_0),
            require_auth: RequireAuth::default(),
            channel_binding: ChannelBinding::Disable,
        }
    }
}

/// Sends the startup packet and answers until the session is ready.
pub(super) fn log_in(client: &mut Client, login: &Login) -> Result<(), LabError> {
    let mut dialogue = Dialogue::start(login.to_dialogue(), &mut client.output);
    client.send(0)?;
    loop {
        let header = client.next_header()?;
        let mut answer = Vec::new();
        let heard = dialogue.handle(header.tag, client.body(&header), Channel::Plain, &mut answer);
        let is_ready = match heard {
            Ok(heard) => matches!(heard, Heard::Ready(_)),
            Err(LoginError::Refused { body }) => return Err(refusal("log in", &body)?),
            Err(error) => return Err(LabError::Login(error)),
        };
        client.skip(&header);
        if is_ready {
            return Ok(());
        }
        if !answer.is_empty() {
            client.output.extend_from_slice(&answer);
            client.send(0)?;
        }
    }
}

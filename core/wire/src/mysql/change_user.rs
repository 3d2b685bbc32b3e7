use super::capabilities::Capabilities;
use super::connect_attributes::ConnectAttributes;
use super::primitives::{put_c_str, put_short_bytes};
use super::tags::command;
use crate::{Reader, WireError};

/// `COM_CHANGE_USER`: another login on the same connection; what was of the session goes.
///
/// Source: MySQL Internals, "COM_CHANGE_USER". What follows is like after a
/// [`HandshakeResponse`](super::HandshakeResponse).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// Who logs in.
    pub user: &'a [u8],
    /// Answer to the challenge.
    pub answer: &'a [u8],
    /// Database to use; empty is none.
    pub database: &'a [u8],
    /// The fields that old clients leave out.
    pub more: Option<ChangeUserMore<'a>>,
}

/// The last fields of a [`ChangeUser`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeUserMore<'a> {
    /// Character set and collation.
    pub character_set: u16,
    /// Name of the way to log in; only with PLUGIN_AUTH.
    pub plugin: Option<&'a [u8]>,
    /// Only with CONNECT_ATTRS, and clients may leave it out.
    pub attributes: Option<ConnectAttributes<'a>>,
}

impl<'a> ChangeUser<'a> {
    /// Decodes the payload under the connection's capabilities.
    pub fn decode(body: &'a [u8], capabilities: Capabilities) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        reader.tag(command::CHANGE_USER)?;
        let user = reader.c_str()?;
        let is_secure = capabilities.has(Capabilities::SECURE_CONNECTION);
        let answer = if is_secure { reader.short_bytes()? } else { reader.c_str()? };
        let database = reader.c_str()?;
        let more =
            if reader.is_at_end() { None } else { Some(ChangeUserMore::read(&mut reader, capabilities)?) };
        reader.finish().map(|()| Self { user, answer, database, more })
    }

    /// Appends the payload for a connection with these capabilities.
    pub fn encode(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        out.push(command::CHANGE_USER);
        put_c_str(out, self.user);
        if capabilities.has(Capabilities::SECURE_CONNECTION) {
            put_short_bytes(out, self.answer);
        } else {
            put_c_str(out, self.answer);
        }
        put_c_str(out, self.database);
        if let Some(more) = &self.more {
            out.extend_from_slice(&more.character_set.to_le_bytes());
            if let Some(plugin) = more.plugin {
                put_c_str(out, plugin);
            }
            if let Some(attributes) = &more.attributes {
                attributes.put(out);
            }
        }
    }
}

impl<'a> ChangeUserMore<'a> {
    fn read(reader: &mut Reader<'a>, capabilities: Capabilities) -> Result<Self, WireError> {
        let character_set = reader.u16_le()?;
        let has_plugin = capabilities.has(Capabilities::PLUGIN_AUTH);
        let plugin = if has_plugin { Some(reader.c_str()?) } else { None };
        let has_attributes = capabilities.has(Capabilities::CONNECT_ATTRS) && !reader.is_at_end();
        let attributes = if has_attributes { Some(ConnectAttributes::read(reader)?) } else { None };
        Ok(Self { character_set, plugin, attributes })
    }
}

use super::frame::{frame, put_c_str};
use super::tags::backend;
use crate::{Reader, WireError};

/// `Authentication` ('R'): what the server wants to know next about who is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// The client is let in.
    Ok,
    /// The password as it is.
    CleartextPassword,
    /// The password hashed with MD5 and this salt.
    Md5Password {
        /// Four random bytes of the server.
        salt: [u8; 4],
    },
    /// One of these SASL mechanisms, NUL-terminated names ended by an empty one.
    Sasl {
        /// The list as sent; see [`Authentication::mechanisms`].
        mechanisms: &'a [u8],
    },
    /// The next step of a SASL exchange.
    SaslContinue(&'a [u8]),
    /// The last step of a SASL exchange.
    SaslFinal(&'a [u8]),
    /// GSSAPI, SSPI and others: relayed as they are.
    Other {
        /// The Int32 that names the kind.
        kind: u32,
        /// Its data.
        data: &'a [u8],
    },
}

impl<'a> Authentication<'a> {
    /// Decodes the body of an Authentication message.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let decoded = match reader.u32()? {
            0 => Self::Ok,
            3 => Self::CleartextPassword,
            5 => {
                let salt = reader.bytes(4)?;
                Self::Md5Password { salt: [salt[0], salt[1], salt[2], salt[3]] }
            }
            10 => return Ok(Self::Sasl { mechanisms: reader.rest() }),
            11 => return Ok(Self::SaslContinue(reader.rest())),
            12 => return Ok(Self::SaslFinal(reader.rest())),
            kind => return Ok(Self::Other { kind, data: reader.rest() }),
        };
        reader.finish().map(|()| decoded)
    }

    /// Names of the SASL mechanisms that the server offers; empty for other kinds.
    pub fn mechanisms(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let list = match *self {
            Self::Sasl { mechanisms } => mechanisms,
            _ => &[],
        };
        list.split(|byte| *byte == 0).take_while(|name| !name.is_empty())
    }

    /// What people call the way of logging in that a kind asks for, where this codec has no name of its own for it.
    pub fn kind_name(kind: u32) -> String {
        match kind {
            2 => "Kerberos V5".to_owned(),
            7 | 8 => "GSSAPI".to_owned(),
            9 => "SSPI".to_owned(),
            kind => format!("method {kind}"),
        }
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, data): (u32, &[u8]) = match self {
            Self::Ok => (0, &[]),
            Self::CleartextPassword => (3, &[]),
            Self::Md5Password { salt } => (5, salt),
            Self::Sasl { mechanisms } => (10, mechanisms),
            Self::SaslContinue(data) => (11, data),
            Self::SaslFinal(data) => (12, data),
            Self::Other { kind, data } => (*kind, data),
        };
        frame(out, backend::AUTHENTICATION, |out| {
            out.extend_from_slice(&kind.to_be_bytes());
            out.extend_from_slice(data);
        });
    }
}

/// Appends an AuthenticationSASL that offers `mechanisms`.
pub fn encode_sasl_mechanisms<'m>(out: &mut Vec<u8>, mechanisms: impl IntoIterator<Item = &'m [u8]>) {
    frame(out, backend::AUTHENTICATION, |out| {
        out.extend_from_slice(&10u32.to_be_bytes());
        for name in mechanisms {
            put_c_str(out, name);
        }
        out.push(0);
    });
}

/// Why a client is not let in, or does not want to be. The texts name no server: who knows its address adds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The server said no.
    #[error("it refuses the login")]
    Refused {
        /// The body of its ErrorResponse.
        body: Vec<u8>,
    },
    /// A password is needed, and there is none.
    #[error("it asks for a password ({method}), and there is none")]
    NoPassword {
        /// How it would be sent.
        method: &'static str,
    },
    /// A setting forbids what the server asks for.
    #[error("it asks for {method}, which {setting} does not allow")]
    Forbidden {
        /// What it asks for.
        method: &'static str,
        /// The setting.
        setting: &'static str,
    },
    /// The server asks for an authentication that does not exist here.
    #[error("it asks for {method}, which is not supported")]
    Unsupported {
        /// What it asks for, without characters that could command a terminal.
        method: String,
    },
    /// The server did not prove by SCRAM that it knows the password.
    #[error("it could not prove that it knows the password")]
    Impostor,
    /// The server did what the protocol does not allow here.
    #[error("it broke the protocol: {0}")]
    Protocol(String),
}

//! What the lab itself asks a database: by onetrip's client, near, and counted by nobody.

use onetrip_client::{Config, Error, blocking};

use crate::LabError;

/// Beginning of a statement that an error shows.
const SHOWN_CHARACTERS: usize = 60;

/// A session without distance.
pub(crate) struct Session(blocking::Client);

impl Session {
    pub(super) fn open(mut config: Config) -> Result<Self, LabError> {
        config.conninfo.application_name = Some("onetrip lab".to_owned());
        Ok(Self(blocking::Client::connect_with(config)?))
    }

    /// Runs statements by the simple protocol and returns the first column of the last one's first row, if there is one.
    pub(crate) fn ask(&mut self, text: &str) -> Result<Option<String>, LabError> {
        let done = self.0.run_script(text, false).map_err(|error| refused(text, error))?;
        let Some(rows) = done.last().and_then(|done| done.rows.as_ref()) else { return Ok(None) };
        match rows.rows().next() {
            Some(row) => Ok(row.text(0)?.map(str::to_owned)),
            None => Ok(None),
        }
    }

    /// Says good-bye.
    pub(crate) fn close(self) {
        self.0.close();
    }
}

fn refused(statement: &str, error: Error) -> LabError {
    match error.server() {
        Some(said) => LabError::Refused {
            statement: statement.chars().take(SHOWN_CHARACTERS).collect(),
            sqlstate: said.sqlstate().to_owned(),
            message: said.message().to_owned(),
        },
        None => LabError::Client(error),
    }
}

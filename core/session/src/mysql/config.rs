use std::sync::Arc;

use onetrip_ledger::ValueHasher;

use crate::facts::Common;
use crate::texts::Texts;

/// What a watched MySQL session is told at its start.
#[derive(Debug, Clone)]
pub struct MysqlConfig {
    /// Hashes values, with one key for the whole trace.
    pub hasher: ValueHasher,
    /// Parameters' texts are kept in the trace.
    pub keep_values: bool,
    /// TLS is taken out of the server's greeting: whoever asked for that says that the way to the database is safe without.
    pub hides_tls: bool,
    /// What the sessions of one gateway share; of it, the counts.
    pub common: Arc<Common>,
    /// Texts that they share.
    pub texts: Arc<Texts>,
}

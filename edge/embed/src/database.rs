//! Opening the SQLite file the way every session needs it.

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use crate::options::ServeOptions;

/// Opens a connection; `makes_wal` is for the first one of a server.
pub(crate) fn open(options: &ServeOptions, makes_wal: bool) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&options.database, flags)?;
    connection.busy_timeout(options.lock_timeout)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Without these, "text" in double quotes would be a string where no such column exists.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    connection.set_limit(
        Limit::SQLITE_LIMIT_LENGTH,
        i32::try_from(options.message_bytes_max).unwrap_or(i32::MAX),
    )?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 1)?; // VACUUM needs one
    if makes_wal {
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    }
    connection.execute_batch(&format!(
        "PRAGMA foreign_keys = ON; PRAGMA case_sensitive_like = ON; PRAGMA temp_store = MEMORY; \
         PRAGMA synchronous = {}; PRAGMA cache_size = -{};",
        options.durability.pragma(),
        options.cache_kib
    ))?;
    rusqlite::vtab::series::load_module(&connection)?;
    Ok(connection)
}

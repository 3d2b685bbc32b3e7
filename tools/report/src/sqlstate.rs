//! What SQLSTATEs are called, and what to do about those that keep a session from opening.

/// PostgreSQL's name of a frequent SQLSTATE (its manual's appendix A).
pub(crate) fn condition(sqlstate: &str) -> Option<&'static str> {
    Some(match sqlstate {
        "08006" => "connection failure",
        "08P01" => "protocol violation",
        "0A000" => "feature not supported",
        "22001" => "string data right truncation",
        "22003" => "numeric value out of range",
        "22007" => "invalid datetime format",
        "22012" => "division by zero",
        "22P02" => "invalid text representation",
        "23502" => "not null violation",
        "23503" => "foreign key violation",
        "23505" => "unique violation",
        "23514" => "check violation",
        "25001" => "active SQL transaction",
        "25006" => "read only SQL transaction",
        "25P02" => "in failed SQL transaction",
        "25P03" => "idle in transaction session timeout",
        "26000" => "invalid SQL statement name",
        "28000" => "invalid authorization specification",
        "28P01" => "invalid password",
        "34000" => "invalid cursor name",
        "3D000" => "invalid catalog name",
        "3F000" => "invalid schema name",
        "40001" => "serialization failure",
        "40P01" => "deadlock detected",
        "42501" => "insufficient privilege",
        "42601" => "syntax error",
        "42703" => "undefined column",
        "42704" => "undefined object",
        "42804" => "datatype mismatch",
        "42883" => "undefined function",
        "42P01" => "undefined table",
        "42P05" => "duplicate prepared statement",
        "42P07" => "duplicate table",
        "42P18" => "indeterminate datatype",
        "53100" => "disk full",
        "53200" => "out of memory",
        "53300" => "too many connections",
        "55P03" => "lock not available",
        "57014" => "query canceled",
        "57P01" => "admin shutdown",
        "57P02" => "crash shutdown",
        "57P03" => "cannot connect now",
        "P0001" => "raise exception",
        "XX000" => "internal error",
        _ => return None,
    })
}

/// What opens a session that was refused so; servers have more than one reason for a code, and `message` tells them apart.
pub(crate) fn way_in(sqlstate: &str, message: &str) -> Option<&'static str> {
    Some(match sqlstate {
        "08001" | "08006" => {
            "Is the database running, and is this its address? Set --upstream, or PGHOST and PGPORT."
        }
        "28P01" => "Check the user and the password that the program has.",
        "28000" if message.starts_with("SCRAM cannot pass") => {
            "Let the program connect with channel_binding=disable (PGCHANNELBINDING), or give onetrip the database's own \
             certificate (--tls-cert, --tls-key), or --upstream with sslmode=disable if nobody can listen on the way."
        }
        "28000" if message.contains("pg_hba.conf") => {
            "The server's pg_hba.conf has to let this user in from the gateway's address."
        }
        "28000" => "Check the user that the program names, and its right to log in.",
        "3D000" => "Create the database, or name another one.",
        "42501" => "Grant the user CONNECT on the database.",
        "53300" if message.contains("file descriptors") => {
            "Raise the gateway's limit on open files (`ulimit -n`, LimitNOFILE), or open fewer connections at once."
        }
        "53300" => "Close some connections, or raise the server's max_connections.",
        "57P03" => "The server is starting or stopping: try again.",
        _ => return None,
    })
}

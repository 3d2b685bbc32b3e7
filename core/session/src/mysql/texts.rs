//! Commands without a text, as reports name them: by a statement that means the same, with the command's name in a comment.

use onetrip_wire::mysql::command;

/// What stands for a command that has no text of its own.
pub(super) fn of_command(code: u8) -> &'static str {
    match code {
        // No statement at all: it only asks whether the server answers.
        command::PING => "/* COM_PING */",
        // Both give the session back all of its settings.
        command::RESET_CONNECTION => "RESET ALL /* COM_RESET_CONNECTION */",
        command::CHANGE_USER => "RESET ALL /* COM_CHANGE_USER */",
        command::FIELD_LIST => "SHOW COLUMNS /* COM_FIELD_LIST */",
        command::STATISTICS => "SHOW STATUS /* COM_STATISTICS */",
        command::PROCESS_INFO => "SHOW PROCESSLIST /* COM_PROCESS_INFO */",
        command::SET_OPTION => "SET MULTI_STATEMENTS /* COM_SET_OPTION */",
        command::PROCESS_KILL => "KILL /* COM_PROCESS_KILL */",
        command::REFRESH => "FLUSH /* COM_REFRESH */",
        command::SHUTDOWN => "SHUTDOWN /* COM_SHUTDOWN */",
        command::DEBUG => "DEBUG /* COM_DEBUG */",
        command::CREATE_DB => "CREATE DATABASE /* COM_CREATE_DB */",
        command::DROP_DB => "DROP DATABASE /* COM_DROP_DB */",
        command::REGISTER_REPLICA => "REPLICATION /* COM_REGISTER_SLAVE */",
        command::BINLOG_DUMP => "REPLICATION /* COM_BINLOG_DUMP */",
        command::BINLOG_DUMP_GTID => "REPLICATION /* COM_BINLOG_DUMP_GTID */",
        _ => "COMMAND /* not known */",
    }
}

/// First bytes of the payloads that a client sends as commands.
///
/// Source: MySQL Internals, "Command Phase"; MariaDB Knowledge Base, "2 - Text Protocol", "3 - Binary Protocol".
pub mod command {
    /// COM_SLEEP; the server's own, refused from a client.
    pub const SLEEP: u8 = 0x00;
    /// COM_QUIT.
    pub const QUIT: u8 = 0x01;
    /// COM_INIT_DB.
    pub const INIT_DB: u8 = 0x02;
    /// COM_QUERY.
    pub const QUERY: u8 = 0x03;
    /// COM_FIELD_LIST.
    pub const FIELD_LIST: u8 = 0x04;
    /// COM_CREATE_DB.
    pub const CREATE_DB: u8 = 0x05;
    /// COM_DROP_DB.
    pub const DROP_DB: u8 = 0x06;
    /// COM_REFRESH.
    pub const REFRESH: u8 = 0x07;
    /// COM_SHUTDOWN.
    pub const SHUTDOWN: u8 = 0x08;
    /// COM_STATISTICS.
    pub const STATISTICS: u8 = 0x09;
    /// COM_PROCESS_INFO.
    pub const PROCESS_INFO: u8 = 0x0a;
    /// COM_CONNECT; the server's own, refused from a client.
    pub const CONNECT: u8 = 0x0b;
    /// COM_PROCESS_KILL.
    pub const PROCESS_KILL: u8 = 0x0c;
    /// COM_DEBUG.
    pub const DEBUG: u8 = 0x0d;
    /// COM_PING.
    pub const PING: u8 = 0x0e;
    /// COM_TIME; the server's own, refused from a client.
    pub const TIME: u8 = 0x0f;
    /// COM_DELAYED_INSERT; the server's own, refused from a client.
    pub const DELAYED_INSERT: u8 = 0x10;
    /// COM_CHANGE_USER.
    pub const CHANGE_USER: u8 = 0x11;
    /// COM_BINLOG_DUMP.
    pub const BINLOG_DUMP: u8 = 0x12;
    /// COM_TABLE_DUMP.
    pub const TABLE_DUMP: u8 = 0x13;
    /// COM_CONNECT_OUT; the server's own, refused from a client.
    pub const CONNECT_OUT: u8 = 0x14;
    /// COM_REGISTER_SLAVE.
    pub const REGISTER_REPLICA: u8 = 0x15;
    /// COM_STMT_PREPARE.
    pub const STMT_PREPARE: u8 = 0x16;
    /// COM_STMT_EXECUTE.
    pub const STMT_EXECUTE: u8 = 0x17;
    /// COM_STMT_SEND_LONG_DATA.
    pub const STMT_SEND_LONG_DATA: u8 = 0x18;
    /// COM_STMT_CLOSE.
    pub const STMT_CLOSE: u8 = 0x19;
    /// COM_STMT_RESET.
    pub const STMT_RESET: u8 = 0x1a;
    /// COM_SET_OPTION.
    pub const SET_OPTION: u8 = 0x1b;
    /// COM_STMT_FETCH.
    pub const STMT_FETCH: u8 = 0x1c;
    /// COM_DAEMON; the server's own, refused from a client.
    pub const DAEMON: u8 = 0x1d;
    /// COM_BINLOG_DUMP_GTID.
    pub const BINLOG_DUMP_GTID: u8 = 0x1e;
    /// COM_RESET_CONNECTION.
    pub const RESET_CONNECTION: u8 = 0x1f;
    /// COM_CLONE (MySQL 8; not verified on 8.x).
    pub const CLONE: u8 = 0x20;
    /// COM_SUBSCRIBE_GROUP_REPLICATION_STREAM (MySQL 8; not verified on 8.x).
    pub const SUBSCRIBE_GROUP_REPLICATION_STREAM: u8 = 0x21;
    /// COM_STMT_BULK_EXECUTE of MariaDB.
    pub const STMT_BULK_EXECUTE: u8 = 0xfa;
}

/// First bytes of the payloads that a server sends.
pub mod server {
    /// OK packet, PREPARE_OK, and each binary row.
    pub const OK: u8 = 0x00;
    /// More data of a way to log in.
    pub const AUTH_MORE_DATA: u8 = 0x01;
    /// A further factor to log in with.
    pub const AUTH_NEXT_FACTOR: u8 = 0x02;
    /// The server wants a file of the client's.
    pub const LOCAL_INFILE: u8 = 0xfb;
    /// EOF packet; an OK packet that ends rows; another way to log in.
    pub const EOF: u8 = 0xfe;
    /// ERR packet, and MariaDB's progress.
    pub const ERR: u8 = 0xff;
}

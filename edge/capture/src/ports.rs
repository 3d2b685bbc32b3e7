//! Names of services by their ports.

/// What usually answers at a port.
pub(crate) fn service_name(port: u16) -> String {
    let name = match port {
        22 => "ssh",
        25 | 587 => "smtp",
        53 => "dns",
        80 | 8080 => "http",
        110 => "pop3",
        143 => "imap",
        389 => "ldap",
        443 | 8443 => "https",
        1433 => "sqlserver",
        1521 => "oracle",
        2049 => "nfs",
        3306 => "mysql",
        5432 => "postgresql",
        5672 => "amqp",
        6379 => "redis",
        6432 => "pgbouncer",
        9042 => "cassandra",
        9092 => "kafka",
        9200 => "elasticsearch",
        11211 => "memcached",
        26257 => "cockroachdb",
        27017 => "mongodb",
        33060 => "mysqlx",
        50000 => "db2",
        _ => return format!("port {port}"),
    };
    format!("{name} (port {port})")
}

/// Whether a database or another service is known to listen at a port: tells the server where the handshake is not seen.
pub(crate) fn is_service(port: u16) -> bool {
    !service_name(port).starts_with("port")
}

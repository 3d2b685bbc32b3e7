//! libpq's keywords, and the environment variables that set them.

/// A keyword of libpq.
pub(crate) struct Keyword {
    pub(crate) name: &'static str,
    /// The environment variable that sets it where nothing else does.
    pub(crate) variable: Option<&'static str>,
}

/// Whether libpq has this keyword.
pub(crate) fn is_keyword(name: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.name == name)
}

/// Whether libpq reads this variable.
pub(crate) fn is_libpq_variable(name: &str) -> bool {
    name == "PGREQUIRESSL" || KEYWORDS.iter().any(|keyword| keyword.variable == Some(name))
}

/// The variable that sets a keyword.
pub(crate) fn variable_of(name: &str) -> Option<&'static str> {
    KEYWORDS.iter().find(|keyword| keyword.name == name).and_then(|keyword| keyword.variable)
}

const fn keyword(name: &'static str, variable: &'static str) -> Keyword {
    Keyword { name, variable: Some(variable) }
}

const fn keyword_only(name: &'static str) -> Keyword {
    Keyword { name, variable: None }
}

/// libpq's `PQconninfoOptions`, to version 18.
pub(crate) const KEYWORDS: &[Keyword] = &[
    keyword("service", "PGSERVICE"),
    keyword("user", "PGUSER"),
    keyword("password", "PGPASSWORD"),
    keyword("passfile", "PGPASSFILE"),
    keyword("channel_binding", "PGCHANNELBINDING"),
    keyword("connect_timeout", "PGCONNECT_TIMEOUT"),
    keyword("dbname", "PGDATABASE"),
    keyword("host", "PGHOST"),
    keyword("hostaddr", "PGHOSTADDR"),
    keyword("port", "PGPORT"),
    keyword("client_encoding", "PGCLIENTENCODING"),
    keyword("options", "PGOPTIONS"),
    keyword("application_name", "PGAPPNAME"),
    keyword_only("fallback_application_name"),
    keyword_only("keepalives"),
    keyword_only("keepalives_idle"),
    keyword_only("keepalives_interval"),
    keyword_only("keepalives_count"),
    keyword_only("tcp_user_timeout"),
    keyword("sslmode", "PGSSLMODE"),
    keyword("sslnegotiation", "PGSSLNEGOTIATION"),
    keyword("sslcompression", "PGSSLCOMPRESSION"),
    keyword("sslcert", "PGSSLCERT"),
    keyword("sslkey", "PGSSLKEY"),
    keyword("sslcertmode", "PGSSLCERTMODE"),
    keyword_only("sslpassword"),
    keyword("sslrootcert", "PGSSLROOTCERT"),
    keyword("sslcrl", "PGSSLCRL"),
    keyword("sslcrldir", "PGSSLCRLDIR"),
    keyword("sslsni", "PGSSLSNI"),
    keyword_only("sslkeylogfile"),
    keyword("requirepeer", "PGREQUIREPEER"),
    keyword("require_auth", "PGREQUIREAUTH"),
    keyword("min_protocol_version", "PGMINPROTOCOLVERSION"),
    keyword("max_protocol_version", "PGMAXPROTOCOLVERSION"),
    keyword("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    keyword("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    keyword("gssencmode", "PGGSSENCMODE"),
    keyword("krbsrvname", "PGKRBSRVNAME"),
    keyword("gsslib", "PGGSSLIB"),
    keyword("gssdelegation", "PGGSSDELEGATION"),
    keyword_only("replication"),
    keyword("target_session_attrs", "PGTARGETSESSIONATTRS"),
    keyword("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    keyword_only("scram_client_key"),
    keyword_only("scram_server_key"),
    keyword_only("oauth_issuer"),
    keyword_only("oauth_client_id"),
    keyword_only("oauth_client_secret"),
    keyword_only("oauth_scope"),
];

//! Connection settings with every default filled in, ready to connect with.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::written::encode;
use crate::{
    ConninfoError, Environment, Host, HostName, Keepalives, Protocol, Settings, SslMode, host, mysql,
};

/// A value that is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(crate::REDACTED)
    }
}

/// Which roots a server certificate may lead to (libpq's `sslrootcert`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootCertificates {
    /// The certificates that the operating system trusts.
    System,
    /// The PEM certificates in a file.
    File(PathBuf),
}

/// Where a database is and how to connect to it. `Display` shows everything but secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Conninfo {
    /// Where the server may be, in the order of trying; never empty.
    pub hosts: Vec<Host>,
    /// What the server speaks. All that follows is PostgreSQL's, but for `user`, `dbname`, `connect_timeout`, and what says how
    /// much TLS.
    pub protocol: Protocol,
    /// Of a MySQL server: nothing is said of TLS, so a client that wants it speaks it with the server itself.
    pub passes_tls: bool,
    /// Role. `None` only where nothing names one, not even the operating system; see [`Conninfo::role`].
    pub user: Option<String>,
    /// The password that was written out; one in a password file is found by [`crate::passfile`].
    pub password: Option<Secret>,
    /// Database; the role's name where none is given.
    pub dbname: Option<String>,
    /// How much TLS.
    pub sslmode: SslMode,
    /// Trusted roots; `None` is `~/.postgresql/root.crt` if it exists.
    pub sslrootcert: Option<RootCertificates>,
    /// Client certificate; `None` is `~/.postgresql/postgresql.crt` if it exists.
    pub sslcert: Option<PathBuf>,
    /// Key of the client certificate; `None` is `~/.postgresql/postgresql.key`.
    pub sslkey: Option<PathBuf>,
    /// Whether TLS announces the host name.
    pub sslsni: bool,
    /// Longest wait for one connection; `None` waits without end.
    pub connect_timeout: Option<Duration>,
    /// How a server that is gone without a word is noticed.
    pub keepalives: Keepalives,
    /// libpq's `application_name`.
    pub application_name: Option<String>,
    /// Command-line options for the server.
    pub options: Option<String>,
    /// Password file; `None` only where there is no home directory.
    pub passfile: Option<PathBuf>,
    /// The other keywords: `channel_binding`, `target_session_attrs`, other drivers' parameters.
    pub extra: Settings,
    /// `~/.postgresql`, where libpq's default certificates stand.
    pub certificates: Option<PathBuf>,
}

impl Conninfo {
    /// Reads connection text; what it leaves open comes from its service, the environment and libpq's defaults.
    ///
    /// # Errors
    /// As [`Settings::parse`] and [`Conninfo::resolve`].
    pub fn parse(text: &str, environment: &Environment) -> Result<Self, ConninfoError> {
        Self::complete(Settings::parse(text)?, environment)
    }

    /// The settings that a libpq program without connection text would use.
    ///
    /// # Errors
    /// As [`Conninfo::resolve`].
    pub fn from_environment(environment: &Environment) -> Result<Self, ConninfoError> {
        Self::complete(Settings::default(), environment)
    }

    /// Fills settings from their service, the environment and libpq's defaults.
    ///
    /// # Errors
    /// As [`Settings::with_service`] and [`Conninfo::resolve`].
    pub fn complete(settings: Settings, environment: &Environment) -> Result<Self, ConninfoError> {
        if settings.protocol() == Protocol::Mysql {
            return mysql::resolve(&settings);
        }
        let settings = settings.with_service(environment)?.with_environment(environment)?;
        Self::resolve(&settings, environment)
    }

    /// Gives settings their types and libpq's built-in defaults; reads no PG* variable.
    ///
    /// # Errors
    /// Values that libpq would refuse too.
    pub fn resolve(settings: &Settings, environment: &Environment) -> Result<Self, ConninfoError> {
        let text = |keyword: &str| settings.get_nonempty(keyword).map(str::to_owned);
        let path = |keyword: &str| settings.get_nonempty(keyword).map(PathBuf::from);
        let home = |name: &str| environment.home.as_ref().map(|home| home.join(name));
        let user = text("user").or_else(|| environment.user.clone());
        let sslrootcert = path("sslrootcert").map(|path| match path.to_str() {
            Some("system") => RootCertificates::System,
            _ => RootCertificates::File(path),
        });
        let others = settings.iter().filter(|(keyword, _)| !TYPED.contains(keyword));
        Ok(Self {
            hosts: host::resolve(settings, environment)?,
            protocol: Protocol::Postgres,
            passes_tls: false,
            dbname: text("dbname").or_else(|| user.clone()),
            user,
            password: text("password").map(Secret),
            sslmode: sslmode(settings)?,
            sslrootcert,
            sslcert: path("sslcert"),
            sslkey: path("sslkey"),
            sslsni: sslsni(settings)?,
            connect_timeout: connect_timeout(settings)?,
            keepalives: Keepalives::resolve(settings)?,
            application_name: text("application_name"),
            options: text("options"),
            passfile: path("passfile").or_else(|| home(".pgpass")),
            extra: others.fold(Settings::default(), |mut extra, (keyword, value)| {
                extra.set(keyword, value);
                extra
            }),
            certificates: home(".postgresql"),
        })
    }

    /// These settings, where only PostgreSQL will do.
    ///
    /// # Errors
    /// [`ConninfoError::NotPostgres`] where they are another database's.
    pub fn for_postgres(self) -> Result<Self, ConninfoError> {
        match self.protocol {
            Protocol::Postgres => Ok(self),
            Protocol::Mysql => Err(ConninfoError::NotPostgres),
        }
    }

    /// The settings of a server that a program was seen to connect to; its port tells what it speaks.
    ///
    /// # Errors
    /// As [`Conninfo::from_environment`].
    pub fn of_host(host: Host, environment: &Environment) -> Result<Self, ConninfoError> {
        let own = match host.port == Protocol::Mysql.port() {
            true => mysql::resolve(&Settings::default()),
            false => Self::from_environment(environment),
        };
        own.map(|own| Self { hosts: vec![host], ..own })
    }

    /// Leaves TLS with a MySQL server to its client, whatever the settings say.
    pub(crate) fn pass_tls(&mut self) {
        self.passes_tls = true;
        self.sslmode = SslMode::default();
        (self.sslrootcert, self.sslcert, self.sslkey) = (None, None, None);
        self.extra = Settings::default();
    }

    /// The same settings with one server at another place.
    pub fn with_address(&self, host: impl Into<String>, port: u16) -> Self {
        Self { hosts: vec![Host::tcp(host, port)], ..self.clone() }
    }

    /// These settings as keywords and values, each written out.
    pub fn to_settings(&self) -> Settings {
        let mut settings = Settings::default();
        let list =
            |value: &dyn Fn(&Host) -> String| self.hosts.iter().map(value).collect::<Vec<_>>().join(",");
        settings.set("host", list(&|host| host.name().into_owned()));
        if self.hosts.iter().any(|host| host.address().is_some()) {
            settings.set("hostaddr", list(&|host| host_address(host)));
        }
        settings.set("port", list(&|host| host.port.to_string()));
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
        let root = match &self.sslrootcert {
            Some(RootCertificates::System) => Some("system".to_owned()),
            Some(RootCertificates::File(file)) => Some(file.to_string_lossy().into_owned()),
            None => None,
        };
        for (keyword, value) in [
            ("dbname", self.dbname.clone()),
            ("user", self.user.clone()),
            ("password", self.password.as_ref().map(|password| password.0.clone())),
            ("sslmode", (!self.passes_tls).then(|| self.sslmode.to_string())),
            ("sslrootcert", root),
            ("sslcert", path(&self.sslcert)),
            ("sslkey", path(&self.sslkey)),
            ("sslsni", (!self.sslsni).then(|| "0".to_owned())),
            ("connect_timeout", self.connect_timeout.map(|timeout| timeout.as_secs().to_string())),
            ("application_name", self.application_name.clone()),
            ("options", self.options.clone()),
            ("passfile", path(&self.passfile)),
        ] {
            if let Some(value) = value {
                settings.set(keyword, value);
            }
        }
        for (keyword, value) in self.extra.iter() {
            settings.set(keyword, value);
        }
        settings
    }

    /// Keyword/value text that [`Conninfo::parse`] reads back to the same settings. It holds the password.
    pub fn to_dsn(&self) -> String {
        self.to_settings().to_dsn()
    }

    /// A URL that [`Conninfo::parse`] reads back to the same settings. It holds the password.
    pub fn to_url(&self) -> String {
        let mut url = self.url_without_query(true);
        let settings = self.to_settings();
        let in_path = ["host", "port", "user", "password", "dbname"];
        for (index, (keyword, value)) in
            settings.iter().filter(|(keyword, _)| !in_path.contains(keyword)).enumerate()
        {
            url.push(if index == 0 { '?' } else { '&' });
            url.push_str(&format!("{}={}", encode(keyword), encode(value)));
        }
        url
    }

    /// The role to log in as.
    ///
    /// # Errors
    /// [`ConninfoError::NoUser`] where nothing names one.
    pub fn role(&self) -> Result<&str, ConninfoError> {
        self.user.as_deref().ok_or(ConninfoError::NoUser)
    }

    fn url_without_query(&self, with_password: bool) -> String {
        let scheme = match self.protocol {
            Protocol::Postgres => "postgresql",
            Protocol::Mysql => "mysql",
        };
        let mut url = format!("{scheme}://");
        let password = self.password.as_ref().filter(|_| with_password);
        url.push_str(&self.user.as_deref().map_or_else(String::new, encode));
        if let Some(password) = password {
            url.push(':');
            url.push_str(&encode(&password.0));
        }
        if self.user.is_some() || password.is_some() {
            url.push('@');
        }
        let hosts = self.hosts.iter().map(|host| match host.name() {
            name if name.contains(':') && !host.is_unix() => format!("[{name}]:{}", host.port),
            name => format!("{}:{}", encode(&name), host.port),
        });
        url.push_str(&hosts.collect::<Vec<_>>().join(","));
        url.push('/');
        url.push_str(&self.dbname.as_deref().map_or_else(String::new, encode));
        url
    }

    /// The address part of these settings, for people: `host:port`, several with commas.
    pub fn address(&self) -> String {
        self.hosts.iter().map(Host::to_string).collect::<Vec<_>>().join(", ")
    }

    /// libpq's default file in `~/.postgresql`, if it exists.
    pub(crate) fn default_certificate_file(&self, name: &str) -> Option<PathBuf> {
        self.certificates.as_deref().map(|directory: &Path| directory.join(name)).filter(|path| path.exists())
    }
}

impl fmt::Display for Conninfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            Protocol::Postgres => {
                write!(formatter, "{}?sslmode={}", self.url_without_query(false), self.sslmode)
            }
            Protocol::Mysql => formatter.write_str(&self.url_without_query(false)),
        }
    }
}

impl fmt::Debug for Conninfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_settings(), formatter)
    }
}

/// Keywords that have a field of their own, or whose work is done when settings are resolved.
const TYPED: [&str; 16] = [
    "service",
    "host",
    "hostaddr",
    "port",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslsni",
    "connect_timeout",
    "application_name",
    "options",
    "passfile",
];

fn host_address(host: &Host) -> String {
    match &host.name {
        HostName::Tcp { address: Some(address), .. } => address.to_string(),
        HostName::Tcp { name, .. } if name.parse::<std::net::IpAddr>().is_ok() => name.clone(),
        _ => String::new(),
    }
}

/// libpq's rule: `prefer`, but `verify-full` where the system's roots are asked for, and then nothing weaker.
fn sslmode(settings: &Settings) -> Result<SslMode, ConninfoError> {
    let given: Option<SslMode> = settings.get_nonempty("sslmode").map(str::parse).transpose()?;
    match (settings.get("sslrootcert") == Some("system"), given) {
        (true, None) => Ok(SslMode::VerifyFull),
        (true, Some(sslmode)) if sslmode < SslMode::VerifyFull => Err(ConninfoError::WeakSslMode { sslmode }),
        (_, given) => Ok(given.unwrap_or_default()),
    }
}

fn sslsni(settings: &Settings) -> Result<bool, ConninfoError> {
    match settings.get_nonempty("sslsni") {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(_) => Err(ConninfoError::Value { keyword: "sslsni", expected: "0 or 1" }),
    }
}

fn connect_timeout(settings: &Settings) -> Result<Option<Duration>, ConninfoError> {
    let Some(text) = settings.get_nonempty("connect_timeout") else { return Ok(None) };
    let expected = "a number of seconds";
    let seconds: i32 =
        text.trim().parse().map_err(|_| ConninfoError::Value { keyword: "connect_timeout", expected })?;
    // Zero and less wait without end.
    Ok(u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs))
}

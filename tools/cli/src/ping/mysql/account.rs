//! Who logs in, and with how much TLS: from the connection text, else from variables.

use std::path::PathBuf;
use std::time::Duration;

use onetrip_target::launch::Source;
use onetrip_target::{Conninfo, Environment, RootCertificates, Secret, Settings, SslMode};

use super::Error;

/// Settings of MySQL's drivers that say how much TLS, and those that name root certificates.
const TLS_MODES: [&str; 7] = ["ssl-mode", "ssl_mode", "sslmode", "sslMode", "useSSL", "ssl", "tls"];
const ROOTS: [&str; 5] = ["ssl-ca", "ssl_ca", "sslca", "sslrootcert", "serverSslCert"];
/// Settings that let the server send the key under which the password goes out.
const KEYS: [&str; 2] = ["allowPublicKeyRetrieval", "get-server-public-key"];
/// Variables with a password: that of the servers' own clients, and that of their images.
const PASSWORDS: [&str; 2] = ["MYSQL_PWD", "MYSQL_PASSWORD"];
const USER: &str = "MYSQL_USER";
const DATABASE: &str = "MYSQL_DATABASE";

/// Where the password came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ping) enum PasswordOrigin {
    Nowhere,
    Text,
    Variable(&'static str),
}

/// Who logs in.
#[derive(Debug)]
pub(in crate::ping) struct Account {
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) origin: PasswordOrigin,
    pub(super) database: Option<String>,
    pub(super) sslmode: SslMode,
    pub(super) root: Option<RootCertificates>,
    pub(super) may_ask_for_key: bool,
    pub(super) limit: Option<Duration>,
}

impl Account {
    /// `text` is the target as it was given; if none was, `source` says which variable named it.
    pub(in crate::ping) fn find(
        text: Option<&str>,
        source: &Source,
        conninfo: &Conninfo,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let variable = |name: &str| environment.var(name).ok().flatten().filter(|value| !value.is_empty());
        let text = text.or_else(|| match source {
            Source::Variable(name) => variable(name),
            _ => None,
        });
        let settings = text.and_then(|text| Settings::parse(text).ok()).unwrap_or_default();
        let first = |names: &[&str]| names.iter().find_map(|name| settings.get_nonempty(name));
        let written = settings.get_nonempty("password").map(|word| (word, PasswordOrigin::Text));
        let named =
            || PASSWORDS.iter().find_map(|name| Some((variable(name)?, PasswordOrigin::Variable(name))));
        let password = written.or_else(named);
        let user = conninfo.user.as_deref().or_else(|| variable(USER)).or(environment.user.as_deref());
        let sslmode = sslmode(&settings)?;
        let root = first(&ROOTS).map(|path| RootCertificates::File(PathBuf::from(path)));
        let seconds = settings.get_nonempty("connect_timeout").and_then(|seconds| seconds.parse().ok());
        Ok(Self {
            user: user.ok_or(Error::NoUser)?.to_owned(),
            origin: password.map_or(PasswordOrigin::Nowhere, |(_, origin)| origin),
            password: password.map(|(word, _)| Secret::new(word)),
            database: conninfo.dbname.clone().or_else(|| variable(DATABASE).map(str::to_owned)),
            sslmode,
            root: root.or_else(|| sslmode.requires_root().then_some(RootCertificates::System)),
            may_ask_for_key: first(&KEYS).is_some_and(|value| ["true", "1"].contains(&value)),
            limit: seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
        })
    }
}

/// TLS is used if the server has it, unless the text says otherwise.
fn sslmode(settings: &Settings) -> Result<SslMode, Error> {
    let Some((keyword, value)) =
        TLS_MODES.iter().find_map(|keyword| Some((*keyword, settings.get_nonempty(keyword)?)))
    else {
        return Ok(SslMode::Prefer);
    };
    let value = value.to_ascii_lowercase().replace('_', "-");
    Ok(match value.as_str() {
        // What Go's driver calls true checks the certificate.
        "true" if keyword == "tls" => SslMode::VerifyFull,
        // It only prefers it.
        "true" if keyword == "useSSL" => SslMode::Prefer,
        "disabled" | "disable" | "false" | "0" | "off" | "no" => SslMode::Disable,
        "preferred" | "prefer" | "allow" => SslMode::Prefer,
        "required" | "require" | "true" | "1" | "on" | "yes" | "trust" | "skip-verify" => SslMode::Require,
        "verify-ca" => SslMode::VerifyCa,
        "verify-identity" | "verify-full" => SslMode::VerifyFull,
        _ => return Err(Error::SslMode { keyword, value }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(text: &str, variables: &[(&str, &str)]) -> Result<Account, Error> {
        let environment = Environment::with_variables(variables.iter().copied());
        let conninfo = Conninfo::parse(text, &environment).expect("it can be read");
        Account::find(Some(text), &Source::CommandLine, &conninfo, &environment)
    }

    #[test]
    fn passwords_come_from_the_text_then_from_variables() {
        let password = |text: &str, variables: &[(&str, &str)]| {
            let account = account(text, variables).expect("it can be used");
            (account.password.map(|password| password.reveal().to_owned()), account.origin)
        };
        let variables = [("MYSQL_PWD", "two"), ("MYSQL_PASSWORD", "three")];
        let some = |word: &str, origin| (Some(word.to_owned()), origin);
        assert_eq!(password("mysql://ann:one@db/shop", &variables), some("one", PasswordOrigin::Text));
        let named = some("two", PasswordOrigin::Variable("MYSQL_PWD"));
        assert_eq!(password("mysql://ann@db/shop", &variables), named);
        let named = some("three", PasswordOrigin::Variable("MYSQL_PASSWORD"));
        assert_eq!(password("ann@tcp(db:3306)/shop", &variables[1..]), named);
        assert_eq!(password("mysql://ann@db/shop", &[]), (None, PasswordOrigin::Nowhere));
    }

    #[test]
    fn tls_is_asked_for_as_drivers_spell_it() {
        let sslmode = |text: &str| account(&format!("mysql://ann@db/shop{text}"), &[]).map(|it| it.sslmode);
        for (text, expected) in [
            ("", SslMode::Prefer),
            ("?ssl-mode=DISABLED", SslMode::Disable),
            ("?ssl-mode=REQUIRED", SslMode::Require),
            ("?sslMode=VERIFY_CA", SslMode::VerifyCa),
            ("?sslMode=VERIFY_IDENTITY", SslMode::VerifyFull),
            ("?tls=skip-verify", SslMode::Require),
            ("?tls=true", SslMode::VerifyFull),
            ("?useSSL=true", SslMode::Prefer),
        ] {
            assert_eq!(sslmode(text).expect("it can be used"), expected, "{text}");
        }
        assert!(matches!(sslmode("?ssl-mode=maybe"), Err(Error::SslMode { .. })));
    }
}

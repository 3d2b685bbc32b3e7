//! Who logs in: from the connection text, else from variables.

use std::time::Duration;

use onetrip_target::launch::Source;
use onetrip_target::{Conninfo, Environment, Secret, Settings};

use super::Error;

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
        conninfo.check_kept()?;
        Ok(Self {
            user: user.ok_or(Error::NoUser)?.to_owned(),
            origin: password.map_or(PasswordOrigin::Nowhere, |(_, origin)| origin),
            password: password.map(|(word, _)| Secret::new(word)),
            database: conninfo.dbname.clone().or_else(|| variable(DATABASE).map(str::to_owned)),
            may_ask_for_key: first(&KEYS).is_some_and(|value| ["true", "1"].contains(&value)),
            limit: conninfo.connect_timeout,
        })
    }
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
    fn tls_in_words_that_are_not_read_is_an_error() {
        let error = account("mysql://ann@db/shop?ssl-mode=maybe", &[]).expect_err("which?").to_string();
        assert!(
            error.starts_with("ssl-mode cannot be enforced") && error.contains("VERIFY_IDENTITY"),
            "{error}"
        );
    }
}

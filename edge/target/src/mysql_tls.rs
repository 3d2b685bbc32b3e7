//! How much TLS connection text of MySQL's and MariaDB's drivers asks for, and what turns that off for a gateway on this machine.

use std::path::PathBuf;

use crate::written::{Entry, Format, Place, Written};
use crate::{RootCertificates, SslMode};

/// Settings that are read, by their names without hyphens, underscores and capitals.
const MODE: &str = "sslmode";
/// Of Go's driver; of Connector/J before it had modes; of others.
const SWITCHES: [&str; 3] = ["tls", "usessl", "ssl"];
const DISABLED: &str = "ssldisabled";
const ROOTS: [&str; 3] = ["sslca", "sslrootcert", "serversslcert"];
const CERTIFICATE: &str = "sslcert";
const KEY: &str = "sslkey";
/// Switches that ask for no less than a mode.
const AT_LEAST: [(&str, SslMode); 4] = [
    ("requiressl", SslMode::Require),
    ("sslverifycert", SslMode::VerifyCa),
    ("sslverifyidentity", SslMode::VerifyFull),
    ("sslverifyservercert", SslMode::VerifyFull),
];
/// Words for a mode, without capitals and with hyphens. Those of a certificate profile are nobody's.
const WORDS: [(&str, SslMode); 22] = [
    ("disabled", SslMode::Disable),
    ("disable", SslMode::Disable),
    ("false", SslMode::Disable),
    ("0", SslMode::Disable),
    ("off", SslMode::Disable),
    ("no", SslMode::Disable),
    ("preferred", SslMode::Prefer),
    ("prefer", SslMode::Prefer),
    ("allow", SslMode::Prefer),
    ("if-available", SslMode::Prefer),
    ("required", SslMode::Require),
    ("require", SslMode::Require),
    ("true", SslMode::Require),
    ("1", SslMode::Require),
    ("on", SslMode::Require),
    ("yes", SslMode::Require),
    ("trust", SslMode::Require),
    ("skip-verify", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-identity", SslMode::VerifyFull),
    ("verify-full", SslMode::VerifyFull),
    ("default", SslMode::Prefer),
];
/// Values of any setting about TLS that ask for nothing.
const NOTHING: [&str; 12] = [
    "",
    "0",
    "false",
    "off",
    "no",
    "disable",
    "disabled",
    "prefer",
    "preferred",
    "allow",
    "if-available",
    "default",
];

/// What settings ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// `None` if nothing is said of TLS.
    pub(crate) mode: Option<SslMode>,
    pub(crate) roots: Option<RootCertificates>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    /// Settings about TLS that ask for something and are not read.
    pub(crate) unread: Vec<(String, String)>,
}

impl Wanted {
    /// Reads settings; the last of several files counts, and the strictest of several modes, unless one says that there is to be
    /// no TLS.
    pub(crate) fn read<'a>(settings: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut wanted = Self::default();
        let (mut modes, mut switches, mut least) = (Vec::new(), Vec::new(), None);
        for (keyword, value) in settings {
            let (name, file) = (plain(keyword), || Some(PathBuf::from(value)));
            let is_word = name == MODE || SWITCHES.contains(&name.as_str());
            let at_least = AT_LEAST.iter().find(|(known, _)| *known == name);
            if value.is_empty() || !is_about_tls(keyword) {
                continue;
            } else if let (true, Some(mode)) = (is_word, mode_of(&name, value)) {
                if name == MODE { &mut modes } else { &mut switches }.push(mode);
            } else if ROOTS.contains(&name.as_str()) {
                wanted.roots = file().map(RootCertificates::File);
            } else if name == CERTIFICATE {
                wanted.certificate = file();
            } else if name == KEY {
                wanted.key = file();
            } else if is_word || !asks_for_nothing(value) {
                match at_least {
                    _ if name == DISABLED => modes.push(SslMode::Disable),
                    Some((_, mode)) if mode_of(SWITCHES[2], value) == Some(SslMode::Require) => {
                        least = least.max(Some(*mode));
                    }
                    _ => wanted.unread.push((keyword.to_owned(), value.to_owned())),
                }
            }
        }
        // A mode goes before the switches of earlier drivers.
        let said = strictest(&modes).or_else(|| strictest(&switches));
        wanted.mode = if said == Some(SslMode::Disable) { said } else { said.max(least) };
        if wanted.mode.is_none() {
            // As MySQL's client has it; a certificate to show is worth nothing without TLS.
            let from_files = [
                (wanted.roots.is_some(), SslMode::VerifyCa),
                (wanted.certificate.is_some(), SslMode::Require),
            ];
            wanted.mode = from_files.into_iter().find(|(is_named, _)| *is_named).map(|(_, mode)| mode);
        }
        if wanted.roots.is_none() && wanted.mode.is_some_and(SslMode::requires_root) {
            wanted.roots = Some(RootCertificates::System);
        }
        wanted
    }
}

/// What connection text has to be for a client that is to speak no TLS with the gateway.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TurnedOff {
    /// As it is: it does not insist.
    AsItIs,
    /// With this keyword's value, and without others about TLS.
    By { keyword: &'static str, value: &'static str },
    /// It cannot be told: this setting is nothing that onetrip knows to turn off.
    Unknown(String),
}

/// How TLS is turned off in connection text. It has to say how much by one setting in the notation of a driver.
pub(crate) fn turned_off(text: &str, written: &Written) -> TurnedOff {
    let own = |entry: &&Entry| !matches!(entry.place, Place::Address) && is_about_tls(&entry.keyword);
    let own: Vec<&Entry> = written.entries.iter().filter(own).collect();
    let Some(insisting) = own.iter().find(|entry| insists(&entry.keyword, &entry.value)) else {
        return TurnedOff::AsItIs;
    };
    let unknown = || TurnedOff::Unknown(insisting.keyword.clone());
    let is_a_drivers = matches!(written.format, Format::Url | Format::Jdbc | Format::GoDsn);
    let mut found = None;
    for entry in own {
        let name = plain(&entry.keyword);
        let Place::Pair(bytes) = &entry.place else { return unknown() };
        let says_mode = OFF_BY.iter().find(|keyword| **keyword == entry.keyword);
        match says_mode {
            Some(keyword) if mode_of(&name, &entry.value).is_some() && found.is_none() => {
                found = Some(TurnedOff::By { keyword, value: off(keyword, &text[bytes.clone()]) });
            }
            _ if is_file(&entry.keyword) => {}
            _ => return TurnedOff::Unknown(entry.keyword.clone()),
        }
    }
    found.filter(|_| is_a_drivers).unwrap_or_else(unknown)
}

/// Whether a setting names a file of TLS's.
pub(crate) fn is_file(keyword: &str) -> bool {
    let name = plain(keyword);
    ROOTS.contains(&name.as_str()) || name == CERTIFICATE || name == KEY
}

/// Whether a setting is about TLS.
pub(crate) fn is_about_tls(keyword: &str) -> bool {
    let name = keyword.to_ascii_lowercase();
    name == "tls" || name.contains("ssl")
}

/// Whether a setting insists on TLS.
pub(crate) fn insists(keyword: &str, value: &str) -> bool {
    // `useSSL` of Connector/J only prefers it.
    let name = plain(keyword);
    is_about_tls(keyword) && name != SWITCHES[1] && name != DISABLED && !asks_for_nothing(value)
}

/// Whether a value of a setting about TLS asks for nothing.
pub(crate) fn asks_for_nothing(value: &str) -> bool {
    NOTHING.contains(&value.to_ascii_lowercase().as_str())
}

/// Settings by which TLS is turned off.
const OFF_BY: [&str; 5] = ["ssl-mode", "ssl_mode", "sslmode", "sslMode", "tls"];

/// "No TLS" in the style of the word that it stands for.
fn off(keyword: &str, word: &str) -> &'static str {
    match word {
        _ if keyword == "tls" => "false",
        _ if word.contains('_') || word.contains(|letter: char| letter.is_ascii_uppercase()) => "DISABLED",
        "required" | "preferred" => "disabled",
        _ => "disable",
    }
}

fn strictest(modes: &[SslMode]) -> Option<SslMode> {
    let without = modes.iter().find(|mode| **mode == SslMode::Disable);
    without.or_else(|| modes.iter().max()).copied()
}

fn mode_of(name: &str, value: &str) -> Option<SslMode> {
    let value = value.to_ascii_lowercase().replace('_', "-");
    match (name, value.as_str()) {
        // What Go's driver calls true checks the certificate; what Connector/J does only prefers TLS.
        ("tls", "true" | "1") => Some(SslMode::VerifyFull),
        ("usessl", "true" | "1") => Some(SslMode::Prefer),
        (_, value) => WORDS.iter().find(|(word, _)| *word == value).map(|(_, mode)| *mode),
    }
}

/// A keyword as all drivers would spell it.
fn plain(keyword: &str) -> String {
    keyword
        .chars()
        .filter(|letter| !"-_".contains(*letter))
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(settings: &[(&str, &str)]) -> Option<SslMode> {
        Wanted::read(settings.iter().copied()).mode
    }

    #[test]
    fn modes_are_read_as_drivers_spell_them() {
        for (keyword, value, expected) in [
            ("ssl-mode", "DISABLED", SslMode::Disable),
            ("ssl_mode", "preferred", SslMode::Prefer),
            ("ssl-mode", "REQUIRED", SslMode::Require),
            ("sslMode", "VERIFY_CA", SslMode::VerifyCa),
            ("sslMode", "verify-full", SslMode::VerifyFull),
            ("sslMode", "VERIFY_IDENTITY", SslMode::VerifyFull),
            ("sslMode", "trust", SslMode::Require),
            ("tls", "skip-verify", SslMode::Require),
            ("tls", "true", SslMode::VerifyFull),
            ("tls", "preferred", SslMode::Prefer),
            ("useSSL", "true", SslMode::Prefer),
            ("useSSL", "false", SslMode::Disable),
            ("ssl_disabled", "True", SslMode::Disable),
            ("ssl_verify_identity", "true", SslMode::VerifyFull),
            ("requireSSL", "true", SslMode::Require),
            ("ssl-ca", "ca.pem", SslMode::VerifyCa),
            ("ssl_cert", "me.pem", SslMode::Require),
        ] {
            assert_eq!(mode(&[(keyword, value)]), Some(expected), "{keyword}={value}");
        }
        for (keyword, value) in [("charset", "utf8"), ("ssl-mode", ""), ("ssl_verify_cert", "false")] {
            assert_eq!(mode(&[(keyword, value)]), None, "{keyword}={value}");
        }
        assert_eq!(mode(&[("sslMode", "VERIFY_CA"), ("useSSL", "false")]), Some(SslMode::VerifyCa));
        assert_eq!(mode(&[("ssl-mode", "REQUIRED"), ("ssl_verify_cert", "1")]), Some(SslMode::VerifyCa));
        assert_eq!(mode(&[("ssl_disabled", "1"), ("ssl_verify_cert", "1")]), Some(SslMode::Disable));
    }

    #[test]
    fn roots_are_the_systems_where_a_check_names_none() {
        let roots = |settings: &[(&str, &str)]| Wanted::read(settings.iter().copied()).roots;
        assert_eq!(roots(&[("ssl-mode", "REQUIRED")]), None);
        assert_eq!(roots(&[("tls", "true")]), Some(RootCertificates::System));
        let named = [("ssl-mode", "VERIFY_CA"), ("serverSslCert", "/ca.pem")];
        assert_eq!(roots(&named), Some(RootCertificates::File("/ca.pem".into())));
    }

    #[test]
    fn what_is_not_read_is_known_by_its_name() {
        for (keyword, value) in [
            ("ssl-mode", "maybe"),
            ("tls", "custom"),
            ("ssl-cipher", "AES"),
            ("trustCertificateKeyStoreUrl", "file:ca.jks"),
            ("ssl_capath", "/etc/ssl"),
        ] {
            let unread = Wanted::read([(keyword, value)].into_iter()).unread;
            let is_about = is_about_tls(keyword);
            assert_eq!(unread.first().map(|(name, _)| name.as_str()), is_about.then_some(keyword));
        }
    }

    #[test]
    fn tls_is_turned_off_by_the_drivers_own_word_or_not_at_all() {
        let turned = |text: &str| turned_off(text, &Written::parse(text).expect("it is read"));
        let by = |keyword, value| TurnedOff::By { keyword, value };
        for (text, expected) in [
            ("mysql://db/x", TurnedOff::AsItIs),
            ("mysql://db/x?ssl-mode=PREFERRED", TurnedOff::AsItIs),
            ("mysql://db/x?ssl-mode=REQUIRED", by("ssl-mode", "DISABLED")),
            ("mysql://db/x?ssl_mode=VERIFY_CA&ssl_ca=/a&ssl_key=/b", by("ssl_mode", "DISABLED")),
            ("mysql://db/x?sslmode=verify-full", by("sslmode", "disable")),
            ("mysql://db/x?ssl-mode=required", by("ssl-mode", "disabled")),
            ("u@tcp(db)/x?tls=skip-verify", by("tls", "false")),
            ("jdbc:mysql://db/x?user=u&sslMode=VERIFY_IDENTITY", by("sslMode", "DISABLED")),
            ("mysql://db/x?ssl_ca=/a", TurnedOff::Unknown("ssl_ca".into())),
            ("mysql://db/x?ssl=true", TurnedOff::Unknown("sslmode".into())),
            ("u@tcp(db)/x?tls=custom", TurnedOff::Unknown("tls".into())),
            ("mysql://db/x?ssl-mode=VERIFY_CA&ssl-capath=/a", TurnedOff::Unknown("ssl-capath".into())),
            ("mysql://db/x?ssl={\"rejectUnauthorized\":true}", TurnedOff::Unknown("ssl".into())),
            ("Server=db;Port=3306;SslMode=Required", TurnedOff::Unknown("sslmode".into())),
        ] {
            assert_eq!(turned(text), expected, "{text}");
        }
    }
}

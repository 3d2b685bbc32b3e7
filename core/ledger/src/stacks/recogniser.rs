//! Who a connection's client is, gathered as its traffic comes.

use serde::Deserialize;
use smallvec::SmallVec;

use super::Driver;
use super::stack::{self, Marks};

/// Different statements of an ORM's own that make it certain.
const STATEMENTS_MIN: usize = 2;
/// Different statements that are counted for one ORM.
const STATEMENTS_MAX: usize = 8;

/// A language that programs are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Language {
    Go,
    Java,
    JavaScript,
    Perl,
    Php,
    Python,
    Ruby,
    Rust,
}

impl Language {
    /// What names it at the beginning of a block of code in Markdown.
    pub(crate) fn fence(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Java => "java",
            Self::JavaScript => "javascript",
            Self::Perl => "perl",
            Self::Php => "php",
            Self::Python => "python",
            Self::Ruby => "ruby",
            Self::Rust => "rust",
        }
    }
}

/// Commands of a language's programs: names, beginnings of names, ends of names.
type Commands = (Language, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const COMMANDS: [Commands; 8] = [
    (Language::Go, &["go"], &[], &[".go"]),
    (Language::Java, &["java", "mvn", "gradle", "gradlew", "sbt"], &[], &[".jar"]),
    (
        Language::JavaScript,
        &["node", "nodejs", "npm", "npx", "yarn", "pnpm", "tsx", "ts-node", "jest", "vitest"],
        &[],
        &[".js", ".mjs", ".cjs", ".ts"],
    ),
    (Language::Perl, &["perl", "prove"], &[], &[".pl", ".t"]),
    (Language::Php, &["artisan", "phpunit", "pest", "composer"], &["php"], &[".php"]),
    (
        Language::Python,
        &["pytest", "gunicorn", "uvicorn", "celery", "flask", "django-admin", "ipython", "tox", "nox"],
        &["python"],
        &[".py"],
    ),
    (Language::Ruby, &["ruby", "rails", "rake", "rspec", "bundle", "puma", "sidekiq", "irb"], &[], &[".rb"]),
    (Language::Rust, &["cargo"], &[], &[]),
];

/// The language of a program, as far as the words of its command line tell; none where they name several.
pub(crate) fn language_of(command: &[u8]) -> Option<Language> {
    let words = command.split(|byte| *byte == b' ');
    let names = words.map(|word| word.rsplit(|byte| *byte == b'/').next().unwrap_or(word));
    let mut found = None;
    for name in names {
        let is_its = |(_, whole, starts, ends): &&Commands| {
            whole.iter().any(|it| it.as_bytes() == name)
                || starts.iter().any(|it| name.starts_with(it.as_bytes()))
                || ends.iter().any(|it| name.ends_with(it.as_bytes()))
        };
        let Some((language, ..)) = COMMANDS.iter().find(is_its) else { continue };
        if found.is_some_and(|known| known != *language) {
            return None;
        }
        found = Some(*language);
    }
    found
}

/// What a client sends before anything else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Startup<'s> {
    /// Names and values, as they came.
    pub(crate) parameters: &'s [(&'s [u8], &'s [u8])],
    /// It has asked for TLS or GSSAPI before.
    pub(crate) asked_encryption: bool,
}

/// Parameters that libpq sends, in its order (`build_startup_packet`). It always sends the first.
const LIBPQ_PARAMETERS: [&[u8]; 9] = [
    b"user",
    b"database",
    b"replication",
    b"options",
    b"application_name",
    b"client_encoding",
    b"datestyle",
    b"timezone",
    b"geqo",
];

/// Whether libpq may have sent these.
fn is_libpq(parameters: &[(&[u8], &[u8])]) -> bool {
    let mut known = LIBPQ_PARAMETERS.iter();
    let own = parameters.iter().filter(|(name, _)| !name.starts_with(b"_pq_."));
    parameters.first().is_some_and(|(name, _)| *name == b"user")
        && own.into_iter().all(|(name, _)| known.any(|next| next == name))
}

/// How a statement that was run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// As a text of its own.
    AsText,
    /// With its parameters in the same exchange, as libpq sends them (`PQsendQueryGuts`).
    WithParameters,
    /// Behind its parameters, for which the client has waited. Libpq has no call for that.
    BoundBefore,
}

/// What is known of one connection's client.
///
/// Drivers over libpq look alike, and others send no more than they do: one that has not asked for encryption is not named.
/// Where the program is known to be Python's, one that never sends parameters apart
/// from the text is taken for psycopg2, one that does for psycopg 3.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recogniser {
    driver: Driver,
    orm: Option<Driver>,
    /// Its parameters may be libpq's.
    is_libpq: bool,
    /// It has asked for encryption, as libpq does by TCP unless it is told not to.
    asked_encryption: bool,
    /// An ORM that has used connections of this kind before.
    expected: Option<Driver>,
    /// Templates of its own that each ORM was seen to send.
    seen: SmallVec<[(Driver, SmallVec<[u32; STATEMENTS_MAX]>); 2]>,
}

impl Recogniser {
    /// Reads the startup packet.
    pub(crate) fn startup(&mut self, startup: &Startup<'_>) {
        self.driver = stack::of_startup(startup).unwrap_or_default();
        self.is_libpq = self.driver == Driver::UNKNOWN && is_libpq(startup.parameters);
        self.asked_encryption = startup.asked_encryption;
    }

    /// An earlier connection of the same user to the same database, opened alike, was this ORM's. A statement of its shape
    /// is enough then.
    pub(crate) fn expect(&mut self, orm: Driver) {
        self.expected = Some(orm);
    }

    /// Reads the name of a prepared statement.
    pub(crate) fn statement_name(&mut self, name: &[u8]) {
        let known = std::str::from_utf8(name).ok().and_then(stack::of_statement_name);
        if let Some(driver) = known {
            self.is_libpq = driver.key() == "psycopg3";
            self.driver = driver;
        }
    }

    /// Reads a statement that was run: the shapes that its template has, and how it came.
    pub(crate) fn statement(&mut self, template: u32, marks: &Marks, sent: Sent, program: Option<Language>) {
        if sent == Sent::BoundBefore && self.is_libpq {
            self.is_libpq = false;
            self.driver = Driver::UNKNOWN;
        }
        if self.is_libpq {
            let grouped = sent == Sent::WithParameters;
            let found = match (self.driver.key(), program == Some(Language::Python)) {
                ("unknown", false) if self.asked_encryption => Some("libpq"),
                ("unknown", true) if !grouped => Some("psycopg2"),
                ("unknown" | "psycopg2", true) if grouped => Some("psycopg3"),
                _ => None,
            };
            self.driver = found.and_then(Driver::of_key).unwrap_or(self.driver);
        }
        if self.orm.is_some() {
            return;
        }
        let may_be = |orm: &Driver| stack::of(*orm).may_be_over(self.driver, program);
        let own = || marks.own.iter().copied().filter(may_be);
        let confirming = || marks.confirming.iter().copied().filter(may_be);
        if self.expected.is_some_and(|orm| own().chain(confirming()).any(|it| it == orm)) {
            self.orm = self.expected;
            return;
        }
        let own: SmallVec<[Driver; 4]> = own().collect();
        for orm in own {
            let position = self.seen.iter().position(|(known, _)| *known == orm);
            let position = position.unwrap_or_else(|| {
                self.seen.push((orm, SmallVec::new()));
                self.seen.len() - 1
            });
            let templates = &mut self.seen[position].1;
            if templates.len() < STATEMENTS_MAX && !templates.contains(&template) {
                templates.push(template);
            }
        }
        self.orm = self.certain();
    }

    /// The ORM of which enough was seen, and more than of any other.
    fn certain(&self) -> Option<Driver> {
        let best = self.seen.iter().max_by_key(|(_, templates)| templates.len())?;
        let is_alone = self.seen.iter().filter(|(_, templates)| templates.len() == best.1.len()).count() == 1;
        (best.1.len() >= STATEMENTS_MIN && is_alone).then_some(best.0)
    }

    /// Who it seems to be.
    pub(crate) fn driver(&self) -> Driver {
        self.orm.unwrap_or(self.driver)
    }

    /// Who it surely is, if that is an ORM.
    pub(crate) fn orm(&self) -> Option<Driver> {
        self.orm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libpq_sends_its_parameters_in_one_order() {
        let may_be = |names: &[&str]| {
            let parameters: Vec<_> = names.iter().map(|name| (name.as_bytes(), &b"x"[..])).collect();
            is_libpq(&parameters)
        };
        assert!(may_be(&["user"]) && may_be(&["user", "database", "application_name", "client_encoding"]));
        assert!(may_be(&["user", "database", "options", "datestyle", "geqo", "_pq_.test"]));
        // cl-postgres, which speaks the protocol by itself.
        assert!(!may_be(&["user", "database", "client_encoding", "application_name"]));
        assert!(!may_be(&["database", "user"]) && !may_be(&["user", "extra_float_digits"]) && !may_be(&[]));
    }

    /// As pg8000 does it: Bind and Flush, and then Execute and Sync.
    #[test]
    fn who_waits_between_bind_and_execute_is_not_over_libpq() {
        let parameters: Vec<_> = [("user", "ann"), ("database", "shop")]
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
            .to_vec();
        let named = |sent: &[Sent]| {
            let mut recogniser = Recogniser::default();
            recogniser.startup(&Startup { parameters: &parameters, asked_encryption: true });
            for sent in sent {
                recogniser.statement(1, &Marks::default(), *sent, Some(Language::Python));
            }
            recogniser.driver().key()
        };
        assert_eq!(named(&[Sent::AsText]), "psycopg2");
        assert_eq!(named(&[Sent::AsText, Sent::WithParameters]), "psycopg3");
        assert_eq!(named(&[Sent::BoundBefore, Sent::AsText]), "unknown");
        assert_eq!(named(&[Sent::AsText, Sent::BoundBefore, Sent::WithParameters]), "unknown");
    }

    #[test]
    fn languages_are_told_by_the_words_of_a_command() {
        for (command, language) in [
            ("python app.py", Some(Language::Python)),
            (".venv/bin/python3.12 -m app", Some(Language::Python)),
            ("node server.js", Some(Language::JavaScript)),
            ("bundle exec rails test", Some(Language::Ruby)),
            ("php artisan test", Some(Language::Php)),
            ("java -jar app.jar", Some(Language::Java)),
            ("make test", None),
            ("sh -c python a.py & node b.js", None),
        ] {
            assert_eq!(language_of(command.as_bytes()), language, "{command}");
        }
    }
}

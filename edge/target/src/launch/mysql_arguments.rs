//! The arguments of MySQL's and MariaDB's clients, as `my_getopt` of both takes them apart: `--host=db`, `--host db`,
//! `--ho=db`, `-h db`, `-hdb`, `-Nh db`; nothing behind `--` is an option.

use std::borrow::Cow;
use std::ffi::OsString;

use crate::REDACTED;
use crate::mysql_clients::{Client, client_named};
use crate::written::{Format, Written};

/// Long options that matter here: the shortest form that is clear, the letter, and whether the value may be the next word.
const LONG: [(&str, &str, Option<char>, bool); 9] = [
    ("host", "ho", Some('h'), true),
    ("port", "po", Some('P'), true),
    ("socket", "so", Some('S'), true),
    ("user", "us", Some('u'), true),
    ("database", "datab", Some('D'), true),
    ("execute", "ex", Some('e'), true),
    ("protocol", "prot", None, true),
    ("ssl-mode", "ssl-m", None, true),
    (PASSWORD, "pas", Some('p'), false),
];
pub(super) const PASSWORD: &str = "password";
/// Short options whose value, if there is one, is the rest of the word.
const WITH_REST: &str = "p#";
const END: &str = "--";
/// The client whose commands set a password, the next word.
const ADMIN: &str = "mysqladmin";
const SETS_PASSWORD: [&str; 2] = [PASSWORD, "old-password"];

/// An option that was given.
#[derive(Debug)]
pub(super) struct Given {
    /// Its whole name; that of a short option without a long one here is the letter.
    pub(super) name: String,
    pub(super) value: Option<String>,
    /// Where the value stands: which word, and where it begins there.
    place: (usize, usize),
}

/// Arguments taken apart.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) given: Vec<Given>,
    /// The words before `--`.
    pub(super) end: usize,
}

/// Takes a client's arguments apart: the words after its name.
pub(super) fn read(words: &[Cow<'_, str>], client: &Client) -> Arguments {
    let mut given: Vec<Given> = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if word == END {
            return Arguments { given, end: at };
        }
        let (option, takes_next) = match word.strip_prefix(END) {
            Some(text) => long(text, at),
            None => match word.strip_prefix('-').map(|cluster| short(cluster, at, client)) {
                Some(Some(found)) => found,
                _ => {
                    at += 1;
                    continue;
                }
            },
        };
        given.push(option);
        at += 1;
        if let (true, Some(word), Some(option)) = (takes_next, words.get(at), given.last_mut()) {
            option.value = Some(word.clone().into_owned());
            option.place = (at, 0);
            at += 1;
        }
    }
    Arguments { given, end: words.len() }
}

/// The option of `--text`, and whether its value is the next word.
fn long(text: &str, word: usize) -> (Given, bool) {
    let (written, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let name = full_name(written);
    let takes_next = LONG.iter().any(|(known, .., takes_next)| *known == name && *takes_next);
    let place = (word, END.len() + written.len() + 1);
    (Given { name, value: value.map(str::to_owned), place }, takes_next && value.is_none())
}

/// The whole name of an option that may be shortened, as option files have it, too.
pub(crate) fn full_name(written: &str) -> String {
    let name = written.replace('_', "-");
    let name = name.strip_prefix("loose-").unwrap_or(&name);
    let is_meant = |known: &str, shortest: &str| known.starts_with(name) && name.starts_with(shortest);
    let known = LONG.iter().find(|(known, shortest, ..)| is_meant(known, shortest));
    known.map_or_else(|| name.to_owned(), |(known, ..)| (*known).to_owned())
}

/// The option with a value in `-cluster`, and whether that is the next word.
fn short(cluster: &str, word: usize, client: &Client) -> Option<(Given, bool)> {
    let has_value = |letter: char| client.with_value.contains(letter) || WITH_REST.contains(letter);
    let (at, letter) = cluster.char_indices().find(|(_, letter)| has_value(*letter))?;
    let rest = &cluster[at + letter.len_utf8()..];
    let long = LONG.iter().find(|(_, _, short, _)| *short == Some(letter));
    let name = long.map_or_else(|| letter.to_string(), |(name, ..)| (*name).to_owned());
    let value = (!rest.is_empty()).then(|| rest.to_owned());
    let takes_next = value.is_none() && !WITH_REST.contains(letter);
    Some((Given { name, value, place: (word, 1 + at + letter.len_utf8()) }, takes_next))
}

/// The words of a command without the passwords that only MySQL's clients and drivers have where they stand: `-psecret` of a
/// client, also where another program starts it, and those in DSNs of Go.
pub fn without_passwords(command: &[OsString]) -> Vec<OsString> {
    let mut words: Vec<Cow<'_, str>> = command.iter().map(|word| word.to_string_lossy()).collect();
    hide_of_client(&mut words);
    words.into_iter().map(|word| OsString::from(in_text(&word))).collect()
}

fn hide_of_client(words: &mut [Cow<'_, str>]) {
    let client_of = |word: &str| client_named(word.rsplit('/').next().unwrap_or_default());
    let found = words.iter().enumerate().find_map(|(at, word)| Some((at, client_of(word)?)));
    let Some((at, client)) = found else { return };
    let arguments = &mut words[at + 1..];
    let passwords =
        read(arguments, client).given.into_iter().filter(|given| given.name.starts_with(PASSWORD));
    for Given { place: (word, begin), value, .. } in passwords {
        if value.is_some() {
            arguments[word] = format!("{}{REDACTED}", &arguments[word][..begin]).into();
        }
    }
    let command = arguments.iter().position(|word| SETS_PASSWORD.contains(&word.as_ref()));
    let password = command.filter(|_| client.mysql == ADMIN).and_then(|at| arguments.get_mut(at + 1));
    password.into_iter().for_each(|word| *word = REDACTED.into());
}

/// A word, which may be a text for a shell or a piece of code, without such passwords.
fn in_text(word: &str) -> String {
    if let Some(hidden) = of_go(word) {
        return hidden;
    }
    let pieces: Vec<&str> = word.split_inclusive(char::is_whitespace).collect();
    if pieces.len() < 2 {
        return quoted_dsns(word);
    }
    let mut words: Vec<Cow<'_, str>> = pieces.iter().map(|piece| piece.trim_end().into()).collect();
    hide_of_client(&mut words);
    let mut text = String::with_capacity(word.len());
    let mut open = None;
    for (piece, hidden) in pieces.iter().zip(words) {
        let own = piece.trim_end();
        // A quoted password goes on to the quote.
        if let Some(quote) = open {
            open = Some(quote).filter(|quote| !own.ends_with(*quote));
            continue;
        }
        if hidden != own {
            let value = own.strip_prefix(hidden.trim_end_matches(REDACTED)).unwrap_or_default();
            let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
            open = quote.filter(|quote| value.len() == 1 || !value.ends_with(*quote));
        }
        text.push_str(&quoted_dsns(&hidden));
        text.push_str(&piece[own.len()..]);
    }
    text
}

/// Code without the passwords of DSNs of Go in quotes.
fn quoted_dsns(text: &str) -> String {
    let pieces = text.split_inclusive(['"', '\'', '`']).map(|piece| {
        let own = piece.trim_end_matches(['"', '\'', '`']);
        of_go(own).map_or_else(|| piece.to_owned(), |hidden| hidden + &piece[own.len()..])
    });
    pieces.collect()
}

/// A DSN of Go without its password, if the text is one.
fn of_go(text: &str) -> Option<String> {
    let is_go = |text: &str| Written::parse(text).is_ok_and(|written| written.format == Format::GoDsn);
    is_go(text).then(|| crate::redact(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let words: Vec<Cow<'_, str>> = text.split(' ').map(Cow::from).collect();
        let client = client_named(&words[0]).unwrap();
        let given = read(&words[1..], client).given;
        given.into_iter().map(|it| format!("{}={}", it.name, it.value.as_deref().unwrap_or("-"))).collect()
    }

    #[test]
    fn every_form_of_an_option_is_read_as_the_clients_read_it() {
        for text in [
            "--host=db --port=3307",
            "--host db --port 3307",
            "-h db -P 3307",
            "-hdb -P3307",
            "--ho=db --por=3307",
            "--loose-host=db --loose_port=3307",
            "-Nh db -BNP3307",
        ] {
            assert_eq!(told(&format!("mysql {text}")), ["host=db", "port=3307"], "{text}");
        }
        for (text, expected) in [
            ("mysql -e -hother shop", &["execute=-hother"][..]),
            ("mysql --user -hother", &["user=-hother"]),
            ("mysql -pNhother -h db", &["password=Nhother", "host=db"]),
            ("mysql -p -h db", &["password=-", "host=db"]),
            ("mysqldump -whother shop", &["w=hother"]),
            ("mysqldump -e -hdb", &["host=db"]),
            ("mysql --hostile=1 --p=1", &["hostile=1", "p=1"]),
            ("mysql shop -- -hother", &[]),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
        let words = ["-e", "--", "-v", "--", "x"].map(Cow::from);
        assert_eq!(read(&words, client_named("mysql").unwrap()).end, 3);
    }

    #[test]
    fn passwords_are_hidden_wherever_a_client_or_a_dsn_stands() {
        let shown = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(OsString::from).collect();
            let shown = without_passwords(&words);
            shown.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        for (words, expected) in [
            (&["mysql", "-uroot", "-ps3cret", "shop"][..], "mysql -uroot -p*** shop"),
            (
                &["sudo", "/usr/bin/mariadb-dump", "-ABps3cret", "shop"],
                "sudo /usr/bin/mariadb-dump -ABp*** shop",
            ),
            (&["mysql", "--pass=s3cret"], "mysql --pass=***"),
            (&["mysql", "--password1=s3cret"], "mysql --password1=***"),
            (&["mysql", "-p", "shop"], "mysql -p shop"),
            (&["sh", "-c", "mysql -ps3cret shop < a.sql"], "sh -c mysql -p*** shop < a.sql"),
            (&["sh", "-c", "mysql -p's3 cret x' shop"], "sh -c mysql -p*** shop"),
            (&["app", "-dsn", "u:s3cret@tcp(db)/x"], "app -dsn u:***@tcp(db)/x"),
            (&["app", "-dsn=u:s3cret@tcp(db)/x"], "app -dsn=u:***@tcp(db)/x"),
            (&["go", "-e", "Open(\"u:s3cret@unix(/x.sock)/x\")"], "go -e Open(\"u:***@unix(/x.sock)/x\")"),
            (&["psql", "-p5432", "shop"], "psql -p5432 shop"),
        ] {
            assert_eq!(shown(words), expected);
        }
    }
}

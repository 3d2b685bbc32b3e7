//! A program's arguments as a report may keep them: without what looks like a secret.

use std::ffi::OsString;

use onetrip_target::launch::without_passwords;
use onetrip_target::{REDACTED, is_secret, redact};

/// The words of a command line with their secrets hidden: passwords in URLs, and what follows `password=`, `--token` and
/// the like. Where a secret may go on, the rest of the word is hidden too.
pub(crate) fn masked(command: &[OsString]) -> Vec<String> {
    let mut follows_secret = false;
    let mut words = Vec::with_capacity(command.len());
    for word in &without_passwords(command) {
        let word = word.to_string_lossy();
        // A password may begin with a dash: what follows is hidden even if it may be the next option.
        let is_value = follows_secret;
        follows_secret = word.starts_with('-') && !word.contains(['=', ':']) && names_secret(&word);
        words.push(if is_value { REDACTED.to_owned() } else { masked_word(&word) });
    }
    words
}

fn masked_word(word: &str) -> String {
    if let Some(begin) = secret_begins(word) {
        return format!("{}{REDACTED}", masked_url(&word[..begin]));
    }
    masked_url(word)
}

/// Where the value of the first name of a secret begins, as in `password=x`, `"token": "x"` or `--api-key=x`.
fn secret_begins(word: &str) -> Option<usize> {
    word.char_indices().filter(|(_, character)| matches!(character, '=' | ':')).find_map(|(at, _)| {
        let is_of_url = word[at..].starts_with("://");
        let before = word[..at].trim_end_matches([' ', '"', '\'']);
        let is_of_name =
            |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
        let name = before.rsplit(|character: char| !is_of_name(character)).next().unwrap_or_default();
        (!is_of_url && names_secret(name)).then_some(at + 1)
    })
}

/// The word with the passwords of all URLs in it hidden.
fn masked_url(word: &str) -> String {
    let begins: Vec<usize> = word.match_indices("://").map(|(at, _)| url_begins(word, at)).collect();
    let mut masked = word[..begins.first().copied().unwrap_or(word.len())].to_owned();
    for (place, begin) in begins.iter().enumerate() {
        let url = &word[*begin..begins.get(place + 1).copied().unwrap_or(word.len())];
        let authority =
            url[url.find("://").map_or(0, |at| at + 3)..].split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            masked.push_str(&redact(url));
        } else {
            masked.push_str(url);
        }
    }
    masked
}

/// Where the URL begins whose scheme ends here.
fn url_begins(word: &str, scheme_end: usize) -> usize {
    let begin =
        word[..scheme_end].rfind(|character: char| !character.is_ascii_alphanumeric() && character != '+');
    let begin = begin.map_or(0, |before| before + word[before..].chars().next().map_or(1, char::len_utf8));
    if word[..begin].ends_with("jdbc:") { begin - "jdbc:".len() } else { begin }
}

fn names_secret(name: &str) -> bool {
    is_secret(&name.replace('-', "_")) || name.to_ascii_lowercase().contains("apikey")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str]) -> String {
        masked(&words.iter().map(OsString::from).collect::<Vec<_>>()).join(" ")
    }

    #[test]
    fn what_looks_like_a_secret_is_hidden_wherever_it_stands() {
        for words in [
            &["--password=s3cr3t"][..],
            &["--password", "s3cr3t"],
            &["--db-password", "s3cr3t", "--verbose"],
            &["--token=s3cr3t"],
            &["--api-key", "s3cr3t"],
            &["password=s3cr3t host=db"],
            &["-Dspring.datasource.password=s3cr3t"],
            &["PGPASSWORD=s3cr3t"],
            &["postgres://shop:s3cr3t@db/shop"],
            &["--url=postgres://shop:s3cr3t@db/shop"],
            &["jdbc:postgresql://db/shop?user=a&password=s3cr3t"],
            &["redis://:s3cr3t@cache:6379/0"],
            &["-c", "connect(host='db', password = 's3cr3t')"],
            &["{\"password\": \"s3cr3t\"}"],
            &["--password", "-s3cr3t"],
            &["/usr/bin/mysqladmin", "-u", "root", "password", "s3cr3t"],
            &["mariadb-admin", "old-password", "s3cr3t"],
            &["sh", "-c", "mysqladmin -u root password s3cr3t"],
            &["--password", "--token", "s3cr3t"],
            &["sh", "-c", "curl https://example.org; psql postgres://ann:s3cr3t@db/shop"],
            &["psql postgres://db/x; psql postgres://b:s3cr3t@db/y"],
            &["psql postgres://a:s3cr3t@db/x && psql 'postgres://b:s3cr3t@db/y'"],
            &["é://é postgres://a:s3cr3t@db/x"],
        ] {
            assert!(!shown(words).contains("s3cr3t"), "{words:?} is shown as {}", shown(words));
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for words in [
            &["pytest", "-k", "login or logout", "tests/test_a.py::test_it[1]"][..],
            &["--month=last month", "https://example.org/a?b=c", "postgres://shop@db:5432/shop"],
            &["-c", "print(1)", "--level=3", "--no-color"],
            &["grep", "password", "notes.txt"],
        ] {
            assert_eq!(shown(words), words.join(" "));
        }
        assert_eq!(shown(&["postgres://shop:x@db/shop"]), "postgres://shop:***@db/shop");
        let words = "curl https://example.org/a; psql postgres://b:x@db/y";
        assert_eq!(shown(&[words]), "curl https://example.org/a; psql postgres://b:***@db/y");
    }
}

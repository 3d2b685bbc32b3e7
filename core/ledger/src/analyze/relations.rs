//! Whether a parameter is meant for what an earlier result's column has, by the names of columns and tables.
//!
//! Small numbers coincide: the ids 1, 2, 3 are in any list. A column `author_id` that is compared with an author's `id` does
//! not coincide, nor does a table's key that is compared with itself.

use super::templates::Named;

/// How names speak for it that a column of a result gives a parameter of another statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Relation {
    /// They do not.
    None,
    /// It is one column of one table, such as the key of rows that are listed and then read one by one.
    Same,
    /// One of the two names the other's table, or both have the same name, which is no word for any key.
    Refers,
}

/// Names of keys that tell nothing of their table.
const GENERIC: [&str; 6] = ["id", "pk", "uuid", "guid", "key", "oid"];
/// Parts of a column's name that say it is a key, and not whose.
const OF_KEYS: [&str; 9] = ["id", "ids", "pk", "fk", "uuid", "guid", "key", "ptr", "ref"];

/// How the result's column `source`, of `lists`, speaks for the column `target` that `reads` compares with the parameter.
pub(super) fn relation(lists: &Named, source: &str, reads: &Named, target: &str) -> Relation {
    let (source, target) = (words(source), words(target));
    let is_generic = |column: &[String]| matches!(column, [one] if GENERIC.contains(&one.as_str()));
    match (is_generic(&source), is_generic(&target)) {
        (true, true) if source == target && lists.tables.iter().any(|table| reads.tables.contains(table)) => {
            Relation::Same
        }
        (true, true) => Relation::None,
        (false, false) if source == target || bare(&source) == bare(&target) => Relation::Refers,
        (_, false) if lists.tables.iter().any(|table| names(&target, table)) => Relation::Refers,
        (false, _) if reads.tables.iter().any(|table| names(&source, table)) => Relation::Refers,
        _ => Relation::None,
    }
}

/// Whether a column's name has a table's in it, as `author_id` has that of `authors` or `shop_author`.
fn names(column: &[String], table: &str) -> bool {
    let bare = bare(column);
    let table = words(table);
    !bare.is_empty()
        && (0..table.len()).any(|from| {
            let tail = &table[from..];
            bare.len() >= tail.len() && (bare.ends_with(tail) || bare.starts_with(tail))
        })
}

/// The words of a name that do not only say that it is a key.
fn bare(column: &[String]) -> &[String] {
    let is_of_key = |word: &String| OF_KEYS.contains(&word.as_str());
    let end = column.iter().rposition(|word| !is_of_key(word)).map_or(0, |last| last + 1);
    let column = &column[..end];
    let begin = column.iter().position(|word| !is_of_key(word)).unwrap_or(column.len());
    &column[begin..]
}

/// The words of a name, in lower case and in the singular, without the numbers that mappers add (`author_id2_0_`).
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    let mut is_open = false;
    for character in name.chars() {
        if !character.is_alphabetic() {
            is_open = false;
            was_lower = false;
            continue;
        }
        // `authorId` is two words.
        let is_begin = !is_open || (was_lower && character.is_uppercase());
        was_lower = character.is_lowercase();
        is_open = true;
        if is_begin {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
    }
    words.iter().map(|word| singular(word)).collect()
}

fn singular(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() > 1) {
        return format!("{stem}y");
    }
    for ending in ["sses", "xes", "ches", "shes"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with('s') && !stem.ends_with('u') => stem.to_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lists: &str, source: &str, reads: &str, target: &str) -> Relation {
        let named = |tables: &str| Named {
            tables: tables.split(' ').filter(|table| !table.is_empty()).map(str::to_owned).collect(),
            ..Named::default()
        };
        relation(&named(lists), source, &named(reads), target)
    }

    /// All of these have that relation: what is listed, and the column; what is read, and the column.
    fn all(expected: Relation, cases: &[[&str; 4]]) {
        for [lists, source, reads, target] in cases {
            let found = of(lists, source, reads, target);
            assert_eq!(found, expected, "{lists}.{source} {reads}.{target}");
        }
    }

    #[test]
    fn a_foreign_key_and_what_it_refers_to_are_related() {
        all(
            Relation::Refers,
            &[
                ["authors", "id", "books", "author_id"],
                ["shop_author", "id", "shop_book", "author_id"],
                ["categories", "id", "posts", "category_id"],
                ["boxes", "id", "items", "boxId"],
                ["books", "author_id", "authors", "id"],
                ["books", "author_id", "reviews", "author_id"],
                ["users", "id", "posts", "created_by_user_id"],
                ["authors", "id1_0_", "books", "author_id"],
                ["authors", "authors_id", "books", "author_id"],
                ["wagtailcore_page", "id", "home_homepage", "page_ptr_id"],
                ["orders", "isbn", "books", "isbn"],
            ],
        );
    }

    #[test]
    fn a_tables_own_key_is_the_same() {
        all(Relation::Same, &[["issues", "id", "issues", "id"], ["issues users", "id", "issues", "id"]]);
    }

    #[test]
    fn keys_that_only_have_a_common_name_are_not_related() {
        all(
            Relation::None,
            &[
                ["posts", "id", "accounts", "id"],
                ["posts", "views", "accounts", "id"],
                ["posts", "id", "accounts", "number"],
                ["posts", "position", "t", "id"],
                ["posts", "id", "", "id"],
                ["posts", "", "t", "id"],
            ],
        );
    }
}

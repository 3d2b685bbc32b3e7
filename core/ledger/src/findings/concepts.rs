//! The glossary: each term once, with its meaning and an example.

/// The page of the glossary, as Markdown: a table of terms, then how trips are counted and findings proven.
pub const CONCEPTS: &str = include_str!("concepts.md");

/// A term of the glossary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concept {
    /// The term, and other words for it, separated by commas.
    pub term: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// One case of it.
    pub example: &'static str,
}

impl Concept {
    /// All terms, in the order of the page.
    pub fn all() -> impl Iterator<Item = Self> {
        // The first two lines of the table are its head.
        CONCEPTS.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")).skip(1).filter_map(
            |row| {
                let mut cells = row.split(" | ");
                Some(Self { term: cells.next()?, meaning: cells.next()?, example: cells.next()? })
            },
        )
    }

    /// Whether the term, or another word for it, is `word`, in the singular or the plural.
    pub fn is_called(self, word: &str) -> bool {
        let singular = |word: &str| word.strip_suffix('s').unwrap_or(word).to_lowercase();
        self.term.split(", ").any(|term| singular(term) == singular(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_table_is_a_term() {
        let rows = CONCEPTS.lines().filter(|line| line.starts_with('|')).count();
        assert_eq!(Concept::all().count() + 2, rows);
        let trip = Concept::all().find(|concept| concept.is_called("Trips")).expect("it is one");
        assert!(trip.meaning.starts_with("one turn of the conversation"), "{trip:?}");
        assert!(Concept::all().any(|concept| concept.is_called("n+1")));
        assert!(!Concept::all().any(|concept| concept.is_called("term")), "the head is none");
    }
}

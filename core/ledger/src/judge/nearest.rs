//! The known name that somebody is likely to have meant.

/// Below this likeness, from 0 to 1, a name is another one.
const LIKENESS_MIN: f64 = 0.6;

/// The known name that is most like `name`, if one is like it at all.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let name = name.to_lowercase();
    known
        .into_iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(&name, &known.to_lowercase()), known))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_own_and_another_word_finds_none() {
        let known = ["trips", "work-trips", "connections", "statements"];
        assert_eq!(nearest("trps", known), Some("trips"));
        assert_eq!(nearest("Conections", known), Some("connections"));
        assert_eq!(nearest("worktrips", known), Some("work-trips"));
        assert_eq!(nearest("speed", known), None);
        assert_eq!(nearest("GET /order", ["GET /orders", "POST /orders"]), Some("GET /orders"));
    }
}

//! Results that no setting shapes (rule R2): what was prefetched is what would be read later.

use onetrip_wire::pg::{Format, Oid};

use crate::statements::ResultFormats;

/// Whether each column is written alike under all settings but `client_encoding`, and writing it cannot fail; where
/// characters may be converted for the client, those that have any may.
pub(crate) fn is_free(columns: &[Oid], formats: &ResultFormats, may_convert: bool) -> bool {
    columns.iter().enumerate().all(|(position, oid)| {
        let is_free = TEXT_FREE.binary_search(oid).is_ok()
            || (formats.of(position) == Format::Binary && BINARY_FREE.binary_search(oid).is_ok());
        is_free && !(may_convert && OF_CHARACTERS.binary_search(oid).is_ok())
    })
}

/// Types whose values may hold any character, and arrays of them, in either format. Sorted.
const OF_CHARACTERS: [Oid; 14] = [18, 19, 25, 114, 199, 1002, 1003, 1009, 1014, 1015, 1042, 1043, 3802, 3807];

/// Types whose text looks at no setting. Sorted.
const TEXT_FREE: [Oid; 39] = [
    16, 18, 19, 20, 21, 23, 25, 26, 27, 28, 114, 199, 650, 651, 774, 829, 869, 1000, 1002, 1005, 1007, 1009,
    1014, 1015, 1016, 1028, 1040, 1041, 1042, 1043, 1231, 1560, 1562, 1700, 2950, 2951, 3802, 3807, 3904,
];

/// Types whose binary form looks at none. Sorted.
const BINARY_FREE: [Oid; 18] =
    [17, 700, 701, 790, 1001, 1021, 1022, 1082, 1083, 1114, 1115, 1182, 1183, 1184, 1185, 1186, 1187, 1266];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_a_type_is_free_as_text_or_as_binary() {
        assert!(TEXT_FREE.is_sorted() && BINARY_FREE.is_sorted() && OF_CHARACTERS.is_sorted());
        let text = ResultFormats::default();
        let binary = ResultFormats::new(&[0, 1]);
        let is_free = |columns: &[Oid], formats: &ResultFormats| is_free(columns, formats, false);
        assert!(is_free(&[23, 25, 1700], &text) && is_free(&[23, 1184], &binary));
        for shaped in [1184, 1082, 701, 17, 2205, 16_500] {
            assert!(!is_free(&[23, shaped], &text), "{shaped}");
        }
        assert!(!is_free(&[2205, 16_500], &binary), "unknown types are not free");
        assert!(super::is_free(&[23, 1700, 2950], &text, true), "they are written in ASCII");
        assert!(!super::is_free(&[23, 25], &text, true) && !super::is_free(&[25, 25], &binary, true));
    }
}

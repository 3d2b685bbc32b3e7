//! The scanner must not allocate once its buffers have grown.

use std::cell::Cell;

use onetrip_heap::ALLOCATIONS;
use onetrip_sql::{Lifter, sqlcommenter};

#[test]
fn a_warm_scanner_does_not_allocate() {
    let texts: Vec<&[u8]> = [include_str!("corpus/orms.sql"), include_str!("corpus/lexical.sql")]
        .iter()
        .flat_map(|file| file.split("\n\n"))
        .map(str::as_bytes)
        .collect();
    let mut lifter = Lifter::new();
    let mut scratch = Vec::new();
    let mut lift_all = || {
        let mut bytes = 0;
        for text in &texts {
            let lifted = lifter.lift(text, true);
            bytes += lifted.template().len() + lifted.facts().parts().len();
            for literal in lifted.literals() {
                bytes += literal.value(&mut scratch).len();
            }
            let tags = sqlcommenter::Tags::find(lifted.comments());
            bytes += tags.route.map_or(0, |route| route.decode(&mut scratch).len());
        }
        bytes
    };
    let before_warm_up = ALLOCATIONS.with(Cell::get);
    let bytes = lift_all();
    let warm = ALLOCATIONS.with(Cell::get);
    assert!(warm > before_warm_up, "the counter counts");
    assert_eq!(lift_all(), bytes);
    assert_eq!(ALLOCATIONS.with(Cell::get) - warm, 0);
}

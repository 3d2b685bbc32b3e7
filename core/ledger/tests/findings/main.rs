//! Patterns in made-up traffic: what must be found, with its exact count, and what must not.

mod arbitrary;
mod chatter;
mod connections;
mod fetches;
mod groups;
mod large_objects;
mod loops;
mod pairs;
mod prepares;
mod repeats;
mod traffic;
mod transactions;
mod values;
mod writes;

use onetrip_ledger::{Analyzer, Mutes};

use crate::traffic::Traffic;

#[test]
fn muted_findings_are_gone_and_others_stay() {
    let mut traffic = Traffic::new();
    traffic.begin();
    for n in 0..20 {
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
    }
    for n in 0..20 {
        traffic.run("INSERT INTO audit VALUES ($1)", &[2000 + n]);
    }
    traffic.commit();
    let block = traffic.block();
    let with = |rules: &str| {
        let mut analyzer = Analyzer::new();
        analyzer.block(1, &block).unwrap();
        analyzer.finish(&Mutes::parse(rules).unwrap()).summary.findings.len()
    };
    assert_eq!(with(""), 2);
    assert_eq!(with("[[mute]]\nstatement = \"into AUDIT\"\nwhy = \"small\""), 1);
    assert_eq!(with("[[mute]]\ncode = \"ot002\""), 0);
    assert!(Mutes::parse("[[mute]]\nwhy = \"all\"").is_err());
    assert!(Mutes::parse("[[mute]]\ncode = \"OT999\"").is_err());
    assert!(Mutes::parse("[[mute]]\ncolour = \"red\"").is_err());
}

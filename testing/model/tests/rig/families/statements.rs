//! Prepared statements.

use onetrip_testkit::messages::*;
use onetrip_testkit::random::Random;
use onetrip_testkit::script::{Form, INT4, INT8, Manner, Script, Statement, Value};
use onetrip_testkit::step::Wait;

use super::common::{USUAL, begin, interruption, writer};

/// Prepared statements.
pub(crate) fn statements(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 13] = [
        "SELECT id, name FROM p WHERE id = $1",
        "SELECT id, name FROM p WHERE id = $1",
        "SELECT * FROM w WHERE id = $1",
        "SELECT * FROM p WHERE grp = $1 ORDER BY id",
        "SELECT val FROM c WHERE pid = $1 ORDER BY id",
        "SELECT $1 + 1",
        "SELECT side($1)",
        "UPDATE w SET v = v WHERE id = $1",
        "SELECT count(*) FROM c WHERE pid <> $1",
        "SELECT 6 / (id - $1) FROM p WHERE id = 7",
        "SELECT no_such_column FROM p WHERE id = $1",
        "SELECT id FROM nowhere WHERE id = $1",
        "SELEKT $1",
    ];
    if script.session() > 0 && random.one_in(4) {
        return writer(script, random);
    }
    let choice = if random.one_in(3) { &TEXTS[..] } else { &TEXTS[..9] };
    let texts: Vec<&str> = (0..random.within(1..4)).map(|_| random.pick(choice)).collect();
    for _ in 0..random.within(1..6) {
        begin(script, random, &USUAL);
        for _ in 0..random.within(2..8) {
            let text = random.pick(&texts);
            let value = Value::Int(random.pick(&[0, 3, 7, 7, 11]));
            let values = if random.below(20) > 0 { vec![value] } else { Vec::new() };
            let statement = Statement::new(text, &values);
            let declared = random.pick(&[None, None, None, Some(INT4), Some(INT8)]);
            let form =
                random.pick(&[Form::Unnamed, Form::Split, Form::Split, Form::Named, Form::NamedTogether]);
            let manner = Manner { form, declared, is_binary: declared.is_some() && random.one_in(2) };
            let name = random.pick(&["", "", "a", "b"]);
            match random.below(16) {
                0..=9 => script.run(&statement, manner),
                10 => {
                    script.prepare(name, &statement, manner);
                    if random.one_in(3) {
                        interruption(script, random);
                    }
                    script.bind(name, &statement, manner);
                }
                11 => script.bind(name, &statement, manner),
                12 => {
                    let bytes = [close_statement(name), sync()].concat();
                    script.send(bytes, Wait::Ready(1), format!("close {name:?}"));
                }
                13 => script.simple(random.pick(&["DEALLOCATE ALL", "DEALLOCATE a", "DEALLOCATE stmt_1"])),
                14 => {
                    let bytes = [describe_statement(name), sync()].concat();
                    script.send(bytes, Wait::Ready(1), format!("describe {name:?}"));
                }
                _ => interruption(script, random),
            }
        }
        script.end_transaction(random);
    }
}

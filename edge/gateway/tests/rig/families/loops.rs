//! N+1 loops: a result, then statements by the values of its rows; and whatever may come between.

use super::super::minima::{Shape, never, served};
use super::super::random::Random;
use super::super::schema::{GROUPS, PARENTS, children, group, reference};
use super::super::script::{Manner, Script, Statement, Value};
use super::common::{SNAPSHOTS, begin, interruption, writer};

/// What is asked for each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// By the key of the parent.
    Children,
    /// By another column, which may be NULL.
    Reference,
    /// Two statements for each row.
    Two,
    /// The second one's value is from the first one's result.
    Chain,
    /// The rows of the first statement are walked as well.
    Nested,
    /// The rows' group comes along, the same for several.
    Joint,
    /// A statement that may not be run unasked.
    Impure(&'static str),
    /// One that fails for one of the rows.
    Failing,
}

const BODIES: [Body; 16] = [
    Body::Children,
    Body::Children,
    Body::Children,
    Body::Reference,
    Body::Reference,
    Body::Two,
    Body::Two,
    Body::Chain,
    Body::Nested,
    Body::Joint,
    Body::Impure("SELECT side($1)"),
    Body::Impure("SELECT did FROM effects WHERE id = $1"),
    Body::Impure("SELECT id, val FROM c WHERE pid = $1 ORDER BY id FOR UPDATE"),
    Body::Impure("SELECT v, nextval('sq') FROM n WHERE id = $1"),
    Body::Impure("UPDATE d SET note = note || '.' WHERE pid = $1 RETURNING note"),
    Body::Failing,
];

/// Bodies of loops, and what they must not be.
pub(crate) const SHAPES: [Shape; 7] = [
    served("SELECT id, val FROM c WHERE pid = $1 ORDER BY id"),
    served("SELECT note FROM d WHERE pid = $1 ORDER BY note"),
    served("SELECT val, amount, pid FROM c WHERE id = $1"),
    served("SELECT name FROM p WHERE id = $1"),
    served("SELECT name FROM p WHERE id >= $1 AND grp = $2 ORDER BY id LIMIT 2"),
    never("SELECT side($1)"),
    never("SELECT did FROM effects WHERE id = $1"),
];

/// A few transactions with loops; one session in three writes instead.
pub(crate) fn write(script: &mut Script, random: &mut Random) {
    if script.session() > 0 && random.one_in(2) {
        return writer(script, random, 12);
    }
    let (body, manner) = (random.pick(&BODIES), Manner::any(random));
    let interrupts = random.pick(&[0, 0, 8, 20, 40]);
    for _ in 0..random.within(1..4) {
        begin(script, random, &SNAPSHOTS);
        if random.one_in(8) {
            interruption(script, random);
        }
        let loops = if random.one_in(4) { 2 } else { 1 };
        for _ in 0..loops {
            let body = if random.one_in(5) { random.pick(&BODIES) } else { body };
            one_loop(script, random, body, manner, interrupts);
        }
        script.end_transaction(random);
    }
}

fn one_loop(script: &mut Script, random: &mut Random, body: Body, manner: Manner, interrupts: usize) {
    let of_group = random.one_in(4).then(|| random.below(GROUPS as usize) as i64);
    let select = match of_group {
        Some(group) => {
            Statement::new("SELECT id, grp, ref FROM p WHERE grp = $1 ORDER BY id", &[Value::Int(group)])
        }
        None if random.one_in(6) => Statement::new("SELECT id, name FROM plain ORDER BY id", &[]),
        None => Statement::new("SELECT id, name, ref, grp FROM p ORDER BY id", &[]),
    };
    let manner_of_parents = if random.one_in(5) { Manner::any(random) } else { manner };
    script.run(&select, manner_of_parents);
    let rows: Vec<i64> =
        PARENTS.into_iter().filter(|id| of_group.is_none_or(|wanted| wanted == group(*id))).collect();
    for parent in walk(random, rows) {
        iteration(script, random, body, manner, parent);
        if interrupts > 0 && random.one_in(interrupts) {
            interruption(script, random);
        }
    }
}

/// The rows in the way a program takes them.
fn walk(random: &mut Random, mut rows: Vec<i64>) -> Vec<i64> {
    match random.below(9) {
        0 => rows.truncate(random.within(1..5)),
        1 => rows.retain(|id| group(*id) != 1),
        2 => rows.retain(|id| reference(*id).is_some()),
        3 => random.shuffle(&mut rows),
        4 => rows = rows.iter().flat_map(|id| vec![*id; 1 + (*id % 3 == 0) as usize]).collect(),
        5 => rows.retain(|_| random.below(3) > 0),
        6 => rows.iter_mut().for_each(|id| *id += (*id % 5 == 0) as i64),
        _ => {}
    }
    rows
}

fn iteration(script: &mut Script, random: &mut Random, body: Body, manner: Manner, parent: i64) {
    let id = Value::Int(parent);
    let of_parent =
        Statement::new("SELECT id, val FROM c WHERE pid = $1 ORDER BY id", std::slice::from_ref(&id));
    let notes = Statement::new("SELECT note FROM d WHERE pid = $1 ORDER BY note", std::slice::from_ref(&id));
    let by_reference = |to: Value| Statement::new("SELECT val, amount, pid FROM c WHERE id = $1", &[to]);
    match body {
        Body::Children => script.run(&of_parent, manner),
        Body::Reference => {
            let reference = reference(parent).map_or(Value::Null, Value::Int);
            if reference != Value::Null || random.one_in(2) {
                script.run(&by_reference(reference), manner);
            }
        }
        Body::Two => {
            script.run(&of_parent, manner);
            script.run(&notes, manner);
        }
        Body::Chain => {
            if let Some(reference) = reference(parent) {
                script.run(&by_reference(Value::Int(reference)), manner);
                let owner = PARENTS.into_iter().find(|id| children(*id).contains(&reference));
                if let Some(owner) = owner {
                    script.run(
                        &Statement::new("SELECT name FROM p WHERE id = $1", &[Value::Int(owner)]),
                        manner,
                    );
                }
            }
        }
        Body::Nested => {
            script.run(&of_parent, manner);
            for child in children(parent) {
                script.run(&by_reference(Value::Int(child)), manner);
            }
        }
        Body::Joint => {
            let text = "SELECT name FROM p WHERE id >= $1 AND grp = $2 ORDER BY id LIMIT 2";
            script.run(&Statement::new(text, &[id, Value::Int(group(parent))]), manner);
        }
        Body::Impure(text) => script.run(&Statement::new(text, &[id]), manner),
        Body::Failing => {
            script.run(&Statement::new("SELECT 10 / (id - 26) FROM p WHERE id = $1", &[id]), manner);
        }
    }
}

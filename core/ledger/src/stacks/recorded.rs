//! Programs of many stacks are known by what they send (`recorded.toml`).

use onetrip_sql::Lifter;
use serde::Deserialize;

use super::recogniser::{Sent, Startup, language_of};
use super::{Driver, Recogniser, marks_of};

#[derive(Deserialize)]
struct Recorded {
    program: Vec<Program>,
}

#[derive(Deserialize)]
struct Program {
    stack: String,
    command: String,
    asked_encryption: bool,
    startup: Vec<(String, String)>,
    statements: Vec<Statement>,
}

#[derive(Deserialize)]
struct Statement {
    /// Name of the prepared statement; none where the text came in a simple query.
    name: Option<String>,
    text: String,
}

fn recorded() -> Vec<Program> {
    let recorded: Recorded = toml::from_str(include_str!("recorded.toml")).expect("it can be read");
    recorded.program
}

fn startup(program: &Program, recogniser: &mut Recogniser) {
    let pairs: Vec<_> =
        program.startup.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    recogniser.startup(&Startup { parameters: &pairs, asked_encryption: program.asked_encryption });
}

/// Shows the statements to `recogniser`, as the program's own, or of a program about which nothing is known.
fn send(program: &Program, recogniser: &mut Recogniser, is_command_known: bool) {
    let language = language_of(program.command.as_bytes()).filter(|_| is_command_known);
    let mut lifter = Lifter::new();
    let mut templates: Vec<String> = Vec::new();
    for Statement { name, text } in &program.statements {
        if let Some(name) = name.as_ref().filter(|name| !name.is_empty()) {
            recogniser.statement_name(name.as_bytes());
        }
        let template = String::from_utf8_lossy(lifter.lift(text.as_bytes(), true).template()).into_owned();
        let number = templates.iter().position(|known| *known == template).unwrap_or(templates.len());
        let sent = if name.is_some() { Sent::WithParameters } else { Sent::AsText };
        recogniser.statement(number as u32, &marks_of(&template), sent, language);
        templates.push(template);
    }
}

fn recognised(program: &Program, is_command_known: bool) -> Driver {
    let mut recogniser = Recogniser::default();
    startup(program, &mut recogniser);
    send(program, &mut recogniser, is_command_known);
    recogniser.driver()
}

#[test]
fn each_stack_is_named_rightly() {
    let wrong: Vec<_> = recorded()
        .iter()
        .map(|program| (program.stack.clone(), recognised(program, true).name()))
        .filter(|(stack, named)| stack != named)
        .collect();
    assert!(wrong.is_empty(), "stack, and what it was taken for: {wrong:?}");
}

/// Behind a gateway nobody tells what the program is written in.
#[test]
fn without_a_command_the_orm_is_named_rightly_or_not_at_all() {
    let programs = recorded();
    let is_orm = |name: &str| Driver::all().any(|driver| driver.is_orm() && driver.name() == name);
    let wrong: Vec<_> = programs
        .iter()
        .map(|program| (program.stack.clone(), recognised(program, false)))
        .filter(|(stack, named)| named.is_orm() && stack != named.name())
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let orms: Vec<_> = programs.iter().filter(|program| is_orm(&program.stack)).collect();
    let named = orms.iter().filter(|program| recognised(program, false).name() == program.stack).count();
    assert!(named * 10 >= orms.len() * 8, "{named} of {}", orms.len());
}

/// One statement may be chance.
#[test]
fn one_statement_makes_no_orm() {
    for program in recorded() {
        for statement in &program.statements {
            let mut recogniser = Recogniser::default();
            let text = || Statement { name: statement.name.clone(), text: statement.text.clone() };
            let one = Program { statements: vec![text(), text()], ..clone(&program) };
            startup(&one, &mut recogniser);
            send(&one, &mut recogniser, true);
            assert_eq!(recogniser.orm(), None, "{}", statement.text);
        }
    }
}

/// A pool's later connections do not introduce themselves; a statement of theirs is enough, and a strange one is not.
#[test]
fn an_orm_that_was_seen_before_needs_a_statement_of_its_own() {
    for program in recorded() {
        let known = recognised(&program, true);
        if !known.is_orm() {
            continue;
        }
        let mut again = Recogniser::default();
        startup(&program, &mut again);
        again.expect(known);
        again.statement(1, &marks_of("SELECT count(*) FROM orders"), Sent::AsText, None);
        assert_eq!(again.orm(), None, "{}", program.stack);
        send(&program, &mut again, true);
        assert_eq!(again.orm(), Some(known), "{}", program.stack);
    }
}

fn clone(program: &Program) -> Program {
    Program {
        stack: program.stack.clone(),
        command: program.command.clone(),
        asked_encryption: program.asked_encryption,
        startup: program.startup.clone(),
        statements: Vec::new(),
    }
}

//! What workload files leave to be worked out: numbers, texts and verdicts over the variables of a cell.

use std::collections::BTreeMap;
use std::fmt::Write;

use minijinja::value::Value;
use minijinja::{Environment, Error, UndefinedBehavior};

/// The variables of a cell by name.
pub(crate) type Variables = BTreeMap<String, Value>;

/// Evaluates formulas and fills templates. Their language is minijinja's; the functions below are added.
#[derive(Debug)]
pub(crate) struct Formulas(Environment<'static>);

impl Formulas {
    pub(crate) fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.add_function("least", |a: i64, b: i64| a.min(b));
        environment.add_function("greatest", |a: i64, b: i64| a.max(b));
        environment.add_function("ceil", |a: i64, b: i64| if b < 1 { 0 } else { (a + b - 1) / b });
        environment.add_function("array", array);
        environment.add_function("texts", texts);
        Self(environment)
    }

    /// The same language with more functions, for verdicts.
    pub(crate) fn environment_mut(&mut self) -> &mut Environment<'static> {
        &mut self.0
    }

    /// A formula's number; truth counts as one.
    pub(crate) fn number(&self, formula: &str, variables: &Variables) -> Result<i64, Error> {
        let value = self.value(formula, variables)?;
        let not_a_number =
            || Error::new(minijinja::ErrorKind::InvalidOperation, format!("{formula:?} is no number"));
        if value.kind() == minijinja::value::ValueKind::Bool {
            return Ok(i64::from(value.is_true()));
        }
        i64::try_from(value).map_err(|_| not_a_number())
    }

    /// A formula's value as text, as a parameter is written.
    pub(crate) fn text_of(&self, formula: &str, variables: &Variables) -> Result<String, Error> {
        Ok(self.value(formula, variables)?.to_string())
    }

    /// A template with its holes filled.
    pub(crate) fn fill(&self, template: &str, variables: &Variables) -> Result<String, Error> {
        if !template.contains("{{") && !template.contains("{%") {
            return Ok(template.to_owned());
        }
        self.0.render_str(template, context(variables))
    }

    fn value(&self, formula: &str, variables: &Variables) -> Result<Value, Error> {
        self.0.compile_expression(formula)?.eval(context(variables))
    }
}

fn context(variables: &Variables) -> Value {
    Value::from_pairs(variables.iter().map(|(name, value)| (name.as_str(), value.clone())))
}

/// `{3,4,5}`: so many numbers from the first one on, as a text form of an array.
fn array(first: i64, count: i64) -> String {
    joined(first, count, "")
}

/// `{note 3,note 4}`: the same with a text before each.
fn texts(before: &str, first: i64, count: i64) -> String {
    joined(first, count, before)
}

fn joined(first: i64, count: i64, before: &str) -> String {
    let mut out = String::from("{");
    for number in first..first.saturating_add(count) {
        if number > first {
            out.push(',');
        }
        let _ = write!(out, "{before}{number}");
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_whole_numbers_over_variables() {
        let variables = Variables::from([
            ("rows".to_owned(), Value::from(20_000)),
            ("fetch".to_owned(), Value::from(30)),
        ]);
        let formulas = Formulas::new();
        assert_eq!(formulas.number("ceil(rows, fetch) + 1", &variables).unwrap(), 668);
        assert_eq!(formulas.number("rows > 7", &variables).unwrap(), 1);
        assert!(formulas.number("unknown + 1", &variables).is_err());
        assert_eq!(formulas.fill("LIMIT {{ fetch }}", &variables).unwrap(), "LIMIT 30");
        assert_eq!(formulas.text_of("array(fetch, 3)", &variables).unwrap(), "{30,31,32}");
    }
}

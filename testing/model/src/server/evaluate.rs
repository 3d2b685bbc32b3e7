//! Values of expressions.

use std::cmp::Ordering;

use super::failure::Failure;
use super::rows::Row;
use super::syntax::{Expression, Operator};
use super::value::{Type, Value};

/// What an expression may look at.
pub(crate) struct Scope<'a> {
    pub(crate) row: Option<&'a Row>,
    pub(crate) parameters: &'a [Value],
    /// Types of parameters, and the table's number.
    pub(crate) kinds: &'a [Type],
    pub(crate) table: Option<usize>,
}

impl Scope<'_> {
    /// Whether a row is one that a condition asks for.
    pub(crate) fn admits(&self, condition: Option<&Expression>) -> Result<bool, Failure> {
        let Some(condition) = condition else { return Ok(true) };
        Ok(self.value(condition)? == Value::Boolean(true))
    }

    /// The value of an expression that does not act.
    pub(crate) fn value(&self, expression: &Expression) -> Result<Value, Failure> {
        match expression {
            Expression::Integer(number) => Ok(Value::Integer(*number)),
            Expression::Text(text) => Ok(Value::Text(text.clone())),
            Expression::Null => Ok(Value::Null),
            Expression::Boolean(is) => Ok(Value::Boolean(*is)),
            Expression::Parameter(place) => {
                self.parameters.get(*place).cloned().ok_or_else(|| Failure::unknown("a parameter"))
            }
            Expression::Column(place) => {
                self.row.map(|row| row[*place].clone()).ok_or_else(|| Failure::unknown("a column"))
            }
            Expression::Cast(kind, inner) => match (self.value(inner)?, kind) {
                (Value::Null, _) => Ok(Value::Null),
                (value @ Value::Integer(_), Type::Int4 | Type::Int8) => value.fits(*kind),
                (value, _) => Value::parse(&value.text().unwrap_or_default(), *kind),
            },
            Expression::IsNull(wanted, inner) => {
                Ok(Value::Boolean((self.value(inner)? == Value::Null) == *wanted))
            }
            Expression::Binary(operator, both) => self.binary(*operator, expression, &both.0, &both.1),
            _ => Err(Failure::unknown("a function here")),
        }
    }

    fn binary(
        &self,
        operator: Operator,
        whole: &Expression,
        left: &Expression,
        right: &Expression,
    ) -> Result<Value, Failure> {
        use Operator as Is;
        let one = self.value(left)?;
        match (operator, &one) {
            (Is::And, Value::Boolean(false)) => return Ok(Value::Boolean(false)),
            (Is::Or, Value::Boolean(true)) => return Ok(Value::Boolean(true)),
            _ => {}
        }
        let two = self.value(right)?;
        let (one, two) = (typed(one, &two)?, two);
        let two = typed(two, &one)?;
        match operator {
            Is::And | Is::Or => Ok(logic(operator, &one, &two)),
            Is::Join => match (one.text(), two.text()) {
                (Some(one), Some(two)) => Ok(Value::Text(format!("{one}{two}").into())),
                _ => Ok(Value::Null),
            },
            Is::Add | Is::Subtract | Is::Multiply | Is::Divide | Is::Remainder => {
                let (Value::Integer(one), Value::Integer(two)) = (&one, &two) else { return Ok(Value::Null) };
                let kind = super::analysis::kind_of(whole, self.table, self.kinds);
                Value::Integer(arithmetic(operator, *one, *two)?).fits(kind)
            }
            _ => Ok(one.compare(&two).map_or(Value::Null, |order| Value::Boolean(is_so(operator, order)))),
        }
    }
}

/// A literal in quotes beside an integer is one.
fn typed(value: Value, beside: &Value) -> Result<Value, Failure> {
    match (&value, beside) {
        (Value::Text(text), Value::Integer(_)) => match text.parse::<i64>() {
            Ok(number) => Ok(Value::Integer(number)),
            Err(_) => Ok(value),
        },
        _ => Ok(value),
    }
}

fn logic(operator: Operator, one: &Value, two: &Value) -> Value {
    let decisive = Value::Boolean(operator == Operator::Or);
    match () {
        () if *one == decisive || *two == decisive => decisive,
        () if *one == Value::Null || *two == Value::Null => Value::Null,
        () => Value::Boolean(operator == Operator::And),
    }
}

fn arithmetic(operator: Operator, one: i64, two: i64) -> Result<i64, Failure> {
    if two == 0 && matches!(operator, Operator::Divide | Operator::Remainder) {
        return Err(Failure::new("22012", "division by zero"));
    }
    let result = match operator {
        Operator::Add => one.checked_add(two),
        Operator::Subtract => one.checked_sub(two),
        Operator::Multiply => one.checked_mul(two),
        Operator::Divide => one.checked_div(two),
        _ => one.checked_rem(two),
    };
    result.ok_or_else(|| Failure::new("22003", "bigint out of range"))
}

fn is_so(operator: Operator, order: Ordering) -> bool {
    match operator {
        Operator::Equal => order.is_eq(),
        Operator::Unequal => order.is_ne(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

//! What a statement's columns and parameters are.

use onetrip_wire::pg::{Column, Format, Formats, RowDescription, backend, frame};

use super::failure::Failure;
use super::schema::{self, TABLES, Table};
use super::syntax::{Expression, Item, Operator, Question, Statement};
use super::value::Type;

/// A column of a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Described {
    name: String,
    pub(crate) kind: Type,
    /// Where it is a column of a table.
    origin: Option<(Table, usize)>,
}

/// What is known of a statement before it is run.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Analyzed {
    pub(crate) parameters: Vec<Type>,
    pub(crate) columns: Option<Vec<Described>>,
}

/// Finds the types of a statement's parameters, of which some may be `declared`, and of its result.
pub(crate) fn analyze(statement: &Statement, declared: &[u32], is_wide: bool) -> Result<Analyzed, Failure> {
    let mut types =
        Types { parameters: declared.iter().map(|oid| Type::of_oid(*oid)).collect(), table: None, is_wide };
    let columns = match statement {
        Statement::Select(select) | Statement::Declare { select, .. } => {
            types.table = select.table;
            types.condition(select.condition.as_ref())?;
            let columns = types.items(&select.items)?;
            matches!(statement, Statement::Select(_)).then_some(columns)
        }
        Statement::Insert(insert) => {
            let kinds = TABLES[insert.table].columns;
            for row in &insert.rows {
                if row.len() > kinds.len() {
                    let message = "INSERT has more expressions than target columns";
                    return Err(Failure::new("42601", message));
                }
                for (expression, (_, kind, _)) in row.iter().zip(kinds) {
                    types.assigned(expression, *kind)?;
                }
            }
            types.returning(insert.table, &insert.returning)?
        }
        Statement::Update(change) | Statement::Delete(change) => {
            types.table = Some(change.table);
            for (column, expression) in &change.set {
                types.assigned(expression, TABLES[change.table].columns[*column].1)?;
            }
            types.condition(change.condition.as_ref())?;
            types.returning(change.table, &change.returning)?
        }
        Statement::Show(name) => Some(vec![Described::plain(super::settings::shown(name), Type::Text)]),
        Statement::Question(question) => {
            if let Question::Lookup(lookup) = question {
                types.parameters.extend(lookup.sql().contains("$1").then_some(Some(Type::Text)));
            }
            Some(question_columns(question))
        }
        _ => None,
    };
    let parameters = types.parameters.into_iter().map(|kind| kind.ok_or_else(undetermined));
    Ok(Analyzed { parameters: parameters.collect::<Result<_, _>>()?, columns })
}

fn undetermined() -> Failure {
    Failure::new("42P18", "could not determine data type of parameter $1")
}

fn question_columns(question: &Question) -> Vec<Described> {
    let count = match question {
        Question::Session(question) => question.column_count(),
        Question::Lookup(lookup) => lookup.column_count(),
    };
    (0..count).map(|_| Described::plain("?column?", Type::Text)).collect()
}

struct Types {
    parameters: Vec<Option<Type>>,
    table: Option<Table>,
    is_wide: bool,
}

impl Types {
    fn items(&mut self, items: &[Item]) -> Result<Vec<Described>, Failure> {
        let described = |item: &Item| {
            let origin = match item.expression {
                Expression::Column(column) => self.table.map(|table| (table, column)),
                _ => None,
            };
            let kind = match self.of(&item.expression)? {
                Some(kind) => kind,
                None => self.settle(&item.expression, Type::Text)?,
            };
            Ok(Described { name: item.name.clone(), kind, origin })
        };
        items.iter().map(described).collect()
    }

    fn returning(&mut self, table: Table, items: &[Item]) -> Result<Option<Vec<Described>>, Failure> {
        self.table = Some(table);
        if items.is_empty() { Ok(None) } else { self.items(items).map(Some) }
    }

    fn condition(&mut self, condition: Option<&Expression>) -> Result<(), Failure> {
        match condition.map(|condition| self.of(condition)).transpose()?.flatten() {
            None | Some(Type::Boolean) => Ok(()),
            Some(_) => Err(Failure::new("42804", "argument of WHERE must be type boolean")),
        }
    }

    fn assigned(&mut self, expression: &Expression, kind: Type) -> Result<(), Failure> {
        match self.of(expression)? {
            None => self.settle(expression, kind).map(|_| ()),
            Some(found) if found == kind || found.is_integer() && kind.is_integer() => Ok(()),
            Some(found) => {
                let message =
                    format!("column is of type {} but expression is of type {}", kind.name(), found.name());
                Err(Failure::new("42804", message))
            }
        }
    }

    /// An expression whose type was open has this one.
    fn settle(&mut self, expression: &Expression, kind: Type) -> Result<Type, Failure> {
        match expression {
            Expression::Parameter(place) => {
                self.grow(*place);
                let slot = &mut self.parameters[*place];
                Ok(*slot.get_or_insert(kind))
            }
            Expression::Text(text) => {
                super::value::Value::parse(text, kind)?;
                Ok(kind)
            }
            _ => Ok(kind),
        }
    }

    fn grow(&mut self, place: usize) {
        if self.parameters.len() <= place {
            self.parameters.resize(place + 1, None);
        }
    }

    /// `None` is open: a literal in quotes, NULL, a parameter that was not declared.
    fn of(&mut self, expression: &Expression) -> Result<Option<Type>, Failure> {
        Ok(match expression {
            Expression::Integer(number) if i32::try_from(*number).is_ok() => Some(Type::Int4),
            Expression::Integer(_) | Expression::Count => Some(Type::Int8),
            Expression::Text(_) | Expression::Null => None,
            Expression::Boolean(_) => Some(Type::Boolean),
            Expression::Parameter(place) => {
                self.grow(*place);
                self.parameters[*place]
            }
            Expression::Column(column) | Expression::Max(column) => {
                self.table.map(|table| match (table, *column) == schema::WIDENED && self.is_wide {
                    true => Type::Int8,
                    false => TABLES[table].columns[*column].1,
                })
            }
            Expression::Cast(kind, inner) => {
                if self.of(inner)?.is_none() {
                    self.settle(inner, *kind)?;
                }
                Some(*kind)
            }
            Expression::IsNull(_, inner) => {
                if self.of(inner)?.is_none() {
                    self.settle(inner, Type::Text)?;
                }
                Some(Type::Boolean)
            }
            Expression::Side(inner) => {
                match self.of(inner)? {
                    None => drop(self.settle(inner, Type::Int4)?),
                    Some(Type::Int4) => {}
                    Some(kind) => {
                        let message = format!("function side({}) does not exist", kind.name());
                        return Err(Failure::new("42883", message));
                    }
                }
                Some(Type::Int4)
            }
            Expression::TryLock(inner) => {
                if self.of(inner)?.is_none() {
                    self.settle(inner, Type::Int8)?;
                }
                Some(Type::Boolean)
            }
            Expression::Moves => Some(Type::Int4),
            Expression::SetConfig(..) | Expression::CurrentSetting(_) | Expression::UnlockAll => {
                Some(Type::Text)
            }
            Expression::Binary(operator, both) => self.binary(*operator, &both.0, &both.1)?,
        })
    }

    fn binary(
        &mut self,
        operator: Operator,
        left: &Expression,
        right: &Expression,
    ) -> Result<Option<Type>, Failure> {
        use Operator as Is;
        let kinds = (self.of(left)?, self.of(right)?);
        let (one, two) = match (kinds, operator) {
            ((_, _), Is::Join) => {
                for (kind, side) in [(kinds.0, left), (kinds.1, right)] {
                    if kind.is_none() {
                        self.settle(side, Type::Text)?;
                    }
                }
                return Ok(Some(Type::Text));
            }
            ((Some(one), Some(two)), _) => (one, two),
            ((Some(one), None), _) => (one, self.settle(right, one)?),
            ((None, Some(two)), _) => (self.settle(left, two)?, two),
            ((None, None), _) => (self.settle(left, Type::Text)?, self.settle(right, Type::Text)?),
        };
        let is_numeric = one.is_integer() && two.is_integer();
        let missing = || {
            let message = format!("operator does not exist: {} ~ {}", one.name(), two.name());
            Err(Failure::new("42883", message))
        };
        match operator {
            Is::Add | Is::Subtract | Is::Multiply | Is::Divide | Is::Remainder if !is_numeric => missing(),
            Is::Add | Is::Subtract | Is::Multiply | Is::Divide | Is::Remainder => {
                Ok(Some(if one == two { one } else { Type::Int8 }))
            }
            _ if is_numeric || one == two => Ok(Some(Type::Boolean)),
            _ => missing(),
        }
    }
}

/// The type of an expression once its parameters are known.
pub(crate) fn kind_of(expression: &Expression, table: Option<Table>, parameters: &[Type]) -> Type {
    let mut types =
        Types { parameters: parameters.iter().map(|kind| Some(*kind)).collect(), table, is_wide: false };
    types.of(expression).ok().flatten().unwrap_or(Type::Text)
}

impl Described {
    fn plain(name: &str, kind: Type) -> Self {
        Self { name: name.to_owned(), kind, origin: None }
    }
}

/// RowDescription, or NoData.
pub(crate) fn describe(columns: Option<&[Described]>, formats: Formats<'_>, out: &mut Vec<u8>) {
    let Some(columns) = columns else { return frame(out, backend::NO_DATA, |_| ()) };
    let columns = columns.iter().enumerate().map(|(place, column)| Column {
        name: column.name.as_bytes(),
        table: column.origin.map_or(0, |(table, _)| schema::oid(table)),
        attribute: column.origin.map_or(0, |(_, place)| place as i16 + 1),
        type_oid: column.kind.oid(),
        type_len: column.kind.length(),
        type_modifier: -1,
        format: formats.of(place),
    });
    RowDescription::encode(out, columns);
}

/// Formats of a result that was not bound.
pub(crate) fn format_of(codes: &[u8], place: usize) -> Format {
    Formats::of_codes(codes).of(place)
}

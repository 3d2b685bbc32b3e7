//! Statement text to template, literals and facts: what a gateway needs to know of every statement, cheaply.
//!
//! [`Lifter::lift`] makes one pass over the bytes of a text with PostgreSQL's lexical rules. It builds no tree and
//! does no I/O. What it gives:
//!
//! - the **template**: literals become `$n` numbered behind the highest `$n` of the text, comments go, blanks are
//!   single, lists of values lose their length (`IN ($1, ...)`, `VALUES ($1, $2), ...`, `ARRAY[$1, ...]`). Letter
//!   case, quotes and schema names stay. NULL, TRUE, FALSE and DEFAULT are words and stay too, but do not keep two
//!   elements of a list apart. Numbers are lifted wherever they stand: in LIMIT, in ORDER BY 1, in varchar(10);
//! - the **literals** with their values, in text order ([`Literal::value`]);
//! - the **facts**: kind of statement, main table, cursor and setting names ([`Facts`]);
//! - the **shape** of a template: functions, tables, keys ([`Shape`]), and what parameters are compared with ([`Comparisons`]);
//! - the **comments**, which [`sqlcommenter`] reads for route, controller and their like.
//!
//! ```
//! let mut lifter = onetrip_sql::Lifter::new();
//! let lifted = lifter.lift(b"SELECT pay FROM hr.emp WHERE id IN (7, 8) /* why */", true);
//! assert_eq!(lifted.template(), b"SELECT pay FROM hr.emp WHERE id IN ($1, ...)");
//! assert_eq!(lifted.literals().map(|literal| literal.source).collect::<Vec<_>>(), [b"7", b"8"]);
//! assert!(lifted.table().is_some_and(|table| table.is(b"hr.emp")));
//! ```
//!
//! No byte of a literal ever gets into a template, not even of an unterminated one.
//!
//! [`scan`] tells where a token ends, for readers that need no more.
//!
//! Apart from that pass, `purity` (a feature that is on by default) parses with PostgreSQL's own grammar and tells which SELECTs only read.
//!
//! [`Lifter::lift_mysql`] does the same with MySQL's and MariaDB's lexical rules. There is no `purity` for their statements.

mod facts;
mod kind;
mod lifter;
mod literal;
mod mysql_scan;
mod number;
#[cfg(feature = "purity")]
pub mod purity;
pub mod scan;
mod shape;
pub mod sqlcommenter;
mod template;
mod tracker;
mod words;

pub use facts::{Facts, FetchCount, FetchDirection, Name, PARTS_MAX, SettingValue};
pub use kind::StatementKind;
pub use lifter::{COMMENTS_MAX, LITERALS_MAX, Lifted, Lifter, MysqlMode, Parameter, is_idle_comment};
pub use literal::{Literal, LiteralKind};
pub use shape::{Comparisons, EqualityKey, Shape};
pub use template::{CUT_MARK, Span, TEMPLATE_BYTES_MAX};

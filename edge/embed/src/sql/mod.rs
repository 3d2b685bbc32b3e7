//! PostgreSQL's SQL to SQLite's: tokens, a tree of expressions and queries, types by the tables in scope, and edits
//! of the tokens. What SQLite writes alike stays as the client wrote it.

mod alter;
mod analysis;
mod call;
mod casts;
mod column;
pub(crate) mod ddl;
mod dml;
mod edits;
mod expression;
mod functions;
mod infer;
mod operators;
mod parser;
mod query;
mod rows;
pub(crate) mod schema;
mod scope;
mod sequence;
mod statement;
pub(crate) mod token;
mod tree;
mod utility;

pub(crate) use column::Column;
pub(crate) use ddl::Ddl;
pub(crate) use schema::{LiveSchema, Schema};
pub(crate) use statement::{
    CopyFormat, CopyIn, Modes, OutputColumn, Question, Run, Statement, Utility, Verb, split, translate,
};

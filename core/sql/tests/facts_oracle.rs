//! Kinds and tables against the parse trees of pg_query.

use onetrip_sql::{Lifter, StatementKind};
use pg_query::NodeEnum;
use pg_query::protobuf::{TransactionStmtKind, VariableSetKind};

fn texts() -> Vec<&'static str> {
    [include_str!("corpus/orms.sql"), include_str!("corpus/lexical.sql"), include_str!("corpus/utility.sql")]
        .iter()
        .flat_map(|file| file.split("\n\n").skip(1))
        .collect()
}

fn transaction_kind(kind: TransactionStmtKind) -> StatementKind {
    match kind {
        TransactionStmtKind::TransStmtBegin | TransactionStmtKind::TransStmtStart => StatementKind::Begin,
        TransactionStmtKind::TransStmtCommit => StatementKind::Commit,
        TransactionStmtKind::TransStmtRollback => StatementKind::Rollback,
        TransactionStmtKind::TransStmtSavepoint => StatementKind::Savepoint,
        TransactionStmtKind::TransStmtRelease => StatementKind::Release,
        TransactionStmtKind::TransStmtRollbackTo => StatementKind::RollbackTo,
        _ => StatementKind::TwoPhase,
    }
}

fn kind_of(node: &NodeEnum, text: &str) -> StatementKind {
    match node {
        NodeEnum::SelectStmt(select) if !select.values_lists.is_empty() => StatementKind::Values,
        NodeEnum::SelectStmt(_) => StatementKind::Select,
        NodeEnum::InsertStmt(_) => StatementKind::Insert,
        NodeEnum::UpdateStmt(_) => StatementKind::Update,
        NodeEnum::DeleteStmt(_) => StatementKind::Delete,
        NodeEnum::MergeStmt(_) => StatementKind::Merge,
        NodeEnum::TransactionStmt(transaction) => transaction_kind(transaction.kind()),
        NodeEnum::VariableSetStmt(set) => match set.kind() {
            VariableSetKind::VarReset | VariableSetKind::VarResetAll => StatementKind::Reset,
            _ => StatementKind::Set,
        },
        NodeEnum::VariableShowStmt(_) => StatementKind::Show,
        NodeEnum::DeclareCursorStmt(_) => StatementKind::Declare,
        NodeEnum::FetchStmt(fetch) if fetch.ismove => StatementKind::Move,
        NodeEnum::FetchStmt(_) => StatementKind::Fetch,
        NodeEnum::ClosePortalStmt(_) => StatementKind::CloseCursor,
        NodeEnum::CopyStmt(_) => StatementKind::Copy,
        NodeEnum::PrepareStmt(_) => StatementKind::Prepare,
        NodeEnum::ExecuteStmt(_) => StatementKind::Execute,
        NodeEnum::DeallocateStmt(_) => StatementKind::Deallocate,
        NodeEnum::DiscardStmt(_) => StatementKind::Discard,
        NodeEnum::LockStmt(_) => StatementKind::Lock,
        NodeEnum::ListenStmt(_) => StatementKind::Listen,
        NodeEnum::NotifyStmt(_) => StatementKind::Notify,
        NodeEnum::UnlistenStmt(_) => StatementKind::Unlisten,
        NodeEnum::ExplainStmt(_) => StatementKind::Explain,
        NodeEnum::CallStmt(_) => StatementKind::Call,
        NodeEnum::DoStmt(_) => StatementKind::Do,
        NodeEnum::VacuumStmt(_) | NodeEnum::CheckPointStmt(_) | NodeEnum::RefreshMatViewStmt(_) => {
            StatementKind::Maintenance
        }
        _ => {
            let word = text.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
            let is_ddl = ["CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT", "GRANT", "REVOKE", "SECURITY"]
                .contains(&word.as_str());
            assert!(is_ddl, "the corpus has a statement this test does not know: {text}");
            StatementKind::Ddl
        }
    }
}

#[test]
fn kinds_and_parts_are_those_of_the_parse_tree() {
    let mut lifter = Lifter::new();
    for text in texts() {
        let parsed = pg_query::parse(text, 0).expect("the corpus parses");
        let nodes = parsed.protobuf.stmts.iter().filter_map(|raw| raw.stmt.as_ref()?.node.as_ref());
        let expected: Vec<_> = nodes.map(|node| kind_of(node, text)).collect();
        let lifted = lifter.lift(text.as_bytes(), true);
        assert_eq!(lifted.facts().parts(), expected, "of {text}");
        let expected_kind = if expected.len() == 1 { expected[0] } else { StatementKind::Multi };
        assert_eq!(lifted.kind(), expected_kind, "of {text}");
    }
}

/// Every relation of a parse tree, CTEs included. pg_query's own list leaves out cursors and sampled tables.
fn relations(tree: &str) -> Vec<String> {
    let quoted = |text: &str| text.split('"').next().unwrap_or_default().to_owned();
    tree.split("schemaname: \"")
        .skip(1)
        .filter_map(|rest| {
            let (schema, relation) = (quoted(rest), quoted(rest.split_once("relname: \"")?.1));
            Some(if schema.is_empty() { relation } else { format!("{schema}.{relation}") })
        })
        .collect()
}

#[test]
fn the_named_table_is_one_that_the_parse_tree_has() {
    let mut lifter = Lifter::new();
    let mut named = 0;
    for text in texts() {
        let parsed = pg_query::parse(text, 0).expect("the corpus parses");
        let known = relations(&format!("{:?}", parsed.protobuf));
        let lifted = lifter.lift(text.as_bytes(), true);
        if let Some(table) = lifted.table() {
            named += 1;
            assert!(
                known.iter().any(|name| table.is(name.as_bytes())),
                "{table:?} of {text}, not in {known:?}"
            );
        } else if matches!(
            lifted.kind(),
            StatementKind::Insert | StatementKind::Update | StatementKind::Delete
        ) {
            panic!("no table in {text}");
        } else if lifted.kind() == StatementKind::Select {
            assert!(known.is_empty(), "no table in {text}, but {known:?}");
        }
    }
    assert!(named > 80, "{named} statements name a table");
}

#[test]
fn writes_and_row_locks_are_those_of_the_parse_tree() {
    let mut lifter = Lifter::new();
    for text in texts() {
        let parsed = pg_query::parse(text, 0).expect("the corpus parses");
        let debug = format!("{:?}", parsed.protobuf);
        let writes = ["InsertStmt(", "UpdateStmt(", "DeleteStmt(", "MergeStmt("]
            .iter()
            .any(|node| debug.contains(node));
        let facts = *lifter.lift(text.as_bytes(), true).facts();
        if facts.kind != StatementKind::Ddl {
            assert_eq!(facts.writes, writes, "of {text}");
        }
        assert_eq!(facts.locks_rows, debug.contains("LockingClause("), "of {text}");
        assert_eq!(
            facts.into,
            debug.contains("into_clause: Some") && facts.kind == StatementKind::Select,
            "of {text}"
        );
    }
}

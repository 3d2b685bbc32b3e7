use std::collections::HashMap;
use std::sync::Arc;

use onetrip_sql::{Lifter, StatementKind};

use super::event::TemplateFacts;
use crate::TemplateTotals;

/// Templates known at most; further ones are counted together.
const TEMPLATES_MAX: usize = 200_000;
/// Label of what is counted together.
const OTHERS: &str = "(other statements)";

/// All templates of a trace under one id each, however many streams define them.
#[derive(Debug)]
pub(super) struct Templates {
    ids: HashMap<Arc<str>, u32>,
    list: Vec<Template>,
    lifter: Lifter,
}

#[derive(Debug)]
struct Template {
    text: Arc<str>,
    facts: TemplateFacts,
    totals: TemplateTotals,
}

impl Default for Templates {
    fn default() -> Self {
        let others = Template {
            text: OTHERS.into(),
            facts: TemplateFacts { kind: StatementKind::Other, reads_table: false },
            totals: TemplateTotals::default(),
        };
        Self { ids: HashMap::new(), list: vec![others], lifter: Lifter::new() }
    }
}

impl Templates {
    /// The id of a template's text; zero where there are too many.
    pub(super) fn intern(&mut self, text: &[u8]) -> u32 {
        let text = String::from_utf8_lossy(text);
        if let Some(id) = self.ids.get(text.as_ref()) {
            return *id;
        }
        if self.list.len() > TEMPLATES_MAX {
            return 0;
        }
        let facts = self.facts_of(text.as_bytes());
        let text: Arc<str> = text.into();
        let id = self.list.len() as u32;
        self.list.push(Template { text: Arc::clone(&text), facts, totals: TemplateTotals::default() });
        self.ids.insert(text, id);
        id
    }

    pub(super) fn facts(&self, id: u32) -> TemplateFacts {
        self.list[id as usize].facts
    }

    pub(super) fn text(&self, id: u32) -> String {
        self.list[id as usize].text.to_string()
    }

    /// What statements of this template spent so far, for adding to it.
    pub(super) fn totals_mut(&mut self, id: u32) -> &mut TemplateTotals {
        &mut self.list[id as usize].totals
    }

    /// What all templates spent, most trips first.
    pub(super) fn totals(&self) -> Vec<TemplateTotals> {
        let used = self.list.iter().filter(|template| template.totals.executions + template.totals.trips > 0);
        let mut totals: Vec<_> = used
            .map(|template| TemplateTotals { text: template.text.to_string(), ..template.totals.clone() })
            .collect();
        totals.sort_by(|a, b| (b.trips, b.executions, &a.text).cmp(&(a.trips, a.executions, &b.text)));
        totals
    }

    fn facts_of(&mut self, text: &[u8]) -> TemplateFacts {
        let lifted = self.lifter.lift(text, true);
        let facts = lifted.facts();
        let table = facts.table.map(|table| table.of(lifted.template())).unwrap_or_default();
        let catalogue = starts_with(table, b"pg_") || starts_with(table, b"information_schema.");
        let reads =
            lifted.kind() == StatementKind::Select && !facts.writes && !facts.into && !facts.locks_rows;
        TemplateFacts { kind: lifted.kind(), reads_table: reads && facts.has_from && !catalogue }
    }
}

fn starts_with(text: &[u8], prefix: &[u8]) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

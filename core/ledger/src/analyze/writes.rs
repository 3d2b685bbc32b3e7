//! OT002 and OT003: one template that writes a row at a time, in one transaction or each in its own.

use smallvec::SmallVec;

use super::book::{Book, Fate, Key, Sighting};
use super::client::Client;
use super::event::{Event, Run};
use super::hash::Table;
use super::pace::Gap;
use super::spots::Spots;
use super::transactions::{Ended, Transactions};
use crate::TransactionStatus;
use crate::findings::{Code, Evidence, Spot, Would};

/// Rows that make a run: fewer are not worth a batch.
pub(super) const ROWS_MIN: u64 = 5;
/// A statement that writes so many is a batch, and no row of a loop.
const BATCH_MIN: u64 = 10;
/// Other exchanges that a loop's body may have between two rows.
const BODY_MAX: u64 = 16;
const FOLLOWED_MAX: usize = 256;
/// Values that a written row gives back, as many as are looked at.
const RESULTS_MAX: usize = 8;

/// Writing runs of one connection.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Boxed, because tables keep room for four at least, and for twice as many.
    runs: Table<u32, Box<WriteRun>>,
    /// Exchanges of the connection so far.
    clock: u64,
}

#[derive(Debug)]
struct WriteRun {
    scope: u32,
    spot: Spot,
    request: u64,
    last_parameters: Vec<u64>,
    /// What the last row gave back, and rows that were written with what the one before them gave back.
    last_results: SmallVec<[u32; 2]>,
    chained: u64,
    last_clock: u64,
    rows: u64,
    slow_gaps: u64,
    /// The longest gap since the last row, outside transactions and requests.
    gap: Gap,
    /// Rows of the transaction under way, or of the last one; and the times of the last row.
    rows_within: u64,
    last_ns: (u64, u64),
    /// Rows whose own transaction ended before the next row came.
    transactions: u64,
    in_transaction: bool,
    /// BEGIN and COMMIT trips of these transactions.
    begins: u64,
    commits: u64,
    /// What remedies would have removed of them.
    would: Would,
    control_waited_ns: u64,
    waited_ns: u64,
    wire_ns: u64,
}

/// Whether this is a statement that may write a row of a loop.
pub(super) fn may_be_row(run: &Run<'_>) -> bool {
    run.facts.kind.is_row_write() && !run.continues() && run.statement.rows < BATCH_MIN
}

impl Writes {
    /// Counts an exchange of any sort, so that a run knows how far apart its rows are.
    pub(super) fn tick(&mut self, event: &Event<'_>) {
        self.pass();
        for run in self.runs.values_mut() {
            run.gap = run.gap.max(event.gap());
        }
    }

    /// Counts an exchange that lies between two rows and takes no time from them.
    pub(super) fn pass(&mut self) {
        self.clock += 1;
    }

    /// Takes one more row, written by `run` in its own trip.
    pub(super) fn take(
        &mut self,
        event: &Event<'_>,
        run: &Run<'_>,
        client: Client,
        transactions: &mut Transactions,
        book: &mut Book,
    ) {
        let exchange = event.exchange;
        let goes_on = self.runs.get(&run.template).is_some_and(|known| {
            known.request == exchange.request
                && known.gap < Gap::Pause
                && self.clock - known.last_clock <= BODY_MAX
        });
        if !goes_on {
            self.end(run.template, client, transactions, book);
            if self.runs.len() >= FOLLOWED_MAX {
                self.end_all(client, transactions, book);
            }
        }
        let known = self.runs.entry(run.template).or_insert_with(|| Box::new(WriteRun::new(event)));
        if known.rows > 0 && known.last_parameters == run.parameters {
            // The same row again is a retry, not the next row.
            known.last_clock = self.clock;
            return;
        }
        let is_given = |value: &u64| *value != 0 && known.last_results.contains(&(*value as u32));
        known.chained += u64::from(run.parameters.iter().any(is_given));
        known.last_results =
            run.results.iter().copied().filter(|value| *value != 0).take(RESULTS_MAX).collect();
        known.slow_gaps += u64::from(known.rows > 0 && known.gap >= Gap::Slow);
        known.gap = Gap::Short;
        known.rows += 1;
        known.last_parameters.clear();
        known.last_parameters.extend_from_slice(run.parameters);
        known.last_clock = self.clock;
        known.waited_ns += exchange.duration();
        known.wire_ns += event.wire_ns;
        known.last_ns = (exchange.duration(), event.wire_ns);
        known.rows_within = if known.in_transaction { known.rows_within + 1 } else { 1 };
        known.in_transaction = exchange.status != TransactionStatus::Idle;
        known.transactions += u64::from(!known.in_transaction);
    }

    /// A transaction block ended.
    pub(super) fn transaction_ended(&mut self, ended: Ended) {
        let mut first: Option<&mut WriteRun> = None;
        for run in self.runs.values_mut().map(Box::as_mut).filter(|run| run.in_transaction) {
            run.in_transaction = false;
            if ended.is_undone && run.rows_within == 1 {
                run.forget_row();
                continue;
            }
            run.transactions += 1;
            if first.as_ref().is_none_or(|first| run.last_clock < first.last_clock) {
                first = Some(run);
            }
        }
        // BEGIN and COMMIT are one trip each, whatever was written between them.
        if let Some(run) = first {
            run.begins += u64::from(ended.begin_alone);
            run.commits += u64::from(ended.commit_alone);
            run.would.add(ended.would);
            run.control_waited_ns += ended.waited_ns;
        }
    }

    /// Ends all runs: the schema changed, a statement failed, or the connection closed.
    pub(super) fn end_all(&mut self, client: Client, transactions: &mut Transactions, book: &mut Book) {
        let templates: Vec<u32> = self.runs.keys().copied().collect();
        for template in templates {
            self.end(template, client, transactions, book);
        }
    }

    fn end(&mut self, template: u32, client: Client, transactions: &mut Transactions, book: &mut Book) {
        let Some(run) = self.runs.remove(&template) else { return };
        if run.rows < ROWS_MIN || run.slow_gaps * 2 > run.rows || run.chained * 2 > run.rows {
            return;
        }
        let evidence = Evidence::Rows { rows: run.rows, transactions: run.transactions.max(1) };
        let per_row = run.transactions * 10 >= run.rows * 9;
        let (code, trips, waited_ns) = if per_row {
            let transactions_of_own = run.transactions.min(run.begins.max(run.commits));
            transactions.claim(run.begins, run.commits, transactions_of_own, run.would);
            (Code::CommitPerRow, run.rows + run.begins + run.commits, run.waited_ns + run.control_waited_ns)
        } else {
            (Code::RowByRow, run.rows, run.waited_ns)
        };
        let kept = trips.div_ceil(run.rows);
        let would = if per_row { run.would } else { Would::default() };
        book.add(
            Key { code, template, source: 0, client },
            Sighting {
                scope: run.scope,
                spots: Spots::from(run.spot),
                occurrences: 1,
                trips,
                avoidable: trips - kept,
                waited_ns,
                wire_ns: run.wire_ns * trips / run.rows,
                fate: Fate { would, ..Fate::default() },
                evidence,
            },
        );
    }
}

impl WriteRun {
    /// The last row was all that its transaction wrote, and was undone: it belongs to no loop.
    fn forget_row(&mut self) {
        let (waited_ns, wire_ns) = self.last_ns;
        self.rows -= 1;
        self.waited_ns -= waited_ns;
        self.wire_ns -= wire_ns;
    }

    fn new(event: &Event<'_>) -> Self {
        Self {
            scope: event.scope,
            spot: event.spot(),
            request: event.exchange.request,
            last_parameters: Vec::new(),
            last_results: SmallVec::new(),
            chained: 0,
            last_clock: 0,
            rows: 0,
            rows_within: 0,
            last_ns: (0, 0),
            slow_gaps: 0,
            gap: Gap::Short,
            transactions: 0,
            in_transaction: false,
            begins: 0,
            commits: 0,
            would: Would::default(),
            control_waited_ns: 0,
            waited_ns: 0,
            wire_ns: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_for_spark_has_the_same_bounds() {
        let job = include_str!("../../../../contrib/spark/writes.py");
        let exchanges = include_str!("../../../../contrib/spark/exchanges.py");
        for (file, line) in [
            (job, format!("\nROWS_MIN = {ROWS_MIN}\n")),
            (job, format!("\nBATCH_MIN = {BATCH_MIN}\n")),
            (job, format!("\nWRITES_FOLLOWED_MAX = {FOLLOWED_MAX}\n")),
            (exchanges, format!("\nBODY_MAX = {BODY_MAX}\n")),
        ] {
            assert!(file.contains(&line), "contrib/spark: {line}");
        }
    }
}

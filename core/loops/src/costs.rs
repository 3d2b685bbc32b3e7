//! What guessing may cost: the server's time, the wait behind it, memory.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;

/// Price of a second of server time against a second of the program's waiting.
const SERVER_TIME_PRICE: f64 = 10.0;

/// Share of the real statements' server time that may be spent on guesses that nobody asks for.
const WASTE_SHARE: i64 = 5;

/// Server time that may be wasted before there was any real work.
const WASTE_START: i64 = 100_000_000;

/// Wasted server time that may be saved up: a fifth of ten seconds.
const WASTE_SAVED_MAX: i64 = 2_000_000_000;

/// What a statement is taken to cost before it was measured.
const EXECUTION_GUESS: f64 = 50_000.0;

/// Executions until their measured time is believed.
const TRUSTED_SAMPLES: u8 = 8;

/// Guesses that may be unanswered before that.
const UNTRUSTED_UNANSWERED: f64 = 128.0;

/// What its reply is taken to have.
const BYTES_GUESS: f64 = 512.0;

/// What a pair that is not known may make the program wait behind it.
const COLD_WAIT: f64 = 1_000_000.0;

/// Bytes of answers that may wait for the program: three quarters of the buffer.
const BYTES_MAX: f64 = 768.0 * 1024.0;

/// Templates whose costs are known; beyond it new ones are taken to cost what is usual.
const TEMPLATES_MAX: usize = 4096;

/// Results without use until a template's results are looked at less often.
const FRUITLESS_MAX: u32 = 64;

/// What a number is usually, the latest ones counting most, and low ones more than high ones: what comes on top by
/// chance, the way and the gateway's own delays, is not the statement's.
#[derive(Debug, Clone, Copy)]
struct Usual {
    value: f64,
    samples: u8,
}

impl Usual {
    fn taken_for(value: f64) -> Self {
        Self { value, samples: 0 }
    }

    fn add(&mut self, value: f64) {
        let share = match self.samples {
            0 => 1.0,
            _ if value < self.value => 0.5,
            _ => 1.0 / 8.0,
        };
        self.samples = self.samples.saturating_add(1);
        self.value += (value - self.value) * share;
    }
}

/// What is known of one template.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TemplateCost {
    /// Nanoseconds of an execution.
    execution: Usual,
    /// Bytes of a reply.
    bytes: Usual,
    /// Executed by the program in this epoch (transaction, or what follows a flush).
    executed_in: u64,
    /// Results since one had a row that a statement came from.
    fruitless: u32,
    /// Statements that came from nowhere.
    pub(crate) unexplained: u32,
}

impl Default for TemplateCost {
    fn default() -> Self {
        Self {
            execution: Usual::taken_for(EXECUTION_GUESS),
            bytes: Usual::taken_for(BYTES_GUESS),
            executed_in: 0,
            fruitless: 0,
            unexplained: 0,
        }
    }
}

/// The bounds of one session.
#[derive(Debug)]
pub(crate) struct Costs {
    /// Nanoseconds; zero while not known.
    round_trip: f64,
    /// Server time, in nanoseconds, that may still be wasted.
    tokens: i64,
    templates: HashMap<u32, TemplateCost, RandomState>,
    epoch: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self { round_trip: 0.0, tokens: WASTE_START, templates: HashMap::default(), epoch: 1 }
    }
}

impl Costs {
    pub(crate) fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip.as_nanos() as f64;
    }

    /// From here on, no template counts as executed.
    pub(crate) fn start_epoch(&mut self) {
        self.epoch += 1;
    }

    pub(crate) fn of(&self, template: u32) -> TemplateCost {
        self.templates.get(&template).copied().unwrap_or_default()
    }

    /// The program executes the template.
    pub(crate) fn executed(&mut self, template: u32) {
        let epoch = self.epoch;
        self.change(template, |cost| cost.executed_in = epoch);
    }

    /// Whether the program has executed the template since the epoch began: its locks are held.
    pub(crate) fn is_executed(&self, template: u32) -> bool {
        self.templates.get(&template).is_some_and(|cost| cost.executed_in == self.epoch)
    }

    /// An execution took so long and gave so many bytes, as far as is known: zero bytes are none that were counted.
    pub(crate) fn measured(&mut self, template: u32, execution: Option<Duration>, bytes: usize) {
        self.change(template, |cost| {
            if bytes > 0 {
                cost.bytes.add(bytes as f64);
            }
            if let Some(execution) = execution {
                cost.execution.add(execution.as_nanos() as f64);
            }
        });
    }

    /// Whether rows of the template's results are worth keeping: always, until many of them led to nothing.
    pub(crate) fn is_fruitful(&self, template: u32) -> bool {
        let fruitless = self.of(template).fruitless;
        fruitless < FRUITLESS_MAX || fruitless % 16 == 0
    }

    pub(crate) fn result_seen(&mut self, template: u32) {
        self.change(template, |cost| cost.fruitless = cost.fruitless.saturating_add(1));
    }

    pub(crate) fn result_used(&mut self, template: u32) {
        self.change(template, |cost| cost.fruitless = 0);
    }

    /// A statement came that nothing explains. Whether to look for what does: at first always, later now and then.
    pub(crate) fn look_for_source(&mut self, template: u32) -> bool {
        let mut seen = 0;
        self.change(template, |cost| {
            cost.unexplained = cost.unexplained.saturating_add(1);
            seen = cost.unexplained;
        });
        seen <= 16 || seen % 16 == 0
    }

    pub(crate) fn explained(&mut self, template: u32) {
        self.change(template, |cost| cost.unexplained = 0);
    }

    /// A statement of the program's was executed, or a guess did it for it.
    pub(crate) fn earn(&mut self, template: u32) {
        self.tokens =
            (self.tokens + self.of(template).execution.value as i64 / WASTE_SHARE).min(WASTE_SAVED_MAX);
    }

    /// A guess was for nothing.
    pub(crate) fn spend(&mut self, template: u32) {
        self.tokens = (self.tokens - self.of(template).execution.value as i64).max(-WASTE_SAVED_MAX);
    }

    /// Whether a guess of this template pays at all, if it is right with this probability.
    pub(crate) fn pays(&self, template: u32, probability: f64) -> bool {
        let execution = self.of(template).execution.value;
        self.round_trip > 0.0
            && self.tokens > 0
            && execution <= self.round_trip / 4.0
            && probability * self.round_trip > (1.0 - probability) * SERVER_TIME_PRICE * execution
    }

    /// Guesses of this template that may be unanswered at a time, so that a statement of the program's that comes
    /// instead does not wait long behind them.
    pub(crate) fn unanswered_max(&self, template: u32, probability: f64, is_cold: bool) -> u32 {
        let odds = probability / (1.0 - probability).max(0.001);
        let wait = (self.round_trip * odds).min(self.round_trip);
        let wait = if is_cold { wait.min(COLD_WAIT) } else { wait };
        let execution = self.of(template).execution;
        // first executions are slow, and where guesses are not measured there are no others: more than was useful in
        // the loop so far is never under way anyhow
        let execution = match execution.samples < TRUSTED_SAMPLES {
            true => execution.value.min((self.round_trip / UNTRUSTED_UNANSWERED).max(EXECUTION_GUESS)),
            false => execution.value,
        };
        ((wait / execution.max(1.0)) as u32).max(1)
    }

    /// Answers of this template that may wait for the program.
    pub(crate) fn waiting_max(&self, template: u32) -> u32 {
        ((BYTES_MAX / self.of(template).bytes.value.max(1.0)) as u32).max(1)
    }

    fn change(&mut self, template: u32, change: impl FnOnce(&mut TemplateCost)) {
        if let Some(cost) = self.templates.get_mut(&template) {
            return change(cost);
        }
        if self.templates.len() < TEMPLATES_MAX {
            change(self.templates.entry(template).or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(round_trip: Duration, execution: Duration) -> Costs {
        let mut costs = Costs::default();
        costs.set_round_trip(round_trip);
        (0..TRUSTED_SAMPLES).for_each(|_| costs.measured(1, Some(execution), 100));
        costs
    }

    const MS: Duration = Duration::from_millis(1);
    const US: Duration = Duration::from_micros(1);

    #[test]
    fn a_statement_of_a_quarter_of_the_round_trip_is_never_guessed() {
        assert!(at(MS, 240 * US).pays(1, 0.99));
        assert!(!at(MS, 260 * US).pays(1, 0.99));
        assert!(!at(Duration::ZERO, Duration::ZERO).pays(1, 1.0), "at no distance there is nothing to gain");
    }

    #[test]
    fn a_guess_pays_above_a_third_where_the_server_is_twenty_times_faster_than_the_trip() {
        let costs = at(MS, 50 * US);
        assert!(costs.pays(1, 0.34) && !costs.pays(1, 0.33));
    }

    #[test]
    fn waste_is_a_fifth_of_real_work() {
        let mut costs = at(10 * MS, MS);
        for _ in 0..100 {
            costs.spend(1);
        }
        assert!(!costs.pays(1, 0.9), "100 ms are spent");
        for _ in 0..5 {
            costs.earn(1);
        }
        assert!(costs.pays(1, 0.9));
        costs.spend(1);
        assert!(!costs.pays(1, 0.9), "five real ones pay for one");
    }

    #[test]
    fn what_is_unanswered_takes_no_longer_than_a_round_trip() {
        let costs = at(10 * MS, 100 * US);
        assert_eq!(costs.unanswered_max(1, 0.99, false), 100);
        assert_eq!(costs.unanswered_max(1, 0.99, true), 10, "a millisecond while it is not known");
        assert_eq!(costs.unanswered_max(1, 0.2, false), 25);
    }

    #[test]
    fn one_slow_first_execution_does_not_slow_a_loop_down() {
        let mut costs = Costs::default();
        costs.set_round_trip(13 * MS);
        costs.measured(1, Some(3 * MS), 100);
        assert!(costs.unanswered_max(1, 0.99, false) >= 128);
        (0..8).for_each(|_| costs.measured(1, Some(3 * MS), 100));
        assert_eq!(costs.unanswered_max(1, 0.99, false), 4, "it is slow indeed");
    }

    #[test]
    fn what_was_not_measured_changes_nothing() {
        let mut costs = at(10 * MS, 100 * US);
        let before = costs.waiting_max(1);
        costs.measured(1, None, 0);
        assert_eq!(costs.waiting_max(1), before);
        assert_eq!(costs.unanswered_max(1, 0.99, false), 100);
    }

    #[test]
    fn an_epoch_forgets_what_was_executed() {
        let mut costs = Costs::default();
        costs.executed(1);
        assert!(costs.is_executed(1) && !costs.is_executed(2));
        costs.start_epoch();
        assert!(!costs.is_executed(1));
    }

    #[test]
    fn results_that_lead_to_nothing_are_looked_at_less_often() {
        let mut costs = Costs::default();
        (0..FRUITLESS_MAX + 1).for_each(|_| costs.result_seen(1));
        assert!(!costs.is_fruitful(1));
        costs.result_used(1);
        assert!(costs.is_fruitful(1));
    }
}

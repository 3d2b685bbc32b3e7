//! From steps to requests: everything that can be worked out before the clock starts.

use std::num::NonZeroU32;

use minijinja::value::Value;
use onetrip_gateway::with_causes;

use crate::formula::{Formulas, Variables};
use crate::workload::{FetchStep, Formula, NamedSteps, RepeatStep, RunStep, Step, Sum};

/// Requests of one plan, at most: beyond it a workload's file is wrong.
const REQUESTS_MAX: usize = 5_000_000;

/// Longest script of a program: no more than a pipe takes without a reader.
const SCRIPT_BYTES_MAX: usize = 32 << 10;

/// What a session does in a round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    /// Texts of statements, each once.
    pub(crate) statements: Vec<String>,
    pub(crate) acts: Vec<Act>,
    requests: usize,
}

/// What is done before the next thing is.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// These requests leave in one write; then all replies are awaited.
    Flight(Vec<Request>),
    /// A result in pieces.
    Fetch(Fetch),
    /// So many times bytes for bytes.
    Exchange { ask: usize, answer: usize, times: usize },
    /// A request for each of the first kept rows, so many in a flight.
    ForEach { request: Request, rows_max: usize, per_trip: usize },
}

#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    pub(crate) request: Request,
    /// Rows of a piece; `None` for all.
    pub(crate) piece: Option<NonZeroU32>,
    /// What is run for a row after its piece.
    pub(crate) each: Vec<Request>,
    /// Every how many rows.
    pub(crate) every: usize,
}

/// One statement to be run.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) keep: bool,
    pub(crate) sum: Option<Sum>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Query(String),
    Execute {
        /// Index into [`Plan::statements`].
        statement: usize,
        parameters: Vec<Parameter>,
        /// Prepare it anew each time.
        uncached: bool,
        binary: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parameter {
    Fixed(Box<str>),
    /// This column of the row that the request is for.
    Column(usize),
    /// This column of all rows that were kept, as an array.
    Kept(usize),
    /// First value of the reply before.
    Last,
}

/// Makes plans for one cell.
pub(crate) struct Planner<'a> {
    pub(crate) formulas: &'a Formulas,
    /// Steps that others may name.
    pub(crate) named: &'a NamedSteps,
    pub(crate) variables: Variables,
}

impl Planner<'_> {
    /// The plan for these steps.
    pub(crate) fn plan(&mut self, steps: &[Step]) -> Result<Plan, String> {
        let mut plan = Plan::default();
        self.add_all(&mut plan, steps)?;
        Ok(plan)
    }

    /// A formula's number.
    pub(crate) fn number(&self, formula: &Formula) -> Result<i64, String> {
        match formula {
            Formula::Number(number) => Ok(*number),
            Formula::Expression(text) => {
                self.formulas.number(text, &self.variables).map_err(|error| with_causes(&error))
            }
        }
    }

    /// A template's text.
    pub(crate) fn fill(&self, template: &str) -> Result<String, String> {
        self.formulas.fill(template, &self.variables).map_err(|error| with_causes(&error))
    }

    /// Whether a condition holds; one that is not there does.
    pub(crate) fn holds(&self, condition: Option<&String>) -> Result<bool, String> {
        let Some(condition) = condition else { return Ok(true) };
        Ok(self.formulas.number(condition, &self.variables).map_err(|error| with_causes(&error))? != 0)
    }

    fn add_all(&mut self, plan: &mut Plan, steps: &[Step]) -> Result<(), String> {
        for step in steps {
            match step {
                Step::Query(step) => {
                    if self.holds(step.when.as_ref())? {
                        let request = Request { sum: step.sum, ..query(self.fill(&step.query)?) };
                        for _ in 0..self.count(step.times.as_ref(), 1)? {
                            plan.push(Act::Flight(vec![request.clone()]), 1)?;
                        }
                    }
                }
                Step::Run(step) => self.add_run(plan, step)?,
                Step::Fetch(step) => self.add_fetch(plan, step)?,
                Step::Repeat(step) => self.add_repeat(plan, step)?,
                Step::Exchange(step) => {
                    if self.holds(step.when.as_ref())? {
                        let [ask, answer, times] = [&step.ask, &step.answer, &step.times]
                            .map(|formula| self.count(Some(formula), 0));
                        plan.push(Act::Exchange { ask: ask?, answer: answer?, times: times? }, 1)?;
                    }
                }
                Step::Play(step) => {
                    let steps = self.named.get(&step.play);
                    let steps = steps.ok_or_else(|| format!("no steps are named {:?}", step.play))?;
                    self.add_all(plan, steps)?;
                }
            }
        }
        Ok(())
    }

    fn add_run(&mut self, plan: &mut Plan, step: &RunStep) -> Result<(), String> {
        if !self.holds(step.when.as_ref())? {
            return Ok(());
        }
        let per_trip = self.count(step.per_trip.as_ref(), 1)?.max(1);
        if let Some(limit) = &step.for_each {
            let rows_max = self.count(Some(limit), 0)?;
            let request = self.request(plan, step)?;
            return plan.push(Act::ForEach { request, rows_max, per_trip }, 1);
        }
        let times = self.count(step.times.as_ref(), 1)?;
        let mut flight = Vec::new();
        for turn in 0..times {
            if let Some(name) = &step.as_ {
                self.variables.insert(name.clone(), Value::from(turn));
            }
            flight.push(self.request(plan, step)?);
            if flight.len() == per_trip {
                plan.push(Act::Flight(std::mem::take(&mut flight)), per_trip)?;
            }
        }
        let rest = flight.len();
        if rest > 0 { plan.push(Act::Flight(flight), rest) } else { Ok(()) }
    }

    fn add_fetch(&mut self, plan: &mut Plan, step: &FetchStep) -> Result<(), String> {
        let as_run = RunStep {
            run: step.fetch.clone(),
            with: Vec::new(),
            times: None,
            as_: None,
            for_each: None,
            per_trip: None,
            keep: false,
            uncached: false,
            binary: step.binary,
            sum: step.sum,
            when: None,
        };
        let request = self.request(plan, &as_run)?;
        let piece = NonZeroU32::new(self.count(Some(&step.rows), 0)? as u32);
        let mut each = Vec::new();
        for run in &step.each {
            if self.holds(run.when.as_ref())? {
                each.push(self.request(plan, run)?);
            }
        }
        let every = self.count(step.every.as_ref(), 1)?.max(1);
        plan.push(Act::Fetch(Fetch { request, piece, each, every }), 1)
    }

    fn add_repeat(&mut self, plan: &mut Plan, step: &RepeatStep) -> Result<(), String> {
        let per_trip = self.count(step.per_trip.as_ref(), 0)?;
        let first = plan.acts.len();
        for turn in 0..self.count(Some(&step.repeat), 0)? {
            self.variables.insert(step.as_.clone(), Value::from(turn));
            self.add_all(plan, &step.steps)?;
        }
        if per_trip > 0 { plan.join(first, per_trip) } else { Ok(()) }
    }

    fn request(&self, plan: &mut Plan, step: &RunStep) -> Result<Request, String> {
        let statement = plan.statement(self.fill(&step.run)?);
        let parameters = step.with.iter().map(|with| self.parameter(with)).collect::<Result<_, _>>()?;
        let kind = Kind::Execute { statement, parameters, uncached: step.uncached, binary: step.binary };
        Ok(Request { kind, keep: step.keep, sum: step.sum })
    }

    fn parameter(&self, with: &str) -> Result<Parameter, String> {
        if with == "last" {
            return Ok(Parameter::Last);
        }
        for (word, parameter) in
            [("column ", Parameter::Column as fn(usize) -> Parameter), ("kept ", Parameter::Kept)]
        {
            if let Some(column) = with.strip_prefix(word) {
                return column.parse().map(parameter).map_err(|_| format!("{with:?} names no column"));
            }
        }
        let text = self.formulas.text_of(with, &self.variables).map_err(|error| with_causes(&error))?;
        Ok(Parameter::Fixed(text.into()))
    }

    fn count(&self, formula: Option<&Formula>, default: usize) -> Result<usize, String> {
        let Some(formula) = formula else { return Ok(default) };
        let number = self.number(formula)?;
        usize::try_from(number).map_err(|_| format!("{formula} is {number}"))
    }
}

impl Plan {
    /// The statements for a program that has its own driver: each a line with its values behind tabs, then an empty line.
    /// A plan without acts has nothing to say.
    pub(crate) fn script(&self) -> Result<String, String> {
        let mut script = String::new();
        for act in &self.acts {
            let Act::Flight(requests) = act else {
                return Err("a program can be told of statements only".to_owned());
            };
            for request in requests {
                script.push_str(&self.script_line(request)?);
                script.push('\n');
            }
        }
        if script.len() > SCRIPT_BYTES_MAX {
            return Err(format!("statements for a program have {} bytes", script.len()));
        }
        if !script.is_empty() {
            script.push('\n');
        }
        Ok(script)
    }

    fn script_line(&self, request: &Request) -> Result<String, String> {
        let (text, parameters) = match &request.kind {
            Kind::Query(text) => (text, [].as_slice()),
            Kind::Execute { statement, parameters, .. } => {
                (&self.statements[*statement], parameters.as_slice())
            }
        };
        let mut words = vec![text.as_str()];
        for parameter in parameters {
            let Parameter::Fixed(value) = parameter else {
                return Err("a program cannot be told of values that are not known yet".to_owned());
            };
            words.push(value);
        }
        match words.iter().find(|word| word.is_empty() || word.contains(['\t', '\n'])) {
            Some(word) => Err(format!("a program cannot be told {word:?}")),
            None => Ok(words.join("\t")),
        }
    }

    fn statement(&mut self, text: String) -> usize {
        // Few texts, so that the newest are found at once.
        if let Some(place) = self.statements.iter().rposition(|known| *known == text) {
            return place;
        }
        self.statements.push(text);
        self.statements.len() - 1
    }

    fn push(&mut self, act: Act, requests: usize) -> Result<(), String> {
        self.requests += requests;
        if self.requests > REQUESTS_MAX {
            return Err(format!("more than {REQUESTS_MAX} requests in a round"));
        }
        self.acts.push(act);
        Ok(())
    }

    /// Joins the flights from `first` on into flights of this many requests.
    fn join(&mut self, first: usize, per_trip: usize) -> Result<(), String> {
        let mut requests = Vec::new();
        for act in self.acts.drain(first..) {
            match act {
                Act::Flight(flight) => requests.extend(flight),
                Act::Fetch(_) | Act::ForEach { .. } | Act::Exchange { .. } => {
                    return Err("what depends on a reply cannot share its trip".to_owned());
                }
            }
        }
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() {
            self.acts.push(Act::Flight(requests.by_ref().take(per_trip).collect()));
        }
        Ok(())
    }
}

impl Request {
    /// What a server is asked.
    pub(crate) fn text<'a>(&'a self, plan: &'a Plan) -> &'a str {
        match &self.kind {
            Kind::Query(text) => text,
            Kind::Execute { statement, .. } => &plan.statements[*statement],
        }
    }
}
/// A statement by the simple protocol.
pub(crate) fn query(text: String) -> Request {
    Request { kind: Kind::Query(text), keep: false, sum: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_of(steps: &str) -> Result<Plan, String> {
        #[derive(serde::Deserialize)]
        struct Steps {
            steps: Vec<Step>,
            #[serde(default)]
            named: NamedSteps,
        }
        let steps: Steps = toml::from_str(steps).unwrap();
        let (formulas, variables) = (&Formulas::new(), Variables::new());
        Planner { formulas, named: &steps.named, variables }.plan(&steps.steps)
    }

    fn flights(plan: &Plan) -> Vec<usize> {
        let length = |act: &Act| match act {
            Act::Flight(requests) => requests.len(),
            Act::Fetch(_) | Act::ForEach { .. } | Act::Exchange { .. } => 0,
        };
        plan.acts.iter().map(length).collect()
    }

    #[test]
    fn a_repeated_step_leaves_in_as_many_flights_as_it_is_told() {
        let plan =
            plan_of("steps = [{ run = 'SELECT $1', with = ['i * 2'], times = 7, as = 'i', per_trip = 3 }]")
                .unwrap();
        assert_eq!(flights(&plan), [3, 3, 1]);
        assert_eq!(plan.statements, ["SELECT $1"]);
        let Act::Flight(last) = &plan.acts[2] else { panic!("no flight") };
        let Kind::Execute { parameters, .. } = &last[0].kind else { panic!("no execution") };
        assert_eq!(parameters, &[Parameter::Fixed("12".into())]);
    }

    #[test]
    fn a_repeated_group_can_share_its_trips_unless_it_waits_for_a_reply() {
        let group = "steps = [{ query = 'BEGIN' }, { run = 'SELECT 1', times = 4 }, { query = 'COMMIT' }]";
        let alone = plan_of(&format!("steps = [{{ repeat = 2, as = 'turn', {group} }}]")).unwrap();
        assert_eq!(flights(&alone), [1; 12]);
        let together =
            plan_of(&format!("steps = [{{ repeat = 2, as = 'turn', per_trip = 100, {group} }}]")).unwrap();
        assert_eq!(flights(&together), [12]);
        let waiting =
            "steps = [{ repeat = 2, as = 'turn', per_trip = 9, steps = [{ fetch = 'SELECT 1', rows = 2 }] }]";
        assert!(plan_of(waiting).is_err());
    }

    #[test]
    fn steps_with_a_name_are_those_of_whoever_names_them() {
        let named = "named = { two = [{ query = 'A' }, { run = 'B', with = ['turn + 1'] }] }";
        let plan = plan_of(&format!(
            "steps = [{{ repeat = 2, as = 'turn', per_trip = 4, steps = [{{ play = 'two' }}] }}]\n{named}"
        ))
        .unwrap();
        assert_eq!(flights(&plan), [4]);
        assert_eq!(plan.script().unwrap(), "A\nB\t1\nA\nB\t2\n\n");
        let unknown = plan_of(&format!("steps = [{{ play = 'three' }}]\n{named}")).unwrap_err();
        assert!(unknown.contains("three"), "{unknown}");
    }

    #[test]
    fn a_program_is_told_only_what_is_known_beforehand_and_fits_into_a_line() {
        let script = |steps: &str| plan_of(&format!("steps = [{steps}]")).unwrap().script();
        assert_eq!(script("").unwrap(), "");
        assert!(script("{ run = 'A', with = ['last'] }").is_err());
        assert!(script("{ fetch = 'A', rows = 2 }").is_err());
        assert!(script("{ query = \"A\\nB\" }").is_err());
        assert!(script("{ query = 'AAAAAAAAAAAAAAA', times = 3000 }").is_err());
    }
}

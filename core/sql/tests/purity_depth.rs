//! No text makes `purity::read` use more than a small stack.

use onetrip_sql::purity::{Impure, TEXT_BYTES_MAX, read};

/// An eighth of what a thread of the standard library has. Parsing has a stack of its own.
const STACK_BYTES: usize = 256 * 1024;

/// A text made of an opening, as many middles as fit, a core and as many closings.
struct Nest {
    head: &'static str,
    open: &'static str,
    core: &'static str,
    close: &'static str,
    tail: &'static str,
}

impl Nest {
    fn text(&self, count: usize) -> String {
        let (open, close) = (self.open.repeat(count), self.close.repeat(count));
        [self.head, &open, self.core, &close, self.tail].concat()
    }

    /// As long as is allowed.
    fn longest(&self) -> String {
        let fixed = self.head.len() + self.core.len() + self.tail.len();
        self.text((TEXT_BYTES_MAX - fixed) / (self.open.len() + self.close.len()))
    }
}

const fn nest(
    head: &'static str,
    open: &'static str,
    core: &'static str,
    close: &'static str,
    tail: &'static str,
) -> Nest {
    Nest { head, open, core, close, tail }
}

const NESTS: [Nest; 46] = [
    nest("SELECT ", "NOT ", "a", "", " FROM t"),
    nest("SELECT ", "- ", "a", "", " FROM t"),
    nest("SELECT ", "+", "a", "", " FROM t"),
    nest("SELECT ", "@", "a", "", " FROM t"),
    nest("SELECT ", "-(", "a", ")", " FROM t"),
    nest("SELECT ", "(", "a", ")", " FROM t"),
    nest("SELECT ", "(1,", "a", ")", " FROM t"),
    nest("SELECT ", "ROW(", "a", ")", " FROM t"),
    nest("SELECT ", "(SELECT ", "1", ")", ""),
    nest("SELECT ", "EXISTS(SELECT ", "1", ")", ""),
    nest("SELECT ", "1 IN (SELECT ", "1", ")", ""),
    nest("SELECT ", "1<ALL(SELECT ", "1", ")", ""),
    nest("SELECT ", "ARRAY(SELECT ", "1", ")", ""),
    nest("SELECT 1", " FROM (SELECT 1", "", ") a", ""),
    nest("SELECT 1", " FROM (SELECT 1", "", ")", ""),
    nest("", "(", "SELECT 1", ")", ""),
    nest("", "(SELECT 1 UNION ", "SELECT 1", ")", ""),
    nest("SELECT 1", " UNION SELECT 1", "", "", ""),
    nest("SELECT 1", " UNION ALL (SELECT 1", "", ")", ""),
    nest("VALUES(1)", " EXCEPT VALUES(1)", "", "", ""),
    nest("TABLE t", " INTERSECT TABLE t", "", "", ""),
    nest("", "WITH a AS(", "SELECT 1", ")SELECT 1", ""),
    nest("", "WITH RECURSIVE a AS(", "SELECT 1", ")SELECT 1", ""),
    nest("", "WITH a AS(SELECT 1)", "SELECT 1", "", ""),
    nest("SELECT ", "a||", "a", "", " FROM t"),
    nest("SELECT ", "a=(a||", "a", ")", " FROM t"),
    nest("SELECT ", "a AND(b OR ", "a", ")", " FROM t"),
    nest("SELECT ", "a AND ", "a", "", " FROM t"),
    nest("SELECT ", "CASE WHEN ", "a", " THEN 1 END", " FROM t"),
    nest("SELECT ", "CASE WHEN a THEN 1 ELSE ", "1", " END", " FROM t"),
    nest("SELECT ", "CASE ", "a", " WHEN 1 THEN 1 END", " FROM t"),
    nest("SELECT ", "f(", "a", ")", " FROM t"),
    nest("SELECT ", "COALESCE(", "a", ")", " FROM t"),
    nest("SELECT ", "GREATEST(1,", "a", ")", " FROM t"),
    nest("SELECT ", "ARRAY[", "1", "]", ""),
    nest("SELECT ARRAY", "[", "1", "]", ""),
    nest("SELECT a", "[a", "", "]", " FROM t"),
    nest("SELECT a", "[1]", "", "", " FROM t"),
    nest("SELECT a", "::int", "", "", " FROM t"),
    nest("SELECT a", " COLLATE \"C\"", "", "", " FROM t"),
    nest("SELECT a", " IS NULL", "", "", " FROM t"),
    nest("SELECT 1 FROM t", " JOIN t ON true", "", "", ""),
    nest("SELECT 1 FROM ", "(t CROSS JOIN ", "t", ")", ""),
    nest("SELECT count(*) FILTER(WHERE ", "(SELECT count(*) FILTER(WHERE ", "true", "))", ")"),
    nest("SELECT 1 LIMIT ", "(SELECT 1 LIMIT ", "1", ")", ""),
    nest("SELECT ", "/*", "", "*/", "1"),
];

/// Statements that are refused, but parsed before that.
const OTHERS: [Nest; 6] = [
    nest("", "EXPLAIN ", "SELECT 1", "", ""),
    nest("INSERT INTO t SELECT ", "(", "1", ")", ""),
    nest("UPDATE t SET a = ", "-", "1", "", ""),
    nest("CREATE TABLE t (a int CHECK (", "(", "true", ")", "))"),
    nest("CREATE FUNCTION f() RETURNS int ", "BEGIN ATOMIC ", "SELECT 1;", "END;", ""),
    nest("", ";", "SELECT 1", "", ""),
];

fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).expect("a thread starts");
    thread.join().expect("the thread ends by itself")
}

#[test]
fn the_longest_text_of_every_nesting_needs_no_stack_of_its_caller() {
    on_a_small_stack(|| {
        for nest in NESTS.iter().chain(&OTHERS) {
            let text = nest.longest();
            assert!(text.len() > TEXT_BYTES_MAX - 100, "{} is not long", &text[..40]);
            let _ = read(&text);
        }
    });
}

#[test]
fn texts_of_every_length_need_no_stack_of_their_caller() {
    on_a_small_stack(|| {
        for nest in &NESTS {
            for count in (1..50).step_by(7).chain([60, 95, 120, 400, 1500]) {
                let _ = read(&nest.text(count));
            }
        }
    });
}

#[test]
fn what_people_nest_is_read() {
    for nest in &NESTS {
        for count in 1..=6 {
            let text = nest.text(count);
            let refused = read(&text).err();
            assert_ne!(refused, Some(Impure::TooDeep), "{text}");
        }
    }
    let chain = |count| read(&nest("SELECT ", "a||", "a", "", " FROM t").text(count));
    assert!(chain(40).is_ok());
    assert_eq!(chain(60), Err(Impure::TooDeep));
}

#[test]
fn a_longer_text_is_not_even_parsed() {
    let text = format!("SELECT '{}'", "x".repeat(TEXT_BYTES_MAX - 8));
    assert_eq!(text.len(), TEXT_BYTES_MAX + 1);
    assert_eq!(read(&text), Err(Impure::TooLong(TEXT_BYTES_MAX + 1)));
    assert!(read(&format!("SELECT '{}'", "x".repeat(TEXT_BYTES_MAX - 9))).is_ok());
}

//! What no program expects between two of its steps: another setting, a second BEGIN, a configuration that is read
//! anew, tables that somebody else changes, locks or analyses, a definition that is another, a notice, a cancel request.
//!
//! The neighbour is a session that is connected directly, whatever the program's are. What it does is no more than
//! `docs/safety.md` allows somebody who does not use the gateway: it writes, analyses, makes indexes; DDL on what statements
//! name comes from sessions of the program.

use super::random::Random;
use super::script::{INT4, Manner, Statement, bind_all, parse_typed};
use super::step::{Aside, Patience, Program, Step, Wait};
use crate::common::messages::*;

/// Once in so many gaps; zero for none at all. Where much is disturbed little is removed, so that most are left alone for a
/// while: what matters is the one thing that comes amid what is read ahead.
const DENSITIES: [usize; 7] = [0, 0, 4, 10, 25, 50, 100];

/// Settings of a session.
const SETTINGS: [&str; 70] = [
    "SET exit_on_error = on",
    "SET enable_seqscan = off",
    "SET enable_indexscan = off",
    "SET enable_bitmapscan = off",
    "SET enable_sort = off",
    "SET enable_hashjoin = off; SET enable_mergejoin = off",
    "SET enable_nestloop = off",
    "SET jit = on; SET jit_above_cost = 0",
    "SET jit = off",
    "SET plan_cache_mode = force_generic_plan",
    "SET plan_cache_mode = force_custom_plan",
    "SET DateStyle = 'German'",
    "SET DateStyle = 'SQL, DMY'",
    "SET DateStyle = 'ISO, MDY'",
    "SET LOCAL DateStyle = 'Postgres, DMY'",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET TimeZone = 'America/New_York'",
    "SET LOCAL TimeZone = 'Europe/Paris'",
    "SET IntervalStyle = 'iso_8601'",
    "SET bytea_output = 'escape'",
    "SET bytea_output = 'hex'",
    "SET extra_float_digits = -5",
    "SET extra_float_digits = 3",
    "SET search_path = other, public",
    "SET search_path = public, other",
    "SET LOCAL search_path = other",
    "SET search_path = pg_temp, public",
    "SET search_path = nowhere",
    "RESET search_path",
    "SET ROLE rig_reader",
    "SET LOCAL ROLE rig_reader",
    "SET SESSION AUTHORIZATION rig_reader",
    "RESET ROLE",
    "RESET SESSION AUTHORIZATION",
    "SET session_replication_role = replica",
    "SET session_replication_role = origin",
    "SET statement_timeout = '20s'",
    "SET statement_timeout = 0",
    "SET LOCAL statement_timeout = '25s'",
    "SET lock_timeout = '19s'",
    "SET lock_timeout = 0",
    "SET idle_in_transaction_session_timeout = '20s'",
    "SET idle_session_timeout = '30s'",
    "SET default_transaction_isolation = 'repeatable read'",
    "SET default_transaction_isolation = 'read committed'",
    "SET default_transaction_isolation = 'serializable'",
    "SET default_transaction_read_only = on",
    "SET default_transaction_read_only = off",
    "SET default_transaction_deferrable = on",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
    "SET standard_conforming_strings = off",
    "SET standard_conforming_strings = on",
    "SET escape_string_warning = off",
    "SET backslash_quote = off",
    "SET client_min_messages = error",
    "SET client_min_messages = notice",
    "SET client_min_messages = log",
    "SET row_security = off",
    "SET row_security = on",
    "SET check_function_bodies = off",
    "SET transform_null_equals = on",
    "SET xmlbinary = hex",
    "SET client_encoding = 'LATIN1'",
    "SET client_encoding = 'EUC_JP'",
    "RESET client_encoding",
    "RESET ALL",
    "DISCARD PLANS",
    "DISCARD ALL",
];

/// What a second BEGIN, or something like it, makes of a transaction.
const LEVELS: [&str; 13] = [
    "BEGIN",
    "BEGIN ISOLATION LEVEL READ COMMITTED",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "BEGIN READ ONLY",
    "START TRANSACTION ISOLATION LEVEL READ UNCOMMITTED, READ WRITE",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET LOCAL transaction_isolation = 'read committed'",
    "SET LOCAL transaction_read_only = on",
    "SELECT set_config('transaction_isolation', 'repeatable read', true)",
    "SAVEPOINT s1",
    "ROLLBACK TO s1",
];

/// Things that a function does, or that only look like it.
const NOTICES: [&str; 23] = [
    "DO $$BEGIN RAISE NOTICE 'a notice'; END$$",
    "DO $$BEGIN RAISE WARNING 'a warning'; END$$",
    "DO $$BEGIN PERFORM set_config('TimeZone', 'Asia/Kolkata', false); END$$",
    "DO $$BEGIN PERFORM set_config('bytea_output', 'escape', false); END$$",
    "DO $$BEGIN EXECUTE 'SET LOCAL ROLE rig_reader'; END$$",
    "DO $$BEGIN EXECUTE 'SET search_path = other, public'; END$$",
    "DO $$BEGIN UPDATE m SET v = v + 1 WHERE id = 30; EXCEPTION WHEN OTHERS THEN NULL; END$$",
    "SELECT set_config('search_path', 'other, public', false)",
    "SELECT set_config('role', 'rig_reader', true)",
    "SELECT zone('Europe/Madrid')",
    "SELECT noisy(7)",
    "SELECT shifty(1)",
    "DO $$BEGIN UPDATE n SET v = -9 WHERE CURRENT OF cur; EXCEPTION WHEN OTHERS THEN NULL; END$$",
    "DO $$BEGIN DELETE FROM m WHERE CURRENT OF cur; EXCEPTION WHEN OTHERS THEN NULL; END$$",
    "DO $$BEGIN EXECUTE 'MOVE 3 IN cur'; EXCEPTION WHEN OTHERS THEN NULL; END$$",
    "WITH x AS (UPDATE m SET v = -6 WHERE CURRENT OF cur RETURNING id) SELECT id FROM x",
    "SELECT cursor_to_xml('cur', 2, false, false, '')",
    "SELECT query_to_xml('FETCH 2 FROM cur', false, false, '')",
    "PREPARE follows AS UPDATE m SET v = -5 WHERE CURRENT OF cur RETURNING id",
    "EXECUTE follows",
    "SELECT id FROM marking",
    "INSERT INTO log (what) VALUES ('marks')",
    "SELECT id, v FROM m WHERE id < 5 FOR UPDATE",
];

/// Definitions that are others: by the program's own sessions.
const DEFINITIONS: [&str; 42] = [
    "CREATE OR REPLACE VIEW zoned AS SELECT id, to_char(at, 'MI:HH24') AS s FROM m",
    "CREATE OR REPLACE VIEW zoned AS SELECT id, 'plain'::text AS s FROM m",
    "CREATE OR REPLACE VIEW flat AS SELECT id, v FROM m WHERE id > 3",
    "CREATE OR REPLACE VIEW flat AS SELECT id, v FROM m WHERE vol(id) > 3",
    "CREATE OR REPLACE VIEW flat AS SELECT id, (nextval('sq') * 0)::int + v AS v FROM m",
    "CREATE OR REPLACE FUNCTION imm(i int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT i + 20'",
    "CREATE OR REPLACE FUNCTION stab(i int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM d'",
    "CREATE OR REPLACE FUNCTION calm(i int) RETURNS int LANGUAGE sql STABLE AS 'SELECT v + 7 FROM n WHERE id = i'",
    "ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'",
    "ALTER TYPE mood ADD VALUE IF NOT EXISTS 'mad' BEFORE 'ok'",
    "ALTER DOMAIN positive DROP CONSTRAINT IF EXISTS positive_check",
    "ALTER TABLE m ALTER COLUMN v TYPE bigint",
    "ALTER TABLE m ALTER COLUMN day TYPE timestamptz",
    "ALTER TABLE m ADD COLUMN more text DEFAULT 'more'",
    "ALTER TABLE m RENAME COLUMN note TO remark",
    "ALTER TABLE p ALTER COLUMN grp TYPE bigint",
    "ALTER TABLE c ADD COLUMN extra int DEFAULT 5",
    "ALTER TABLE n ALTER COLUMN v TYPE text",
    "ALTER TABLE p RENAME TO p_old; CREATE TABLE p AS SELECT id, grp + 1 AS grp, ref, 'other ' || name AS name FROM p_old",
    "CREATE TABLE other.m AS SELECT id, v + 1 AS v, at, day, note FROM public.m",
    "CREATE TABLE other.c (id bigint, pid bigint, val text, amount numeric)",
    "SELECT id, 'into' AS name, 1 AS grp, 2::bigint AS ref INTO other.n FROM p",
    "CREATE TEMP TABLE p (id int, grp int, ref bigint, name text)",
    "CREATE TEMP TABLE m AS SELECT id, v, note FROM public.m",
    "CREATE TEMP VIEW n AS SELECT id, v, t FROM public.n WHERE id < 9",
    "DROP VIEW IF EXISTS flat; CREATE VIEW flat AS SELECT v AS id, id AS v FROM m",
    "CREATE RULE none AS ON SELECT TO e DO INSTEAD SELECT 1, 2",
    "ALTER TABLE c ENABLE ROW LEVEL SECURITY; ALTER TABLE c FORCE ROW LEVEL SECURITY",
    "CREATE POLICY some ON p USING (id > 20)",
    "CREATE TRIGGER shout BEFORE UPDATE ON p FOR EACH ROW EXECUTE FUNCTION shouts()",
    "CREATE FUNCTION other.lower(text) RETURNS text LANGUAGE sql AS 'SELECT upper($1)'",
    "CREATE OPERATOR other.= (LEFTARG = int, RIGHTARG = int, FUNCTION = int4ne)",
    "CREATE FUNCTION moves() RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE ''MOVE 3 IN cur''; EXCEPTION WHEN OTHERS THEN NULL; END'",
    "CREATE FUNCTION marks() RETURNS int LANGUAGE plpgsql AS 'BEGIN UPDATE m SET v = -9 WHERE CURRENT OF cur; RETURN 1; EXCEPTION WHEN OTHERS THEN RETURN 0; END'; CREATE VIEW marking AS SELECT marks() AS id",
    "CREATE VIEW marking AS SELECT cursor_to_xml('cur', 1, false, false, '')::text AS id",
    "ALTER TABLE log ALTER COLUMN what SET DEFAULT query_to_xml('FETCH 1 FROM cur', false, false, '')::text; INSERT INTO log DEFAULT VALUES",
    "CREATE RULE follow AS ON INSERT TO log DO ALSO SELECT query_to_xml('MOVE 2 IN cur', false, false, '')",
    "REVOKE SELECT ON p, c FROM rig_reader",
    "GRANT SELECT ON p, c TO rig_reader",
    "TRUNCATE d",
    "CREATE INDEX ON c (val)",
    "CLUSTER m USING m_pkey",
];

/// What a neighbour does who is connected directly. No lock that it waits for keeps a Parse waiting: one that was answered
/// would be seen to wait later (`docs/safety.md`, "What may differ").
const NEIGHBOURS: [&str; 16] = [
    // Not the system's tables: that takes longer than the whole program.
    "ANALYZE p, c, d, w, f, n, e, l, k, m, log, other.p",
    "ANALYZE p; ANALYZE c",
    "VACUUM m",
    "CREATE INDEX ON m (day)",
    "CREATE INDEX ON n (v)",
    "DROP INDEX CONCURRENTLY IF EXISTS c_pid",
    "UPDATE m SET v = v + 1000 WHERE id % 9 = 0",
    "UPDATE m SET note = 'by another' WHERE id = 12",
    "DELETE FROM m WHERE id = 17",
    "UPDATE c SET val = 'by another' WHERE id % 7 = 0",
    "UPDATE p SET name = 'by another' WHERE grp = 1",
    "INSERT INTO c VALUES (90000 + (SELECT count(*) FROM c), 41, 'by another', 2.5)",
    "UPDATE n SET t = 'by another' WHERE id % 5 = 0",
    "DELETE FROM n WHERE id = 23",
    "UPDATE d SET note = 'by another'",
    "BEGIN; UPDATE w SET v = 9; COMMIT",
];

/// Locks that another session of the program takes and gives back a few steps later.
const LOCKS: [&str; 6] = [
    "BEGIN; LOCK TABLE p IN ACCESS EXCLUSIVE MODE",
    "BEGIN; LOCK TABLE c IN SHARE ROW EXCLUSIVE MODE",
    "BEGIN; LOCK TABLE m IN ACCESS EXCLUSIVE MODE",
    "BEGIN; LOCK TABLE n IN EXCLUSIVE MODE",
    "BEGIN; UPDATE m SET v = 5 WHERE id > 10",
    "BEGIN; ALTER TABLE e ADD COLUMN locked int",
];

/// What a server that reads its configuration anew may find there.
const CONFIGURATIONS: [&str; 12] = [
    "TimeZone = 'Asia/Karachi'",
    "DateStyle = 'German'",
    "default_transaction_isolation = 'repeatable read'",
    "default_transaction_read_only = 'on'",
    "lock_timeout = '18s'",
    "statement_timeout = '19s'",
    "search_path = other, public",
    "IntervalStyle = 'iso_8601'",
    "standard_conforming_strings = 'off'",
    "enable_seqscan = 'off'",
    "session_replication_role = 'replica'",
    "plan_cache_mode = 'force_generic_plan'",
];

/// What a perturbation is shown with.
pub(crate) const PERTURBS: &str = "! ";

/// Words of programs that are run by themselves, because the server reads its configuration anew.
pub(crate) const RELOADS: &str = "pg_reload_conf";

/// Words of a text that makes code, which may find any cursor.
const FUNCTION: &str = "FUNCTION ";

/// A step that opens a result which the session may read ahead and cannot put back: a portal of the protocol, or a cursor
/// that Django has named. What would have it put back ends the session (`docs/safety.md`, "What may differ").
fn cannot_be_put_back(step: &Step) -> bool {
    let is_portal = step.shown.starts_with("open ") && step.shown.contains(" rows");
    is_portal || step.shown.contains("DECLARE \"_django_curs_")
}

/// Puts perturbations between the steps of a program.
pub(crate) fn perturb(random: &mut Random, mut program: Program) -> Program {
    if program.steps.iter().any(cannot_be_put_back) {
        program.steps.retain(|step| !step.shown.contains(FUNCTION));
    }
    let density = random.pick(&DENSITIES);
    if density == 0 {
        return program;
    }
    let (reloads, defines) = (random.one_in(60), random.one_in(2));
    let sessions = program.sessions;
    let mut state =
        Perturbing { random, sessions, flushed: vec![false; sessions], lock: None, steps: Vec::new() };
    let timed: Vec<bool> = (0..sessions)
        .map(|session| {
            program.steps.iter().any(|step| step.session == session && step.shown.contains("timeout"))
        })
        .collect();
    for step in program.steps {
        if step.session >= sessions {
            state.steps.push(step); // the neighbour's
            continue;
        }
        if step.patience == Patience::Blocks && state.random.one_in(density) {
            state.something(step.session, timed[step.session], defines, reloads);
        }
        state.flushed[step.session] = !matches!(step.wait, Wait::Ready(_));
        state.steps.push(step);
        state.unlock(false);
    }
    state.unlock(true);
    Program { sessions, steps: state.steps }
}

/// Settings only, now and then: for programs of one session whose tables are not those of the rig.
pub(crate) fn perturb_gently(random: &mut Random, program: Program) -> Program {
    let density = random.pick(&[0, 10, 25, 60]);
    let sessions = program.sessions;
    let mut state =
        Perturbing { random, sessions, flushed: vec![false; sessions], lock: None, steps: Vec::new() };
    for step in program.steps {
        if density > 0 && state.random.one_in(density) {
            match state.random.below(6) {
                0..=3 => {
                    let text = state.random.pick(&SETTINGS);
                    if !["ALL", "rig_reader", "AUTHORIZATION"].iter().any(|word| text.contains(word)) {
                        state.own(step.session, text);
                    }
                }
                4 => {
                    let text = state.random.pick(&LEVELS);
                    state.own(step.session, text);
                }
                _ => state.steps.push(Step::aside(step.session, Aside::Cancels)),
            }
        }
        state.steps.push(step);
    }
    Program { sessions, steps: state.steps }
}

struct Perturbing<'a> {
    random: &'a mut Random,
    sessions: usize,
    /// Whose last step was a Flush.
    flushed: Vec<bool>,
    /// A session that holds locks, and the steps until it gives them back.
    lock: Option<(usize, usize)>,
    steps: Vec<Step>,
}

impl Perturbing<'_> {
    /// `session` is the one that goes on next.
    fn something(&mut self, session: usize, is_timed: bool, defines: bool, reloads: bool) {
        match self.random.below(20) {
            0..=6 => {
                let text = self.random.pick(&SETTINGS);
                // What a timeout is to end would not end.
                if !(is_timed && ["timeout", "ALL"].iter().any(|word| text.contains(word))) {
                    self.own(session, text);
                }
            }
            7 | 8 => {
                let text = self.random.pick(&LEVELS);
                self.own(session, text);
            }
            9 | 10 => {
                let text = self.random.pick(&NOTICES);
                self.own(session, text);
            }
            11..=13 if defines => {
                let text = self.random.pick(&DEFINITIONS);
                let by = self.random.below(self.sessions);
                self.own(by, text);
            }
            14 | 15 => {
                let text = self.random.pick(&NEIGHBOURS);
                self.neighbour(text);
            }
            16 if self.lock.is_none() && self.sessions > 1 && !is_timed => {
                let by = (session + 1 + self.random.below(self.sessions - 1)) % self.sessions;
                let text = self.random.pick(&LOCKS);
                self.own(by, text);
                self.lock = Some((by, self.random.within(1..5)));
            }
            17 if reloads => {
                let text = self.random.pick(&CONFIGURATIONS);
                self.neighbour(&format!("ALTER SYSTEM SET {text}"));
                // A BEGIN may be on its way, and what is answered from memory may be two seconds old (`docs/safety.md`, "What may
                // differ").
                self.neighbour("SELECT pg_sleep(0.1), pg_reload_conf(), pg_sleep(2.2)");
            }
            18 => self.steps.push(Step::aside(session, Aside::Cancels)),
            _ => {
                let text = self.random.pick(&[
                    "SELECT moves()",
                    "SELECT name FROM pg_cursors ORDER BY name",
                    "SELECT 1",
                    "",
                ]);
                self.own(session, text);
            }
        }
    }

    fn unlock(&mut self, at_once: bool) {
        match self.lock {
            Some((by, left)) if left == 0 || at_once => {
                self.lock = None;
                self.own(by, "ROLLBACK");
            }
            Some((by, left)) => self.lock = Some((by, left - 1)),
            None => {}
        }
    }

    /// Whether a text may end a session: it may name a result that cannot be put back, or make code that does, or the rows to
    /// come would have another encoding.
    fn may_end(&self, session: usize, text: &str) -> bool {
        let mut opened = self.steps.iter().filter(|step| cannot_be_put_back(step));
        if ["EXECUTE '", "_to_xml(", FUNCTION].iter().any(|words| text.contains(words)) {
            return opened.next().is_some(); // what the text makes may be run by any session
        }
        let recodes = text.contains("client_encoding") || text == "RESET ALL";
        recodes && opened.any(|step| step.session == session)
    }

    /// A statement of one of the program's sessions. A simple query that fails leaves the unnamed portal to what the server
    /// has freed, and may end the server with the next Execute of it: where such a portal may be open, it is closed, or the
    /// query does not touch it.
    fn own(&mut self, session: usize, text: &str) {
        if self.may_end(session, text) {
            return;
        }
        let is_one = !text.contains(';') || text.starts_with("DO");
        let beside = |last: Vec<u8>| {
            let nothing = Statement::new(text, &[]);
            [
                close_statement("pb"),
                parse_typed("pb", text, &[]),
                bind_all("pb", "pb", &nothing, Manner { declared: Some(INT4), ..Manner::SIMPLE }),
                execute("pb", 0),
                last,
            ]
            .concat()
        };
        let (bytes, wait, form) = match () {
            () if self.flushed[session] && is_one => (beside(flush()), Wait::Executed, "flushed beside"),
            () if self.flushed[session] => return,
            () if is_one && self.random.one_in(3) => (beside(sync()), Wait::Ready(1), "beside"),
            () => ([query(text), close_portal(""), sync()].concat(), Wait::Ready(2), "simple"),
        };
        self.steps.push(Step::new(session, bytes, wait, format!("{PERTURBS}{form} {text}")));
    }

    fn neighbour(&mut self, text: &str) {
        self.steps.push(Step::new(
            self.sessions,
            query(text),
            Wait::Ready(1),
            format!("{PERTURBS}neighbour {text}"),
        ));
    }
}

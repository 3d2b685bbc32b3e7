//! The rules under which a trip may be removed: each is code in one place, and can be left out to see that
//! its test notices.

use std::sync::LazyLock;

/// Makes [`Rule`] of the table: what it is in short, its name (the letter of its remedy and a number), what it says and
/// why, and the test that goes red when it is left out.
macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident $name:literal $text:literal $test:ident;)*) => {
        /// A rule of safety. `docs/safety.md` is made from these.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// All rules in the order of the documentation.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$rule),*];

            /// Its name: the letter of its remedy and a number.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }

            /// What it says, and why.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$rule => $text,)*
                }
            }

            /// The test that goes red when the rule is left out.
            pub fn test(self) -> &'static str {
                match self {
                    $(Self::$rule => stringify!($test),)*
                }
            }
        }
    };
}

rules! {
    /// Only texts that cannot fail.
    Grammar "B1"
        "Only BEGIN, START TRANSACTION, SAVEPOINT and RELEASE in words of the SQL grammar that the server cannot refuse, alone in a simple query. A name is quoted or has a digit, so that it is no keyword, and is no longer than the server takes. Comments count as blanks. A text waits for the server if it has anything else in it, or a comment that is a hint (`/*+`), is not ASCII, nests or is not closed."
        only_a_begin_that_cannot_fail_is_answered;
    /// Only between transactions, with nothing under way.
    Quiet "B2"
        "BEGIN only outside a transaction, SAVEPOINT and RELEASE only in one that has not failed, and only when the server owes the program nothing and no message is half on its way. Elsewhere the answer is a warning or an error; after an error in an extended group the server skips everything."
        a_begin_inside_a_transaction_or_behind_an_error_waits_for_the_server;
    /// Only where the client waits for the answer.
    Alone "B3"
        "Only when nothing has come behind it. A client that pipelines does not wait for the answer, so that no trip is saved, and counts stay right."
        a_client_that_pipelines_is_answered_by_the_server;
    /// Notifications and parameter changes keep their place.
    Asynchronous "B4"
        "What the server says unasked before it has taken the BEGIN is kept: parameter changes and notices until the next ReadyForQuery, notifications until the transaction is over, where a server that took the BEGIN first would have put them. So are parameters that change while the server answers anything for which the program does not wait. After a notification the session's BEGINs wait, and where it is told what the server logs (`client_min_messages` at LOG or a DEBUG level, as its texts and options tell, or a notice of these levels)."
        what_the_server_says_unasked_keeps_its_place;
    /// Nothing that a standby refuses.
    Standby "B5"
        "READ WRITE and SERIALIZABLE only where the server reports in_hot_standby=off (PostgreSQL 14 and later): a standby refuses them."
        a_standby_is_asked_before_it_writes;
    /// Nothing runs behind a BEGIN that failed.
    Frame "B6"
        "The statement (BEGIN, here and below, stands for all of them) is sent at once, as an extended group that Flush and no Sync ends: should it fail after all (a timeout, a server that stops), the server skips whatever comes behind it up to a Sync, and nothing runs outside the transaction that the program believes in. The Sync follows once the BEGIN is confirmed."
        nothing_runs_behind_a_begin_that_failed;
    /// One unit ahead at most.
    OneAhead "B7"
        "Until the BEGIN is confirmed, one unit of the program goes to the server behind it; a second one waits, because the first one's Sync would end the skipping."
        a_second_unit_waits_for_the_begin;
    /// A failure ends the session.
    Failure "B8"
        "A BEGIN that fails ends the session: the server's own FATAL is passed on; for any other error the program gets a FATAL 08006 that tells it."
        a_begin_that_fails_ends_the_session;
    /// A cancel waits.
    Cancel "B9"
        "A cancel request waits while the server runs what was answered before (a BEGIN) or what is the session's own (what is read ahead): it is meant for what came behind that. Where the program waits for nothing it goes nowhere."
        a_cancel_waits_for_the_begin;
    /// Only a savepoint that is surely the last one is released.
    Savepoint "B10"
        "RELEASE only of the savepoint made last, and only if since then nothing but statements of kinds that leave savepoints alone were sent, one per text, and the session has prepared no others. ROLLBACK TO always waits: it may report parameters that change back."
        only_the_last_savepoint_is_released;
    /// Not in a replication connection.
    Replication "B11"
        "Not in a connection that was opened with the parameter replication: the server knows no extended queries there."
        a_replication_connection_waits_for_the_server;
    /// Only the end of a transaction whose level is plain.
    Level "C1"
        "COMMIT, END, ROLLBACK and ABORT without a chain are answered only in a transaction whose BEGIN was seen, that has not failed, and whose level the server has told to be READ COMMITTED or REPEATABLE READ, or SERIALIZABLE where that BEGIN says READ ONLY and DEFERRABLE; and only when the server owes the program nothing. Whatever may change the level, the access mode or whether it is deferrable (a second BEGIN, SET TRANSACTION, a function of a user) makes the level unknown until the server is asked again. Elsewhere at SERIALIZABLE a reader can be what fails."
        a_transaction_of_another_level_is_ended_by_the_server;
    /// Only transactions that only read, in a session whose state is known.
    OnlyReads "C2"
        "And only where nothing but reads that the catalogue proves (above), transaction control, SHOW and DEALLOCATE was sent since the server last said that the session has no temporary objects and listens to no channel. After anything else (a write, a SET, a function that is not built in) the server is asked again. SET and RESET of `onetrip.lob_prefetch` count as SHOW, here and in all rules: only the session reads it."
        only_a_transaction_that_only_read_is_ended_early;
    /// Strong locks of other sessions wait.
    Fence "C3"
        "Until the server has confirmed it, statements of other sessions of this gateway wait that came after the answer, are for the same database, and might take a lock which conflicts with a reader's: DDL, LOCK, VACUUM, functions that are not built in, and whatever is not surely harmless. INSERT, UPDATE, DELETE and MERGE wait as well, unless no function of a user has a word in its source without which it takes no such lock (LOCK, ALTER, CREATE, DROP, TRUNCATE, REINDEX, CLUSTER, REFRESH, EXECUTE, DO, CALL): a trigger may run it. Where the server has not confirmed it for 5 s, the session that was answered gets a FATAL 08006 and ends, and nobody waits any longer."
        strong_locks_of_other_sessions_wait;
    /// A failure ends the session.
    EndFails "C4"
        "Should the end fail after all, the program gets the server's own FATAL, or one that tells what happened, and the session ends. What the server said before the COMMIT came is passed on instead of an answer."
        an_end_that_fails_ends_the_session;
    /// Only where the session has a server session of its own.
    OneBackend "C5"
        "And only where the server says, with the session's state, that the process which serves the session is the one that its BackendKeyData named. Elsewhere a pooler stands between: the session has no server session of its own, and what the server says of one holds for no other. Remedies that depend on the session's state are off for the rest of the session, and for all that the gateway opens later (this rule holds for them all). Until one session of the gateway has found that it is alone, what its program sends waits while the server is asked: a pooler may not see that something is behind the question."
        a_pooler_is_noticed;
    /// Code of users that runs without a statement that is run.
    Unrun "C6"
        "A statement that is parsed, described or bound, and not run, counts as run where code of users may do anything but read then: the check of a domain to which a literal belongs, or a function that planning runs because it is not VOLATILE, and that calls one which is. It is known whether the database has such code; until then it has. In a database that has it, no statement is known to only read: planning also runs such functions in the indexes and statistics of its tables. What only reads counts as a read that the catalogue has to prove, anything else as a write."
        code_that_runs_before_its_statement_counts;
    /// Only where all reads see one snapshot.
    Snapshot "P1"
        "Reads are answered from memory only in a transaction whose BEGIN was seen, whose level the server has told to be REPEATABLE READ (or SERIALIZABLE, as in C1: such a snapshot is safe, and no record is kept of what it reads), that has not failed, and in which a statement has succeeded, so that its snapshot is taken. Behind AND CHAIN the server is asked again: a failure takes the level back that BEGIN has set, and the transaction that is chained to it has the session's own. The answer is of the same session and transaction, and to a request that is the same byte for byte, but for what its comments say. A comment counts if it is a hint (`/*+`), is not ASCII (the server checks its encoding), or is not closed."
        only_a_repeatable_read_is_answered_from_memory;
    /// Only what is proven to read.
    Pure "P4"
        "Only statements that the catalogue proves to do nothing but read (above), and that the program itself has run in this transaction before, so that their locks are held and their privileges proven; and only in a session whose state is known (rule C2), so that no name in them can mean a temporary object. The system columns xmax, cmin and cmax are not of the snapshot: a statement that names one is not proven. An answer belongs to a statement, not to a text: a prepared statement keeps what its Parse made of literals, types and tables. So a run of one is answered only by an earlier run of the same one, and what is run ahead of it binds the program's own; and its proof, which is its text's, counts only where the relations that the text names are those that its Parse found; a text counts as the same only where it was parsed in the same transaction, with nothing sent since that may change what it means."
        only_what_is_proven_to_read_is_answered_from_memory;
    /// Nothing is kept over anything else.
    Flush "P7"
        "Whatever goes to the server and is not such a read, SHOW, DEALLOCATE or an empty query, a SAVEPOINT included, and every parameter that changes, throws away all that was read ahead, and what is still under way is dropped when it comes."
        nothing_is_kept_over_anything_else;
    /// What was read ahead leaves nothing behind.
    ShieldEnds "P9"
        "What is read ahead runs between a SAVEPOINT and a ROLLBACK TO it: errors, locks and settings are gone with it, and the program sees none of them. Nothing is in a session that errors end (`exit_on_error`). Should the transaction not be what it was before, the session ends."
        a_shield_that_does_not_end_ends_the_session;
    /// Only answers in which nothing was said unasked.
    Silent "P10"
        "An answer in which the server said something unasked (a notice, a parameter that changed, a notification) or that ended in an error is not kept: the statement is run for real when the program asks."
        an_answer_with_a_notice_is_the_servers;
    /// What is read ahead waits for no lock, and writes nothing.
    Harmless "P11"
        "What is read ahead waits for a lock for 2 ms at most, runs for 100 ms at most, and is read-only: the program's next statement is behind it, and the proof that it only reads has a second line."
        what_is_read_ahead_waits_for_no_lock;
    /// Only what was answered of late.
    Age "P14"
        "An answer from memory is at most two seconds old, so that a REVOKE or ALTER ROLE by another session acts as soon."
        an_answer_of_two_seconds_ago_is_read_again;
    /// The server sees that the program is there.
    Sign "P18"
        "A program that is served from memory while the server has heard nothing for 10 ms is announced by a Sync: idle_in_transaction_session_timeout counts as if the program had been there, and no less."
        the_server_sees_a_program_that_is_served_from_memory;
    /// Unnamed objects are what the program believes.
    Unnamed "P22"
        "Before a unit that uses the unnamed statement goes to the server, the server gets the one that was answered from memory last. Before a unit that uses the unnamed portal, or lists portals (pg_cursors), the portal is made and run there, also where its statement was replaced meanwhile. For other units nothing is run again: it might fail by now, and its error would be theirs."
        unnamed_objects_are_what_the_program_believes;
    /// Names of the session's own that no program can guess.
    Secret "P24"
        "The savepoint, the statements and the portals of the session's own have names of 64 random bits, so that no savepoint of the program's has the same: where the program's statement ahead of a flight fails, and the flight's SAVEPOINT with it, a ROLLBACK TO that found the program's own savepoint would heal a transaction that has failed."
        the_shield_has_a_name_that_no_program_can_guess;
    /// Only what may share a trip with its Execute.
    MayShare "S1"
        "A Parse with the Describe of its statement is answered only where the Execute may run before the server has described the statement: the statement is proven to only read (section Purity), so that its result can be dropped, or it is an INSERT, UPDATE, DELETE or MERGE that returns no rows, so that there is no result that could be another. A Parse alone tells nothing, and is answered for any statement: where it fails, there is no statement that the Bind could run."
        only_what_may_run_at_once_is_described_early;
    /// The server's transaction fails before the client is told.
    BothFail "S2"
        "Where the server describes a statement otherwise than was told (other columns; a table that was made anew with the same ones is run, as PostgreSQL does), or refuses it, the unit that runs it fails with what PostgreSQL says to a statement whose result changed between Parse and Bind (0A000), or with the server's own error; inside a transaction the server's transaction is made to fail before the program is told. A later unit that runs the statement goes behind a Parse that makes it again. Where the program goes on with something else and cannot be told, the session ends."
        a_transaction_fails_on_both_sides;
    /// Only what was said of late in the same place.
    SameKey "S3"
        "A Parse is answered only if the server has accepted the same text with the same types within 60 s, and has described it if that is asked. Both must have been in the same place: the same database (not only its name), role, search path and settings that a Parse or its reply may depend on. The server has told the place at most 2 s ago, and the session's state is known (rule C2). Since the server accepted the text, no session has sent a statement that may change a catalogue or lock a table (DDL, SELECT INTO, LOCK, a write that names a table of the catalogue), and none is in this transaction. A function of a user may do so too: it is known what functions may do, and no statement was sent since that may run one which does. A statement may run it by its name, or unasked where it reads or writes rows (a trigger, a default, a view, an operator). A login may run one, too, by an event trigger (PostgreSQL 17 and later). It may also run when a statement is only read or planned (the check of a literal's domain, a function declared IMMUTABLE). An answer with the types put in (rule S5) confirms nothing. After a 0A000 all that is known of the place is dropped; after another description, what was known of the statement."
        only_what_was_said_of_late_in_the_same_place_is_told;
    /// Only names that are surely free.
    FreeName "S4"
        "Only where the Parse cannot be refused because of its name: it is the unnamed statement, or the session has no statement of that name, and has run nothing that may have made one by SQL (PREPARE, also in a function) since it was opened or the server was asked, and no Close of it was skipped behind an error."
        a_name_that_may_be_in_use_waits_for_the_server;
    /// Types are sent as they are told.
    PinnedTypes "S5"
        "The Parse of a statement that is described is sent with the types of the parameters that were told. So the server reads it as it reads again a prepared statement whose tables have changed (`RevalidateCachedQuery`): what the program meets is what it would meet if the change came between its Parse and its Bind."
        parameters_have_the_types_that_were_told;
    /// Only the statement's own Bind goes behind it.
    OnlyItsBind "S6"
        "Until the server has confirmed what was told, nothing goes to it but one unit that binds this statement, runs it once and does nothing else. Anything else waits."
        nothing_but_its_bind_goes_behind_a_statement_that_was_told;
    /// DEALLOCATE takes names away, and nothing else.
    Deallocated "S7"
        "DEALLOCATE leaves the session's state and what was read ahead as they are; but nothing that names the statement is answered from then on, or any statement that was prepared before, where it names all or a name that cannot be told for sure. Only once the server has confirmed it is the name free (rule S4)."
        a_statement_that_was_taken_away_is_not_answered;
    /// The server answers it without waiting for others.
    NoWait "S8"
        "Not where the Parse may wait for a safe snapshot, as it does in a transaction that is SERIALIZABLE, READ ONLY and DEFERRABLE and has no snapshot yet: a BEGIN of the transaction, or of the one that it was chained to, has said DEFERRABLE, or `default_transaction_deferrable` is on, and the server has not told the level. There the server says nothing before other sessions have ended."
        a_parse_that_may_wait_for_a_safe_snapshot_is_not_answered;
    /// Only plain reads are read ahead.
    Plain "R1"
        "Only results of statements that are proven to do nothing but read the snapshot (section Purity), in a session whose state is known: no row locks, no function of a user. And only where nothing was sent, by this session or by others, since the result was opened that may have changed what its names mean. The rows of such a portal are fixed when it is opened, whatever the session writes meanwhile."
        only_a_result_that_is_proven_to_be_read_only_is_read_ahead;
    /// Only what no setting shapes.
    Shape "R2"
        "Only where no setting shapes what is read later, and reading it cannot fail. Rows are computed when they are fetched; so the query, and the views under it, may hold nothing but columns, constants and parameters, compared in ways that look at no setting, and its clauses may not compute either. The types of columns are looked up, those of parameters are what Parse declares; a comparison of two types is refused. And each column's type is written alike under all settings (numbers, text, boolean, uuid, json; in binary also floats, dates, times and bytea). Where the encodings of program and database differ, characters are converted, and that may fail: then no column may hold any. client_encoding is watched: after a change, what was read ahead is not given out, and the session ends if the program goes on with it."
        a_result_that_settings_shape_is_not_read_ahead;
    /// Statements to which the place of a cursor matters.
    Place "R3"
        "Where the server's portal stands is no secret to statements that name it: FETCH in other forms, by simple query or by Execute, MOVE, WHERE CURRENT OF anywhere in a statement, Execute of a cursor of SQL; and to those that run a text which may name it (DO that builds statements, `cursor_to_xml`, `query_to_xml`, `ts_stat`, `ts_rewrite`). Before one of these, a cursor of SQL is moved back to where the program believes it to be; so one is read ahead only if the server says that it goes backward, or if it is one that a driver declares for itself (Django: its name, and NO SCROLL). A program that names a portal of the protocol, or such a cursor of its driver, in one of these statements after it was read ahead ends its session. After a PREPARE of such a statement, or a Parse of it with a name, nothing is read ahead: EXECUTE may run it. Nor is a cursor of SQL of which an Execute has read something that was not read ahead."
        a_statement_that_depends_on_a_place_finds_it;
    /// Not in SERIALIZABLE.
    Serializable "R4"
        "In a transaction only at READ COMMITTED or REPEATABLE READ, as the server says it, or SERIALIZABLE as in C1: elsewhere at SERIALIZABLE rows that were read ahead are rows read. A cursor WITH HOLD is stored when its transaction ends, and its level does not matter."
        a_serializable_transaction_reads_what_it_asks_for;
    /// Errors ahead leave the transaction alone.
    Shield "R5"
        "Only in a session that surely has no statement_timeout: a piece that one ends has ended its portal, and another one may be in force when the program asks for the piece. In a transaction, pieces are read behind a SAVEPOINT of a name that no program can guess, each with its Sync, and the savepoint is rolled back to and released whatever comes: a portal keeps its place, and what fails leaves the transaction as it was. A piece that fails all the same (a cancel by another session, a server that runs out of memory) has ended its portal: when the program comes to it, the server is asked for it, so that the program's transaction fails too, with the error as it was."
        an_error_ahead_is_told_when_the_program_comes_to_it;
    /// What is kept has bounds.
    Bounds "R6"
        "No more rows ahead than twice those that the program has got, and 2,048, or 16,384 where all columns are short; of these no more in memory than 1 MiB for the session, the rest in a temporary file, and delivered as fast as the program takes them. Where a piece takes more than a quarter of a round trip, no more than keep the path busy for four, and one where it takes four by itself. A result of which one piece is read costs nothing."
        what_is_ahead_has_bounds;
    /// The program's own requests keep its transaction alive.
    Contact "R7"
        "While a program is answered from memory, the server hears of it every 20 ms at least, so that idle_in_transaction_session_timeout ends the transactions that it would end, and no others."
        a_program_that_is_served_from_memory_is_not_idle;
    /// What fails unexpectedly ends the session.
    Broken "R8"
        "Should a message of the session's own fail, or the transaction be in another state than the program believes, the program gets a FATAL 08006 that tells it, and the session ends."
        a_transaction_in_another_state_ends_the_session;
    /// Only where no function knows cursors.
    Functions "R9"
        "Only in a database without code of users that could find a cursor: a function that has a word in its source without which it cannot (cursor, fetch, move, open, close, CURRENT OF, EXECUTE), or could not make such code (LANGUAGE, extension, pg_proc), or is of a language that is not read here, a rule with CURRENT OF, and whatever is stored as an expression (views, defaults, checks, policies, operators and so on) over one of the server's functions that read a cursor or run a text. Where a text that may make such code was sent since a result was opened, by this session or another: before a statement that may run code, a cursor of SQL is moved back, and a portal of the protocol that is ahead ends its session."
        no_function_finds_a_cursor_further_on;
    /// Nothing was sent since that may change the session.
    Neutral "K1"
        "Only outside of transactions, from PostgreSQL 14 on, and only a unit that is byte for byte one that the server has run in this session without a notice or an error, since when nothing was sent but reads that the catalogue proves (above), transaction control, SHOW and DEALLOCATE, in a session whose state is known (rule C2) and that has a server session of its own (rule C5), or housekeeping of other parameters. It holds nothing but SET and RESET of parameters that every role may set and whose check looks at nothing else, SET SESSION CHARACTERISTICS, RESET ALL, DISCARD ALL, CLOSE ALL, UNLISTEN *, pg_advisory_unlock_all(), and SHOW (rule K3). It is sent to the server all the same."
        only_what_nothing_may_have_changed_is_answered;
    /// A function is the server's own.
    Builtin "K2"
        "pg_advisory_unlock_all() without its schema only where pg_catalog is the first schema of the search path, so that it is no function of a user."
        a_function_that_may_be_a_users_waits_for_the_server;
    /// What is shown was set by the session.
    OwnSetting "K3"
        "SHOW only of a parameter that this session has SET by its own name, since when nothing may have changed it: others change when the server reads its configuration again."
        a_parameter_that_was_not_set_is_shown_by_the_server;
    /// The server must say what was answered.
    SameAnswer "K4"
        "Should the server answer otherwise than before, the program gets a FATAL 08006 that tells it, and the session ends."
        another_answer_ends_the_session;
    /// Only descriptors that read and cannot write.
    ReadOnly "L1"
        "Only descriptors that are opened to read and not to write (`INV_READ` without `INV_WRITE`), by FunctionCall with everything in binary, in a transaction whose BEGIN was seen: they see the snapshot of their `lo_open` as long as they are open. One that may write reads what is committed at each read, in REPEATABLE READ as well, and goes to the server with every call."
        a_descriptor_that_may_write_reads_what_is_there;
    /// Objects are opened ahead only in a snapshot.
    Ahead "L2"
        "An object is opened before the program opens it only in a transaction whose level the server has told to be REPEATABLE READ (or SERIALIZABLE, as in C1): elsewhere `lo_open` takes a snapshot of its own. There the object is read behind the program's own `lo_open`, in the same write."
        only_in_repeatable_read_an_object_is_opened_ahead;
    /// Only where the transaction holds the locks of a reader.
    Lock "L3"
        "Only in a transaction that has read a large object itself, or does with the call in front: reading takes a lock on `pg_largeobject` to the end of the transaction, and ROLLBACK TO does not give it back. Opening takes none."
        nothing_is_read_ahead_before_the_program_has_read;
    /// Descriptors are where the program believes.
    Places "L4"
        "Before anything goes to the server but a statement that is proven to only read, SHOW, DEALLOCATE, or the end of the transaction, each descriptor is there, with its number, and stands where the program believes it to."
        descriptors_are_in_their_places_before_anything_can_tell;
    /// Nothing is known of descriptors behind anything else.
    Followed "L5"
        "Whatever goes to the server besides those, and besides the calls that are followed, ends what is known of all descriptors, and of the numbers to come in this transaction: it may write an object, unlink it, or open another. FETCH runs the query of its cursor, and is one of those only where that is proven to only read. A savepoint does while a descriptor is open. What was read of the program's own descriptors is not used any more."
        an_object_that_is_unlinked_is_gone;
    /// A descriptor has the number that was told.
    Numbers "L6"
        "Descriptors' numbers are told in advance only where all that opened or closed one in the transaction was followed: the lowest that is free. Should the server give another, what was sent ahead has read from another descriptor, and the session ends."
        a_descriptor_of_another_number_ends_the_session;
    /// Only functions that the program may call.
    Callable "L7"
        "A function is answered from memory only if the server has answered a call of it in this session less than a second ago, so that REVOKE acts as elsewhere; what a transaction proves whose statements are not all proven to read is forgotten with it."
        a_function_that_was_not_called_is_asked_of_the_server;
    /// What fails unexpectedly ends the session.
    Expected "L8"
        "`lo_close` is answered and sent along. Should it or another call of the session's own fail or return something else, the program gets a FATAL 08006 that tells it, and the session ends."
        a_close_that_fails_ends_the_session;
}

impl Rule {
    /// Whether what the rule requires holds, or the rule is left out.
    pub(crate) fn requires(self, condition: bool) -> bool {
        condition || !self.is_kept()
    }

    /// Whether it is kept. A build that was made with `ONETRIP_MUTANTS` set leaves out the one that `ONETRIP_WITHOUT_RULE`
    /// names when it starts; no other build can.
    pub fn is_kept(self) -> bool {
        static WITHOUT: LazyLock<Option<String>> = LazyLock::new(|| {
            let name = std::env::var("ONETRIP_WITHOUT_RULE").ok()?;
            assert!(Rule::ALL.iter().any(|rule| rule.name() == name), "no rule is named {name}");
            Some(name)
        });
        option_env!("ONETRIP_MUTANTS").is_none() || WITHOUT.as_deref() != Some(self.name())
    }
}

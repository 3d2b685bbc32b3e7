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
        "Only BEGIN, START TRANSACTION, SAVEPOINT and RELEASE, alone in a simple query, in words that the server cannot refuse. The name of a savepoint is quoted or has a digit, so that it is no keyword. It is no longer than the server takes. Comments count as blanks. A text waits for the server if it has anything else in it. It also waits if a comment is a hint (`/*+`), is not ASCII, nests or is not closed."
        only_a_begin_that_cannot_fail_is_answered;
    /// Only between transactions, with nothing under way.
    Quiet "B2"
        "BEGIN only outside a transaction. SAVEPOINT and RELEASE only in a transaction that has not failed. All of them only when the server owes the program nothing, and no message is half on its way. Elsewhere the server answers with a warning or an error; after an error in an extended group it skips everything."
        a_begin_inside_a_transaction_or_behind_an_error_waits_for_the_server;
    /// Only where the client waits for the answer.
    Alone "B3"
        "Only when nothing has come behind it. A client that pipelines does not wait for the answer, so no trip would be saved, and the counts would be wrong."
        a_client_that_pipelines_is_answered_by_the_server;
    /// Notifications and parameter changes keep their place.
    Asynchronous "B4"
        "What the server says unasked before it has taken the BEGIN is kept. Parameter changes and notices are kept until the next ReadyForQuery, notifications until the transaction is over: a server that took the BEGIN first would have put them there. The same holds for parameters that change while the server answers anything for which the program does not wait. After a notification, the session's BEGINs wait for the server. They also wait where the session is told what the server logs: its texts and options set `client_min_messages` to LOG or a DEBUG level, or a notice of these levels has come."
        what_the_server_says_unasked_keeps_its_place;
    /// Nothing that a standby refuses.
    Standby "B5"
        "READ WRITE and SERIALIZABLE only where the server reports in_hot_standby=off (PostgreSQL 14 and later). A standby refuses them."
        a_standby_is_asked_before_it_writes;
    /// Nothing runs behind a BEGIN that failed.
    Frame "B6"
        "BEGIN stands for all four statements here and below. It is sent at once, as an extended group that ends with Flush and has no Sync. If it fails after all (a timeout, a server that stops), the server skips whatever comes behind it up to a Sync. So nothing runs outside the transaction that the program believes in. The Sync follows when the BEGIN is confirmed."
        nothing_runs_behind_a_begin_that_failed;
    /// One unit ahead at most.
    OneAhead "B7"
        "Until the BEGIN is confirmed, one unit of the program goes to the server behind it. A second unit waits, because the Sync of the first one would end the skipping."
        a_second_unit_waits_for_the_begin;
    /// A failure ends the session.
    Failure "B8"
        "A BEGIN that fails ends the session. The program gets the server's own FATAL; for any other error it gets a FATAL 08006 that says what failed."
        a_begin_that_fails_ends_the_session;
    /// A cancel waits.
    Cancel "B9"
        "A cancel request waits while the server runs what was answered before (a BEGIN) or what the gateway itself has sent (a prefetch). The cancel is meant for what came behind that. It goes nowhere if the program waits for nothing."
        a_cancel_waits_for_the_begin;
    /// Only a savepoint that is surely the last one is released.
    Savepoint "B10"
        "RELEASE only of the savepoint that was made last. Since then, the session has sent only statements of kinds that leave savepoints alone, one in each text, and has prepared no others. ROLLBACK TO always waits: it may report parameters that change back."
        only_the_last_savepoint_is_released;
    /// Not in a replication connection.
    Replication "B11"
        "Not in a connection that was opened with the parameter replication. The server knows no extended queries there."
        a_replication_connection_waits_for_the_server;
    /// Only the end of a transaction whose level is plain.
    Level "C1"
        "COMMIT, END, ROLLBACK and ABORT without a chain are answered only in a transaction whose BEGIN was seen and that has not failed, and only when the server owes the program nothing. The server has told its level: READ COMMITTED or REPEATABLE READ, or SERIALIZABLE where the BEGIN says READ ONLY and DEFERRABLE. Elsewhere at SERIALIZABLE, a reader can be what fails. A second BEGIN, SET TRANSACTION, or a function of a user may change the level, the access mode or whether it is deferrable. After one of them the level is unknown until the server is asked again."
        a_transaction_of_another_level_is_ended_by_the_server;
    /// Only transactions that only read, in a session whose state is known.
    OnlyReads "C2"
        "And only after reads that the catalogue proves (above), transaction control, SHOW and DEALLOCATE. Nothing else was sent since the server last said that the session has no temporary objects and listens to no channel. After anything else (a write, a SET, a function that is not built in) the server is asked again. SET and RESET of `onetrip.lob_prefetch` count as SHOW, here and in all rules: only the gateway reads it."
        only_a_transaction_that_only_read_is_ended_early;
    /// Strong locks of other sessions wait.
    Fence "C3"
        "Until the server has confirmed it, some statements of other sessions of this gateway wait. They are those that came after the answer, are for the same database, and might take a lock that conflicts with a reader's: DDL, LOCK, VACUUM, functions that are not built in, and whatever is not surely harmless. INSERT, UPDATE, DELETE and MERGE may run a trigger, so they wait too, if a function of a user might take such a lock. A function might if its source has one of the words LOCK, ALTER, CREATE, DROP, TRUNCATE, REINDEX, CLUSTER, REFRESH, EXECUTE, DO, CALL. If the server has not confirmed the end for 5 s, the session that was answered gets a FATAL 08006 and ends, and nobody waits any longer."
        strong_locks_of_other_sessions_wait;
    /// A failure ends the session.
    EndFails "C4"
        "If the end fails after all, the program gets the server's own FATAL, or one that tells what happened, and the session ends. What the server said before the COMMIT came is passed on instead of an answer."
        an_end_that_fails_ends_the_session;
    /// Only where the session has a server session of its own.
    OneBackend "C5"
        "And only where the session has a server process of its own: the server, when it is asked for the session's state, names the process of its BackendKeyData. Elsewhere a pooler stands between, and what one server process says holds for no other. There the remedies that depend on the session's state are off, for the rest of the session and for all sessions that the gateway opens later. This rule holds for all these remedies. Until one session of the gateway has found that it is alone, what its program sends waits while the server is asked: a pooler may not see that something is behind the question."
        a_pooler_is_noticed;
    /// Code of users that runs without a statement that is run.
    Unrun "C6"
        "A statement that is parsed, described or bound, and not run, counts as run if code of users may then do more than read. Such code is the check of a domain to which a literal belongs. It is also a function that planning runs because it is not VOLATILE, and that calls one which is. The gateway asks whether the database has such code, and assumes it until it knows. In a database that has it, no statement is known to only read: planning also runs such functions in the indexes and statistics of its tables. A statement that only reads counts as a read that the catalogue has to prove, any other as a write."
        code_that_runs_before_its_statement_counts;
    /// Only where all reads see one snapshot.
    Snapshot "P1"
        "Reads are answered from memory only in a transaction whose BEGIN was seen and that has not failed. The server has told its level: REPEATABLE READ, or SERIALIZABLE as in C1, where the snapshot is safe and the server keeps no record of what is read. A statement has succeeded in it, so that its snapshot is taken. Behind AND CHAIN the server is asked again: a failure takes back the level that BEGIN has set, and the chained transaction has the session's own. The answer is of the same session and transaction. The request is the same byte for byte, except for comments. A comment counts as text if it is a hint (`/*+`), is not ASCII (the server checks its encoding), or is not closed."
        only_a_repeatable_read_is_answered_from_memory;
    /// Only what is proven to read.
    Pure "P4"
        "Only statements that the catalogue proves to do nothing but read (above), and that the program has run in this transaction before. So their locks are held, and their privileges are proven. The session's state is known (rule C2), so that no name in them can mean a temporary object. The system columns xmax, cmin and cmax are not of the snapshot: a statement that names one is not proven. An answer belongs to a statement, not to a text: a prepared statement keeps what its Parse made of literals, types and tables. So only an earlier run of the same statement answers a run of it, and a prefetch of it binds the program's own statement. The proof of its text counts only while the text names the relations that its Parse found. A text counts as the same only if it was parsed in the same transaction, and nothing was sent since that may change what it means."
        only_what_is_proven_to_read_is_answered_from_memory;
    /// Nothing is kept over anything else.
    Flush "P7"
        "Each request that goes to the server throws away everything that was prefetched, unless it is such a read, SHOW, DEALLOCATE or an empty query. SAVEPOINT throws it away, too, and so does each parameter that changes. What is still under way is dropped when it comes."
        nothing_is_kept_over_anything_else;
    /// What was read ahead leaves nothing behind.
    ShieldEnds "P9"
        "A prefetch runs between a SAVEPOINT and a ROLLBACK TO it. Its errors, locks and settings are gone with it, and the program sees none of them. Nothing is prefetched in a session that errors end (`exit_on_error`). If the transaction is not in the state in which it was before, the session ends."
        a_shield_that_does_not_end_ends_the_session;
    /// Only answers in which nothing was said unasked.
    Silent "P10"
        "An answer is not kept if the server said something unasked in it (a notice, a parameter that changed, a notification), or if it ended in an error. The statement runs when the program asks for it."
        an_answer_with_a_notice_is_the_servers;
    /// What is read ahead waits for no lock, and writes nothing.
    Harmless "P11"
        "A prefetch waits for a lock for 2 ms at most, runs for 100 ms at most, and is read-only. The program's next statement is behind it. And the proof that it only reads has a second line of defence."
        what_is_read_ahead_waits_for_no_lock;
    /// Only what was answered of late.
    Age "P14"
        "An answer from memory is at most two seconds old, so that a REVOKE or ALTER ROLE by another session acts within that time."
        an_answer_of_two_seconds_ago_is_read_again;
    /// The server sees that the program is there.
    Sign "P18"
        "A program may be served from memory while the server has heard nothing for 10 ms. Then the gateway sends a Sync: so idle_in_transaction_session_timeout counts as if the program had been there, and no less."
        the_server_sees_a_program_that_is_served_from_memory;
    /// Unnamed objects are what the program believes.
    Unnamed "P22"
        "Before a unit that uses the unnamed statement goes to the server, the gateway sends the unnamed statement that was answered from memory last. Before a unit that uses the unnamed portal, or lists portals (pg_cursors), the gateway makes and runs that portal, also where its statement was replaced meanwhile. For other units the gateway runs nothing again: it might fail by now, and its error would seem to be theirs."
        unnamed_objects_are_what_the_program_believes;
    /// Names of the session's own that no program can guess.
    Secret "P24"
        "The savepoint, the statements and the portals of the gateway have names of 64 random bits, so that the program has no savepoint of such a name. Otherwise: the program's statement ahead of a prefetch fails, the gateway's SAVEPOINT fails with it, its ROLLBACK TO finds the program's savepoint, and the failed transaction is alive again."
        the_shield_has_a_name_that_no_program_can_guess;
    /// Only what may share a trip with its Execute.
    MayShare "S1"
        "A Parse with the Describe of its statement is answered only if the Execute may run before the server has described the statement. Either the statement is proven to only read (section Purity), and its result can be dropped. Or it is an INSERT, UPDATE, DELETE or MERGE that returns no rows, and there is no result that could differ. A Parse alone is answered for any statement: it tells nothing, and if it fails, there is no statement that the Bind could run."
        only_what_may_run_at_once_is_described_early;
    /// The server's transaction fails before the client is told.
    BothFail "S2"
        "The server may refuse the statement, or describe it in another way than the program was told (with other columns; PostgreSQL runs it if its table was made anew with the same ones). Then the unit that runs it fails with the server's own error, or with what PostgreSQL says to a statement whose result changed between Parse and Bind (0A000). Inside a transaction, the gateway makes the server's transaction fail before it tells the program. A later unit that runs the statement goes behind a Parse that makes it again. If the program goes on with something else and cannot be told, the session ends."
        a_transaction_fails_on_both_sides;
    /// Only what was said of late in the same place.
    SameKey "S3"
        "A Parse is answered only if the server has accepted the same text with the same types within 60 s, and has described it if that is asked. Both must have been in the same place: the same database (not only its name), role, search path and settings that a Parse or its reply may depend on. The server has told the place at most 2 s ago, and the session's state is known (rule C2). Since the server accepted the text, no session has sent a statement that may change a catalogue or lock a table (DDL, SELECT INTO, LOCK, a write that names a table of the catalogue), and none is in this transaction. A function of a user may do so too: the gateway knows what functions may do, and no statement was sent since that may run one which does. A statement may run it by its name, or unasked where it reads or writes rows (a trigger, a default, a view, an operator). A login may run one, too, by an event trigger (PostgreSQL 17 and later). It may also run when a statement is only read or planned (the check of a literal's domain, a function declared IMMUTABLE). An answer with the types put in (rule S5) confirms nothing. After a 0A000, all that is known of the place is dropped; after another description, what was known of the statement."
        only_what_was_said_of_late_in_the_same_place_is_told;
    /// Only names that are surely free.
    FreeName "S4"
        "Only if the server cannot refuse the Parse because of its name. Either it is the unnamed statement. Or the session has no statement of that name, and no Close of it was skipped behind an error. Then the session has also run nothing that may have made one by SQL (PREPARE, also in a function) since it was opened or the server was asked."
        a_name_that_may_be_in_use_waits_for_the_server;
    /// Types are sent as they are told.
    PinnedTypes "S5"
        "The Parse of a statement that is described is sent with the parameter types that the program was told. So the server reads it as it reads a prepared statement again whose tables have changed (`RevalidateCachedQuery`). The program meets what it would meet if the change came between its Parse and its Bind."
        parameters_have_the_types_that_were_told;
    /// Only the statement's own Bind goes behind it.
    OnlyItsBind "S6"
        "Until the server has confirmed what the program was told, one unit may go to the server: one that binds this statement, runs it once and does nothing else. Anything else waits."
        nothing_but_its_bind_goes_behind_a_statement_that_was_told;
    /// DEALLOCATE takes names away, and nothing else.
    Deallocated "S7"
        "DEALLOCATE takes names away. It leaves the session's state and what was prefetched as they are. From then on, nothing that names the statement is answered. If DEALLOCATE names all statements, or one whose name cannot be told for sure, nothing is answered that names a statement which was prepared before. The name is free (rule S4) only once the server has confirmed it."
        a_statement_that_was_taken_away_is_not_answered;
    /// The server answers it without waiting for others.
    NoWait "S8"
        "Not if the Parse may wait for a safe snapshot. It does in a transaction that is SERIALIZABLE, READ ONLY and DEFERRABLE and has no snapshot yet: the server says nothing before other sessions have ended. A transaction may be one if its BEGIN, or that of the transaction to which it was chained, has said DEFERRABLE, or if `default_transaction_deferrable` is on, and the server has not told the level."
        a_parse_that_may_wait_for_a_safe_snapshot_is_not_answered;
    /// Only plain reads are read ahead.
    Plain "R1"
        "Only results of statements that are proven to do nothing but read the snapshot (section Purity), in a session whose state is known. They lock no rows and run no function of a user. Since the result was opened, neither this session nor another has sent anything that may have changed what its names mean. The rows of such a portal are fixed when it is opened, whatever the session writes meanwhile."
        only_a_result_that_is_proven_to_be_read_only_is_read_ahead;
    /// Only what no setting shapes.
    Shape "R2"
        "Only if no setting shapes what is fetched later, and fetching it cannot fail. Rows are computed when they are fetched. So the query, and the views under it, may hold nothing but columns, constants and parameters, compared in ways that look at no setting; its clauses may not compute either. The gateway looks up the types of columns; Parse declares those of parameters. A comparison of two types is refused. Each column's type is written alike under all settings: numbers, text, boolean, uuid, json; in binary also floats, dates, times and bytea. If the encodings of program and database differ, the server converts characters, and that may fail: then no column may hold any. The gateway watches client_encoding: after a change it gives out nothing that was prefetched, and the session ends if the program goes on with it."
        a_result_that_settings_shape_is_not_read_ahead;
    /// Statements to which the place of a cursor matters.
    Place "R3"
        "Some statements can tell where the server's portal stands. They are those that name it: FETCH in other forms, by simple query or by Execute, MOVE, WHERE CURRENT OF anywhere in a statement, Execute of a cursor of SQL. And they are those that run a text which may name it: DO that builds statements, `cursor_to_xml`, `query_to_xml`, `ts_stat`, `ts_rewrite`. Before one of these, the gateway moves a cursor of SQL back to where the program believes it to be. So it prefetches from one only if the server says that it goes backward, or if a driver declares it for itself (Django: its name, and NO SCROLL). If one of these statements names a portal of the protocol, or such a cursor of a driver, after rows of it were prefetched, the session ends. After a PREPARE of such a statement, or a Parse of it with a name, nothing is prefetched: EXECUTE may run it. Nothing is prefetched either from a cursor of SQL of which an Execute has read something that was not prefetched."
        a_statement_that_depends_on_a_place_finds_it;
    /// Not in SERIALIZABLE.
    Serializable "R4"
        "In a transaction only at READ COMMITTED or REPEATABLE READ, as the server says it, or SERIALIZABLE as in C1. Elsewhere at SERIALIZABLE, the server counts prefetched rows as rows that the program has read. A cursor WITH HOLD is stored when its transaction ends, so its level does not matter."
        a_serializable_transaction_reads_what_it_asks_for;
    /// Errors ahead leave the transaction alone.
    Shield "R5"
        "Only in a session that surely has no statement_timeout. A piece that a timeout ends has ended its portal, and another timeout may be in force when the program asks for the piece. In a transaction, the gateway fetches pieces behind a SAVEPOINT of a name that no program can guess, each with its Sync. It rolls back to the savepoint and releases it whatever comes: the portal keeps its place, and what fails leaves the transaction as it was. A piece that fails all the same (a cancel by another session, a server that runs out of memory) has ended its portal. When the program comes to it, the gateway asks the server for it: so the program's transaction fails too, with the same error."
        an_error_ahead_is_told_when_the_program_comes_to_it;
    /// What is kept has bounds.
    Bounds "R6"
        "No more rows are prefetched than twice those that the program has got, and than 2,048, or 16,384 where all columns are short. A session keeps 1 MiB of them in memory and the rest in a temporary file. It delivers them as fast as the program takes them. If a piece takes more than a quarter of a round trip, only so many are under way that they keep the path busy for four round trips; only one, if it takes four by itself. A result of which one piece is read costs nothing."
        what_is_ahead_has_bounds;
    /// The program's own requests keep its transaction alive.
    Contact "R7"
        "While a program is answered from memory, the server hears from the gateway every 20 ms at least. So idle_in_transaction_session_timeout ends the transactions that it would end, and no others."
        a_program_that_is_served_from_memory_is_not_idle;
    /// What fails unexpectedly ends the session.
    Broken "R8"
        "If a message of the gateway's own fails, or the transaction is in another state than the program believes, the program gets a FATAL 08006 that tells it, and the session ends."
        a_transaction_in_another_state_ends_the_session;
    /// Only where no function knows cursors.
    Functions "R9"
        "Only in a database without code of users that could find a cursor. A function could if its source has a word that this needs (cursor, fetch, move, open, close, CURRENT OF, EXECUTE), or could make such code (LANGUAGE, extension, pg_proc), or is in a language that the gateway does not read. A rule could that has CURRENT OF. So could whatever is stored as an expression (views, defaults, checks, policies, operators and so on) over one of the server's functions that read a cursor or run a text. Since a result was opened, this session or another may have sent a text that may make such code. Then, before a statement that may run code, the gateway moves a cursor of SQL back; a portal of the protocol of which rows were prefetched ends its session."
        no_function_finds_a_cursor_further_on;
    /// Nothing was sent since that may change the session.
    Neutral "K1"
        "Only outside of transactions, from PostgreSQL 14 on, and only a unit that the server has run in this session before, byte for byte, without a notice or an error. Since then nothing was sent but reads that the catalogue proves (above), transaction control, SHOW, DEALLOCATE, and housekeeping of other parameters. The session's state is known (rule C2), and it has a server process of its own (rule C5). The unit holds nothing but SET and RESET of parameters that every role may set and whose check looks at nothing else, SET SESSION CHARACTERISTICS, RESET ALL, DISCARD ALL, CLOSE ALL, UNLISTEN *, pg_advisory_unlock_all(), and SHOW (rule K3). It is sent to the server all the same."
        only_what_nothing_may_have_changed_is_answered;
    /// A function is the server's own.
    Builtin "K2"
        "pg_advisory_unlock_all() without its schema only if pg_catalog is the first schema of the search path, so that it is no function of a user."
        a_function_that_may_be_a_users_waits_for_the_server;
    /// What is shown was set by the session.
    OwnSetting "K3"
        "SHOW only of a parameter that this session has SET by its own name, since when nothing may have changed it. Other parameters change when the server reads its configuration again."
        a_parameter_that_was_not_set_is_shown_by_the_server;
    /// The server must say what was answered.
    SameAnswer "K4"
        "If the server answers in another way than before, the program gets a FATAL 08006 that tells it, and the session ends."
        another_answer_ends_the_session;
    /// Only descriptors that read and cannot write.
    ReadOnly "L1"
        "Only descriptors that are opened to read and not to write (`INV_READ` without `INV_WRITE`), by FunctionCall with everything in binary, in a transaction whose BEGIN was seen. They see the snapshot of their `lo_open` as long as they are open. A descriptor that may write reads what is committed at each read, in REPEATABLE READ as well: each call of it goes to the server."
        a_descriptor_that_may_write_reads_what_is_there;
    /// Objects are opened ahead only in a snapshot.
    Ahead "L2"
        "An object is opened before the program opens it only in a transaction whose level the server has told to be REPEATABLE READ, or SERIALIZABLE as in C1. Elsewhere `lo_open` takes a snapshot of its own: there the gateway reads the object behind the program's own `lo_open`, in the same write."
        only_in_repeatable_read_an_object_is_opened_ahead;
    /// Only where the transaction holds the locks of a reader.
    Lock "L3"
        "Only in a transaction that has read a large object itself, or does with the call in front. Reading takes a lock on `pg_largeobject` to the end of the transaction, and ROLLBACK TO does not give it back. Opening takes none."
        nothing_is_read_ahead_before_the_program_has_read;
    /// Descriptors are where the program believes.
    Places "L4"
        "Before anything goes to the server but a statement that is proven to only read, SHOW, DEALLOCATE, or the end of the transaction, the gateway makes the descriptors there what the program believes: each is open, has its number, and stands in its place."
        descriptors_are_in_their_places_before_anything_can_tell;
    /// Nothing is known of descriptors behind anything else.
    Followed "L5"
        "Whatever goes to the server besides those, and besides the calls that the gateway follows, ends what is known of all descriptors, and of the numbers to come in this transaction: it may write an object, unlink it, or open another. FETCH runs the query of its cursor, so it is one of those only if that is proven to only read. A savepoint ends what is known, too, while a descriptor is open. What was read of the program's own descriptors is not used any more."
        an_object_that_is_unlinked_is_gone;
    /// A descriptor has the number that was told.
    Numbers "L6"
        "The number of a descriptor is told in advance only if the gateway followed all that opened or closed one in the transaction: it is the lowest that is free. If the server gives another number, what was sent ahead has read from another descriptor, and the session ends."
        a_descriptor_of_another_number_ends_the_session;
    /// Only functions that the program may call.
    Callable "L7"
        "A function is answered from memory only if the server has answered a call of it in this session less than a second ago, so that REVOKE acts as elsewhere. What a transaction proves is forgotten with it if not all of its statements are proven to read."
        a_function_that_was_not_called_is_asked_of_the_server;
    /// What fails unexpectedly ends the session.
    Expected "L8"
        "`lo_close` is answered and sent along. If it or another call of the gateway's own fails or returns something else, the program gets a FATAL 08006 that tells it, and the session ends."
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

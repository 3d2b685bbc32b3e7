//! The rules under which a trip may be removed: each is code in one place, and can be left out to see that
//! its test notices.

use std::sync::LazyLock;

/// Makes [`Rule`] of the table: what it is in short, its name (the letter of its remedy and a number), and the test that
/// goes red when it is left out.
macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident $name:literal $test:ident;)*) => {
        /// A rule of safety. `docs/safety.md` says what it requires, and why.
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
    Grammar "B1" only_a_begin_that_cannot_fail_is_answered;
    /// Only between transactions, with nothing under way.
    Quiet "B2" a_begin_inside_a_transaction_or_behind_an_error_waits_for_the_server;
    /// Only where the client waits for the answer.
    Alone "B3" a_client_that_pipelines_is_answered_by_the_server;
    /// Notifications and parameter changes keep their place.
    Asynchronous "B4" what_the_server_says_unasked_keeps_its_place;
    /// Nothing that a standby refuses.
    Standby "B5" a_standby_is_asked_before_it_writes;
    /// Nothing runs behind a BEGIN that failed.
    Frame "B6" nothing_runs_behind_a_begin_that_failed;
    /// One unit ahead at most.
    OneAhead "B7" a_second_unit_waits_for_the_begin;
    /// A failure ends the session.
    Failure "B8" a_begin_that_fails_ends_the_session;
    /// A cancel waits.
    Cancel "B9" a_cancel_waits_for_the_begin;
    /// Only a savepoint that is surely the last one is released.
    Savepoint "B10" only_the_last_savepoint_is_released;
    /// Not in a replication connection.
    Replication "B11" a_replication_connection_waits_for_the_server;
    /// Only the end of a transaction whose level is plain.
    Level "C1" a_transaction_of_another_level_is_ended_by_the_server;
    /// Only transactions that only read, in a session whose state is known.
    OnlyReads "C2" only_a_transaction_that_only_read_is_ended_early;
    /// Strong locks of other sessions wait.
    Fence "C3" strong_locks_of_other_sessions_wait;
    /// A failure ends the session.
    EndFails "C4" an_end_that_fails_ends_the_session;
    /// Only where the session has a server session of its own.
    OneBackend "C5" a_pooler_is_noticed;
    /// Code of users that runs without a statement that is run.
    Unrun "C6" code_that_runs_before_its_statement_counts;
    /// Only where all reads see one snapshot.
    Snapshot "P1" only_a_repeatable_read_is_answered_from_memory;
    /// Only what is proven to read.
    Pure "P4" only_what_is_proven_to_read_is_answered_from_memory;
    /// Nothing is kept over anything else.
    Flush "P7" nothing_is_kept_over_anything_else;
    /// What was read ahead leaves nothing behind.
    ShieldEnds "P9" a_shield_that_does_not_end_ends_the_session;
    /// Only answers in which nothing was said unasked.
    Silent "P10" an_answer_with_a_notice_is_the_servers;
    /// What is read ahead waits for no lock, and writes nothing.
    Harmless "P11" what_is_read_ahead_waits_for_no_lock;
    /// Only what was answered of late.
    Age "P14" an_answer_of_two_seconds_ago_is_read_again;
    /// The server sees that the program is there.
    Sign "P18" the_server_sees_a_program_that_is_served_from_memory;
    /// Unnamed objects are what the program believes.
    Unnamed "P22" unnamed_objects_are_what_the_program_believes;
    /// Names of the session's own that no program can guess.
    Secret "P24" the_shield_has_a_name_that_no_program_can_guess;
    /// Only what may share a trip with its Execute.
    MayShare "S1" only_what_may_run_at_once_is_described_early;
    /// The server's transaction fails before the client is told.
    BothFail "S2" a_transaction_fails_on_both_sides;
    /// Only what was said of late in the same place.
    SameKey "S3" only_what_was_said_of_late_in_the_same_place_is_told;
    /// Only names that are surely free.
    FreeName "S4" a_name_that_may_be_in_use_waits_for_the_server;
    /// Types are sent as they are told.
    PinnedTypes "S5" parameters_have_the_types_that_were_told;
    /// Only the statement's own Bind goes behind it.
    OnlyItsBind "S6" nothing_but_its_bind_goes_behind_a_statement_that_was_told;
    /// DEALLOCATE takes names away, and nothing else.
    Deallocated "S7" a_statement_that_was_taken_away_is_not_answered;
    /// The server answers it without waiting for others.
    NoWait "S8" a_parse_that_may_wait_for_a_safe_snapshot_is_not_answered;
    /// Only plain reads are read ahead.
    Plain "R1" only_a_result_that_is_proven_to_be_read_only_is_read_ahead;
    /// Only what no setting shapes.
    Shape "R2" a_result_that_settings_shape_is_not_read_ahead;
    /// Statements to which the place of a cursor matters.
    Place "R3" a_statement_that_depends_on_a_place_finds_it;
    /// Not in SERIALIZABLE.
    Serializable "R4" a_serializable_transaction_reads_what_it_asks_for;
    /// Errors ahead leave the transaction alone.
    Shield "R5" an_error_ahead_is_told_when_the_program_comes_to_it;
    /// What is kept has bounds.
    Bounds "R6" what_is_ahead_has_bounds;
    /// The program's own requests keep its transaction alive.
    Contact "R7" a_program_that_is_served_from_memory_is_not_idle;
    /// What fails unexpectedly ends the session.
    Broken "R8" a_transaction_in_another_state_ends_the_session;
    /// Only where no function knows cursors.
    Functions "R9" no_function_finds_a_cursor_further_on;
    /// Nothing was sent since that may change the session.
    Neutral "K1" only_what_nothing_may_have_changed_is_answered;
    /// A function is the server's own.
    Builtin "K2" a_function_that_may_be_a_users_waits_for_the_server;
    /// What is shown was set by the session.
    OwnSetting "K3" a_parameter_that_was_not_set_is_shown_by_the_server;
    /// The server must say what was answered.
    SameAnswer "K4" another_answer_ends_the_session;
    /// Only descriptors that read and cannot write.
    ReadOnly "L1" a_descriptor_that_may_write_reads_what_is_there;
    /// Objects are opened ahead only in a snapshot.
    Ahead "L2" only_in_repeatable_read_an_object_is_opened_ahead;
    /// Only where the transaction holds the locks of a reader.
    Lock "L3" nothing_is_read_ahead_before_the_program_has_read;
    /// Descriptors are where the program believes.
    Places "L4" descriptors_are_in_their_places_before_anything_can_tell;
    /// Nothing is known of descriptors behind anything else.
    Followed "L5" an_object_that_is_unlinked_is_gone;
    /// A descriptor has the number that was told.
    Numbers "L6" a_descriptor_of_another_number_ends_the_session;
    /// Only functions that the program may call.
    Callable "L7" a_function_that_was_not_called_is_asked_of_the_server;
    /// What fails unexpectedly ends the session.
    Expected "L8" a_close_that_fails_ends_the_session;
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

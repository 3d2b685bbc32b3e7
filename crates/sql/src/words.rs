//! Keywords: the few words the scanner acts upon.

/// A word of the text that means something here; every other word is [`Keyword::None`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keyword {
    None,
    Abort,
    Absolute,
    All,
    Alter,
    Analyze,
    And,
    Array,
    Between,
    Backward,
    Begin,
    By,
    Call,
    Case,
    Close,
    Cluster,
    Comment,
    Commit,
    Copy,
    Create,
    Chain,
    Deallocate,
    Declare,
    Default,
    Delete,
    Discard,
    Distinct,
    Do,
    Drop,
    Else,
    End,
    Except,
    Execute,
    Explain,
    False,
    Fetch,
    First,
    For,
    Forward,
    From,
    Grant,
    Having,
    Hold,
    ILike,
    In,
    Insert,
    Intersect,
    Into,
    Key,
    Last,
    Lateral,
    Like,
    Limit,
    Listen,
    Local,
    Lock,
    Merge,
    Move,
    Next,
    No,
    Not,
    Notify,
    Null,
    Offset,
    On,
    Only,
    Or,
    Prepare,
    Prepared,
    Prior,
    Relative,
    Release,
    Reset,
    Returning,
    Revoke,
    Rollback,
    Savepoint,
    Select,
    Session,
    Set,
    Share,
    Show,
    Start,
    Table,
    Then,
    Time,
    To,
    Transaction,
    True,
    Truncate,
    Union,
    Unlisten,
    Update,
    Using,
    Vacuum,
    Values,
    Verbose,
    When,
    Where,
    With,
    Zone,
    Refresh,
    Reindex,
    Checkpoint,
    Security,
    Reassign,
    Import,
}

impl Keyword {
    /// Looks a word up, in any letter case.
    pub(crate) fn of(word: &[u8]) -> Self {
        match word.len() {
            2..=8 => short(word),
            9..=11 => long(word),
            _ => Self::None,
        }
    }

    /// Whether an expression starts behind this word, so that a minus there is a sign.
    pub(crate) fn expects_operand(self) -> bool {
        use Keyword::*;
        matches!(
            self,
            All | And
                | Between
                | By
                | Case
                | Default
                | Distinct
                | Else
                | Except
                | From
                | Having
                | ILike
                | In
                | Intersect
                | Like
                | Limit
                | Not
                | Offset
                | On
                | Or
                | Returning
                | Select
                | Set
                | Then
                | To
                | Union
                | Using
                | Values
                | When
                | Where
                | For
                | Fetch
                | Move
                | Forward
                | Backward
                | Absolute
                | Relative
        )
    }
}

/// The word's letters in one number, in small case; other bytes of identifiers stay distinct from letters.
const fn packed(word: &[u8]) -> u64 {
    let mut number = 0;
    let mut at = 0;
    while at < word.len() {
        number = (number << 8) | (word[at] | 0x20) as u64;
        at += 1;
    }
    number
}

macro_rules! keywords {
    ($word:expr, $($text:literal => $keyword:ident),+ $(,)?) => {{
        #[allow(non_upper_case_globals)]
        mod texts { $(pub(super) const $keyword: u64 = super::packed($text.as_bytes());)+ }
        match packed($word) { $(texts::$keyword => Keyword::$keyword,)+ _ => Keyword::None }
    }};
}

fn short(word: &[u8]) -> Keyword {
    if word.len() == 7 && word.eq_ignore_ascii_case(b"analyse") {
        return Keyword::Analyze;
    }
    keywords!(word,
        "abort" => Abort, "absolute" => Absolute, "all" => All, "alter" => Alter, "analyze" => Analyze, "and" => And,
        "array" => Array, "between" => Between, "backward" => Backward, "begin" => Begin, "by" => By, "call" => Call,
        "case" => Case, "close" => Close, "cluster" => Cluster, "comment" => Comment, "commit" => Commit,
        "copy" => Copy, "create" => Create, "chain" => Chain, "declare" => Declare, "default" => Default,
        "delete" => Delete, "discard" => Discard, "distinct" => Distinct, "do" => Do, "drop" => Drop, "else" => Else,
        "end" => End, "except" => Except, "execute" => Execute, "explain" => Explain, "false" => False,
        "fetch" => Fetch, "first" => First, "for" => For, "forward" => Forward, "from" => From, "grant" => Grant,
        "having" => Having, "hold" => Hold, "ilike" => ILike, "import" => Import, "in" => In, "insert" => Insert,
        "into" => Into, "key" => Key, "last" => Last, "lateral" => Lateral, "like" => Like, "limit" => Limit,
        "listen" => Listen, "local" => Local, "lock" => Lock, "merge" => Merge, "move" => Move, "next" => Next,
        "no" => No, "not" => Not, "notify" => Notify, "null" => Null, "offset" => Offset, "on" => On, "only" => Only,
        "or" => Or, "prepare" => Prepare, "prepared" => Prepared, "prior" => Prior, "reassign" => Reassign,
        "refresh" => Refresh, "reindex" => Reindex, "relative" => Relative, "release" => Release, "reset" => Reset,
        "revoke" => Revoke, "rollback" => Rollback, "security" => Security, "select" => Select, "session" => Session,
        "set" => Set, "share" => Share, "show" => Show, "start" => Start, "table" => Table, "then" => Then,
        "time" => Time, "to" => To, "true" => True, "truncate" => Truncate, "union" => Union, "unlisten" => Unlisten, "update" => Update,
        "using" => Using, "vacuum" => Vacuum, "values" => Values, "verbose" => Verbose, "when" => When,
        "where" => Where, "with" => With, "zone" => Zone,
    )
}

fn long(word: &[u8]) -> Keyword {
    const LONG: [(&[u8], Keyword); 6] = [
        (b"checkpoint", Keyword::Checkpoint),
        (b"deallocate", Keyword::Deallocate),
        (b"intersect", Keyword::Intersect),
        (b"returning", Keyword::Returning),
        (b"savepoint", Keyword::Savepoint),
        (b"transaction", Keyword::Transaction),
    ];
    LONG.iter()
        .find(|(text, _)| word.eq_ignore_ascii_case(text))
        .map_or(Keyword::None, |&(_, keyword)| keyword)
}

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
    Atomic,
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
    /// Looks up the word `text[start..end]`, in any letter case.
    #[inline]
    pub(crate) fn of(text: &[u8], start: usize, end: usize) -> Self {
        match end - start {
            2..=SHORT_LEN_MAX => {
                let packed = packed(text, start, end);
                let (word, keyword) = TABLE[slot(packed)];
                if word == packed { keyword } else { Self::None }
            }
            9..=11 => long(&text[start..end]),
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
                | Then
                | To
                | Union
                | Using
                | When
                | Where
                | With
        )
    }
}

const SHORT_LEN_MAX: usize = 8;
const SMALL_LETTERS: u64 = 0x2020_2020_2020_2020;

/// A word's bytes in one number, letters in small case; other bytes of identifiers stay distinct from letters.
#[inline]
fn packed(text: &[u8], start: usize, end: usize) -> u64 {
    let mut bytes = [0; SHORT_LEN_MAX];
    match text.get(start..start + SHORT_LEN_MAX) {
        Some(window) => bytes.copy_from_slice(window),
        None => bytes[..end - start].copy_from_slice(&text[start..end]),
    }
    let beyond = 8 * (SHORT_LEN_MAX - (end - start)) as u32;
    (u64::from_le_bytes(bytes) | SMALL_LETTERS) & (u64::MAX >> beyond)
}

const TABLE_BITS: u32 = 9;

/// Where a word stands in [`TABLE`]. The factor was searched for: it puts each keyword in a slot of its own.
#[inline]
const fn slot(packed: u64) -> usize {
    (packed.wrapping_mul(0xe0cd_62e1_05af_cb03) >> (u64::BITS - TABLE_BITS)) as usize
}

static TABLE: [(u64, Keyword); 1 << TABLE_BITS] = table();

const fn table() -> [(u64, Keyword); 1 << TABLE_BITS] {
    let mut table = [(0, Keyword::None); 1 << TABLE_BITS];
    let mut index = 0;
    while index < SHORT.len() {
        let (word, keyword) = SHORT[index];
        let mut packed = 0;
        let mut at = word.len();
        while at > 0 {
            at -= 1;
            packed = (packed << 8) | word.as_bytes()[at] as u64;
        }
        assert!(table[slot(packed)].0 == 0, "two keywords share a slot: search another factor");
        table[slot(packed)] = (packed, keyword);
        index += 1;
    }
    table
}

fn long(word: &[u8]) -> Keyword {
    LONG.iter()
        .find(|(text, _)| word.eq_ignore_ascii_case(text))
        .map_or(Keyword::None, |&(_, keyword)| keyword)
}

const LONG: &[(&[u8], Keyword)] = &[
    (b"checkpoint", Keyword::Checkpoint),
    (b"deallocate", Keyword::Deallocate),
    (b"intersect", Keyword::Intersect),
    (b"returning", Keyword::Returning),
    (b"savepoint", Keyword::Savepoint),
    (b"transaction", Keyword::Transaction),
];

const SHORT: &[(&str, Keyword)] = &[
    ("abort", Keyword::Abort),
    ("absolute", Keyword::Absolute),
    ("all", Keyword::All),
    ("alter", Keyword::Alter),
    ("analyse", Keyword::Analyze),
    ("analyze", Keyword::Analyze),
    ("and", Keyword::And),
    ("array", Keyword::Array),
    ("atomic", Keyword::Atomic),
    ("backward", Keyword::Backward),
    ("begin", Keyword::Begin),
    ("between", Keyword::Between),
    ("by", Keyword::By),
    ("call", Keyword::Call),
    ("case", Keyword::Case),
    ("chain", Keyword::Chain),
    ("close", Keyword::Close),
    ("cluster", Keyword::Cluster),
    ("comment", Keyword::Comment),
    ("commit", Keyword::Commit),
    ("copy", Keyword::Copy),
    ("create", Keyword::Create),
    ("declare", Keyword::Declare),
    ("default", Keyword::Default),
    ("delete", Keyword::Delete),
    ("discard", Keyword::Discard),
    ("distinct", Keyword::Distinct),
    ("do", Keyword::Do),
    ("drop", Keyword::Drop),
    ("else", Keyword::Else),
    ("end", Keyword::End),
    ("except", Keyword::Except),
    ("execute", Keyword::Execute),
    ("explain", Keyword::Explain),
    ("false", Keyword::False),
    ("fetch", Keyword::Fetch),
    ("first", Keyword::First),
    ("for", Keyword::For),
    ("forward", Keyword::Forward),
    ("from", Keyword::From),
    ("grant", Keyword::Grant),
    ("having", Keyword::Having),
    ("hold", Keyword::Hold),
    ("ilike", Keyword::ILike),
    ("import", Keyword::Import),
    ("in", Keyword::In),
    ("insert", Keyword::Insert),
    ("into", Keyword::Into),
    ("key", Keyword::Key),
    ("last", Keyword::Last),
    ("lateral", Keyword::Lateral),
    ("like", Keyword::Like),
    ("limit", Keyword::Limit),
    ("listen", Keyword::Listen),
    ("local", Keyword::Local),
    ("lock", Keyword::Lock),
    ("merge", Keyword::Merge),
    ("move", Keyword::Move),
    ("next", Keyword::Next),
    ("no", Keyword::No),
    ("not", Keyword::Not),
    ("notify", Keyword::Notify),
    ("null", Keyword::Null),
    ("offset", Keyword::Offset),
    ("on", Keyword::On),
    ("only", Keyword::Only),
    ("or", Keyword::Or),
    ("prepare", Keyword::Prepare),
    ("prepared", Keyword::Prepared),
    ("prior", Keyword::Prior),
    ("reassign", Keyword::Reassign),
    ("refresh", Keyword::Refresh),
    ("reindex", Keyword::Reindex),
    ("relative", Keyword::Relative),
    ("release", Keyword::Release),
    ("reset", Keyword::Reset),
    ("revoke", Keyword::Revoke),
    ("rollback", Keyword::Rollback),
    ("security", Keyword::Security),
    ("select", Keyword::Select),
    ("session", Keyword::Session),
    ("set", Keyword::Set),
    ("share", Keyword::Share),
    ("show", Keyword::Show),
    ("start", Keyword::Start),
    ("table", Keyword::Table),
    ("then", Keyword::Then),
    ("time", Keyword::Time),
    ("to", Keyword::To),
    ("true", Keyword::True),
    ("truncate", Keyword::Truncate),
    ("union", Keyword::Union),
    ("unlisten", Keyword::Unlisten),
    ("update", Keyword::Update),
    ("using", Keyword::Using),
    ("vacuum", Keyword::Vacuum),
    ("values", Keyword::Values),
    ("verbose", Keyword::Verbose),
    ("when", Keyword::When),
    ("where", Keyword::Where),
    ("with", Keyword::With),
    ("zone", Keyword::Zone),
];

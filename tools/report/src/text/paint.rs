use crate::clean::wrap;

/// Whether terminal text is coloured: the caller looks at the terminal and at `NO_COLOR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// Characters only.
    #[default]
    Plain,
    /// With SGR sequences for bold, dim, red, green and yellow.
    Colored,
}

/// Where terminal text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Whether it is coloured.
    pub style: Style,
    width: usize,
}

impl Screen {
    /// Columns of a file, or of a terminal that does not tell.
    const WIDTH: usize = 100;
    /// Fewest and most columns that are made use of.
    const WIDTHS: std::ops::RangeInclusive<usize> = 60..=200;

    /// A screen of so many columns, as far as they are made use of: 60 to 200. `None` where that is not known.
    pub fn new(style: Style, columns: Option<usize>) -> Self {
        let width = columns.unwrap_or(Self::WIDTH).clamp(*Self::WIDTHS.start(), *Self::WIDTHS.end());
        Self { style, width }
    }

    /// Longest line, in columns.
    pub(super) fn width(self) -> usize {
        self.width
    }

    /// Running text in lines that fit and are easy to read: 100 columns at most. Each keeps the indentation of the first, and
    /// those after it have `hanging` blanks more.
    pub fn wrapped(self, text: &str, hanging: usize) -> String {
        let indent = text.chars().take_while(|character| *character == ' ').count();
        let room = self.width.min(Self::WIDTH).saturating_sub(indent + hanging).max(1);
        let lines = wrap(text, room, usize::MAX);
        let rest = format!("\n{}", " ".repeat(indent + hanging));
        format!("{}{}", " ".repeat(indent), lines.join(&rest))
    }
}

impl From<Style> for Screen {
    fn from(style: Style) -> Self {
        Self::new(style, None)
    }
}

impl Style {
    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(super) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(super) fn mark(self, text: &str) -> String {
        self.paint("33", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colored if text.is_empty() => String::new(),
            Self::Colored => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

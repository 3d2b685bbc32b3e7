//! Tags in comments: what Django, SQLAlchemy, Rails and others write to say where a statement comes from.
//!
//! Two forms are read, also mixed: `key='url-encoded value'` with backslash escapes, as
//! [sqlcommenter](https://google.github.io/sqlcommenter/spec/) has it, and `key:value` as marginalia has it.
//! Comments by people give tags too if they look like that; callers pick the keys they know.

/// Most tags that are read from one comment.
pub const TAGS_PER_COMMENT_MAX: usize = 32;

/// Longest comment that is read, in bytes; of longer ones the first part.
pub const COMMENT_BYTES_MAX: usize = 4_096;

/// Part of a tag as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagText<'a> {
    bytes: &'a [u8],
    encoded: bool,
}

impl<'a> TagText<'a> {
    /// The bytes as written, without quotes.
    pub fn as_written(self) -> &'a [u8] {
        self.bytes
    }

    /// The decoded bytes: borrowed where nothing needs decoding, else in `scratch`, whose contents are replaced.
    pub fn decode<'s>(self, scratch: &'s mut Vec<u8>) -> &'s [u8]
    where
        'a: 's,
    {
        if !self.encoded || memchr::memchr2(b'%', b'\\', self.bytes).is_none() {
            return self.bytes;
        }
        scratch.clear();
        let mut at = 0;
        while let Some(&byte) = self.bytes.get(at) {
            let (decoded, len) = match byte {
                b'%' => percent(&self.bytes[at..]).unwrap_or((b'%', 1)),
                b'\\' => self.bytes.get(at + 1).map_or((b'\\', 1), |&escaped| (escaped, 2)),
                _ => (byte, 1),
            };
            scratch.push(decoded);
            at += len;
        }
        scratch
    }
}

/// Decodes `%2F`, or `%%2F` as drivers leave it that doubled the sign for parameter markers.
fn percent(bytes: &[u8]) -> Option<(u8, usize)> {
    let signs = if bytes.get(1) == Some(&b'%') { 2 } else { 1 };
    let digit = |at: usize| bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let code = digit(signs)? * 16 + digit(signs + 1)?;
    Some((code as u8, signs + 2))
}

/// The tags of one comment body, in order.
pub fn tags(comment: &[u8]) -> TagIterator<'_> {
    let rest = comment.get(..COMMENT_BYTES_MAX).unwrap_or(comment);
    TagIterator { rest, left: TAGS_PER_COMMENT_MAX }
}

/// Iterator of [`tags`]: keys with values.
#[derive(Clone, Debug)]
pub struct TagIterator<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for TagIterator<'a> {
    type Item = (TagText<'a>, TagText<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 && !self.rest.is_empty() {
            self.left -= 1;
            let separator = memchr::memchr3(b'=', b':', b',', self.rest)?;
            let key = self.rest[..separator].trim_ascii();
            let behind = &self.rest[separator + 1..];
            if self.rest[separator] == b',' {
                self.rest = behind;
                continue;
            }
            let (value, rest) = value(behind);
            self.rest = rest;
            if is_key(key) {
                return Some((TagText { bytes: key, encoded: true }, value));
            }
        }
        None
    }
}

fn is_key(key: &[u8]) -> bool {
    let is_key_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.%~".contains(byte);
    !key.is_empty() && key.iter().all(is_key_byte)
}

/// Takes a value and the comma behind it.
fn value(text: &[u8]) -> (TagText<'_>, &[u8]) {
    let text = text.trim_ascii_start();
    let Some(inside) = text.strip_prefix(b"'") else {
        let end = memchr::memchr(b',', text).unwrap_or(text.len());
        let rest = text.get(end + 1..).unwrap_or_default();
        return (TagText { bytes: text[..end].trim_ascii(), encoded: false }, rest);
    };
    let mut end = 0;
    while let Some(&byte) = inside.get(end) {
        match byte {
            b'\'' => break,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    let end = end.min(inside.len());
    let behind = &inside[end..];
    let rest = memchr::memchr(b',', behind).map_or(&[][..], |comma| &behind[comma + 1..]);
    (TagText { bytes: &inside[..end], encoded: true }, rest)
}

/// What a `traceparent` says about the request: its trace id, which all spans of one request share
/// ([W3C Trace Context](https://www.w3.org/TR/trace-context/#traceparent-header)). A text of another form counts as a
/// whole; `None` for the trace id of zeros, which means none.
pub fn trace_of(traceparent: &[u8]) -> Option<&[u8]> {
    let mut fields = traceparent.trim_ascii().split(|byte| *byte == b'-');
    let is_hex =
        |field: &[u8], length: usize| field.len() == length && field.iter().all(u8::is_ascii_hexdigit);
    match (fields.next(), fields.next(), fields.next()) {
        (Some(version), Some(trace), Some(span))
            if is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) =>
        {
            trace.iter().any(|digit| *digit != b'0').then_some(trace)
        }
        _ => Some(traceparent),
    }
}

/// The tags that say where a statement comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags<'a> {
    /// `route`.
    pub route: Option<TagText<'a>>,
    /// `controller`.
    pub controller: Option<TagText<'a>>,
    /// `action`.
    pub action: Option<TagText<'a>>,
    /// `traceparent`, as W3C Trace Context has it.
    pub traceparent: Option<TagText<'a>>,
    /// `db_driver`.
    pub db_driver: Option<TagText<'a>>,
    /// `framework`.
    pub framework: Option<TagText<'a>>,
    /// `application`, also `app_name`.
    pub application: Option<TagText<'a>>,
}

impl<'a> Tags<'a> {
    /// Picks the known tags out of the comments; the first of each counts.
    pub fn find(comments: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut found = Self::default();
        for (key, value) in comments.into_iter().flat_map(tags) {
            let place = match key.as_written() {
                b"route" => &mut found.route,
                b"controller" => &mut found.controller,
                b"action" => &mut found.action,
                b"traceparent" => &mut found.traceparent,
                b"db_driver" => &mut found.db_driver,
                b"framework" => &mut found.framework,
                b"application" | b"app_name" => &mut found.application,
                _ => continue,
            };
            place.get_or_insert(value);
        }
        found
    }

    /// Whether no known tag was found.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

use serde::Deserialize;

use super::{Code, Finding};

/// Findings that their owner has looked at and does not want to see again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mutes {
    rules: Vec<MuteRule>,
}

/// One rule: a finding is muted if all that the rule names fits. At least one of the three is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MuteRule {
    /// The finding's code.
    pub code: Option<String>,
    /// A part of one of its statements, as the report prints them; letter case does not matter.
    pub statement: Option<String>,
    /// One of its scopes, whole.
    pub scope: Option<String>,
    /// Why: for the reader of the file.
    pub why: Option<String>,
}

/// The file of mute rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MuteError {
    /// Not the expected TOML.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// A rule would mute everything.
    #[error("mute rule {0} names neither code, statement nor scope and would mute everything")]
    Empty(usize),
    /// A rule names a code that does not exist.
    #[error("mute rule {number}: {source}")]
    Code {
        /// Which rule, counted from one.
        number: usize,
        /// What is wrong with it.
        source: super::code::UnknownCode,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MuteFile {
    #[serde(default)]
    mute: Vec<MuteRule>,
}

impl Mutes {
    /// Reads rules: a TOML file of `[[mute]]` tables with `code`, `statement`, `scope` and `why`.
    pub fn parse(text: &str) -> Result<Self, MuteError> {
        let rules = toml::from_str::<MuteFile>(text)?.mute;
        for (number, rule) in (1..).zip(&rules) {
            if rule.code.is_none() && rule.statement.is_none() && rule.scope.is_none() {
                return Err(MuteError::Empty(number));
            }
            if let Some(code) = &rule.code {
                code.parse::<Code>().map_err(|source| MuteError::Code { number, source })?;
            }
        }
        Ok(Self { rules })
    }

    /// Whether some rule mutes `finding`.
    pub fn mutes(&self, finding: &Finding) -> bool {
        self.rules.iter().any(|rule| rule.fits(finding))
    }
}

impl MuteRule {
    fn fits(&self, finding: &Finding) -> bool {
        let contains = |part: &str| {
            let part = part.to_lowercase();
            finding.statements.iter().any(|statement| statement.to_lowercase().contains(&part))
        };
        self.code.as_deref().is_none_or(|code| code.eq_ignore_ascii_case(finding.code.as_str()))
            && self.statement.as_deref().is_none_or(contains)
            && self.scope.as_ref().is_none_or(|scope| finding.scopes.contains(scope))
    }
}

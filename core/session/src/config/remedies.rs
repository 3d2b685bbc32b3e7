//! Which remedies are on.

use std::str::FromStr;

use onetrip_ledger::{Remedy, UnknownRemedy};

/// The remedies that are on; none by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remedies {
    /// One bit for each.
    on: u8,
}

const _: () = assert!(Remedy::ALL.len() <= u8::BITS as usize);

impl Remedies {
    /// Every remedy under which a program cannot tell the difference; as long as there are no others, all.
    pub fn exact() -> Self {
        Remedy::ALL.into_iter().collect()
    }

    /// Whether all are off.
    pub fn is_none(&self) -> bool {
        self.on == 0
    }

    /// Whether this one is on.
    pub fn has(&self, remedy: Remedy) -> bool {
        self.on & bit(remedy) != 0
    }
}

const fn bit(remedy: Remedy) -> u8 {
    1 << remedy as u8
}

impl FromIterator<Remedy> for Remedies {
    fn from_iter<I: IntoIterator<Item = Remedy>>(remedies: I) -> Self {
        Self { on: remedies.into_iter().fold(0, |on, remedy| on | bit(remedy)) }
    }
}

/// What `--remedies` takes: a tier, then remedies to leave out or to add, such as `exact,-begin` or `none,+begin`.
///
/// # Errors
///
/// A text that starts with no tier, or names a remedy that is not there.
impl FromStr for Remedies {
    type Err = BadRemedies;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(',');
        let mut remedies = match parts.next() {
            Some("exact") => Self::exact(),
            Some("none") => Self::default(),
            other => return Err(BadRemedies::Tier(other.unwrap_or_default().to_owned())),
        };
        for part in parts {
            let (is_added, name) = match (part.strip_prefix('+'), part.strip_prefix('-')) {
                (Some(name), _) => (true, name),
                (None, Some(name)) => (false, name),
                (None, None) => return Err(BadRemedies::Part(part.to_owned())),
            };
            let named: Remedy = name.parse()?;
            match is_added {
                true => remedies.on |= bit(named),
                false => remedies.on &= !bit(named),
            }
        }
        Ok(remedies)
    }
}

/// The text says no remedies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRemedies {
    /// It starts with no tier.
    #[error("{0:?} is not a value of --remedies; write exact or none. exact,-begin leaves one remedy out")]
    Tier(String),
    /// What follows the tier neither leaves out nor adds.
    #[error("{0:?}: a remedy is left out by exact,-begin and added by none,+begin")]
    Part(String),
    /// No remedy has that name.
    #[error(transparent)]
    Remedy(#[from] UnknownRemedy),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_and_what_is_left_out_of_it() {
        assert_eq!("exact".parse(), Ok(Remedies::exact()));
        assert!("none,+cursors".parse::<Remedies>().unwrap().has(Remedy::Cursors));
        let without: Remedies = "exact,-begin".parse().unwrap();
        let is_left = |one: Remedy| one != Remedy::Begin && Remedies::exact().has(one);
        assert!(Remedy::ALL.iter().all(|one| without.has(*one) == is_left(*one)));
        assert_eq!("none".parse(), Ok(Remedies::default()));
        for bad in ["", "begin", "exact,begin", "exact,-commits", "exact,"] {
            assert!(bad.parse::<Remedies>().is_err(), "{bad}");
        }
    }
}

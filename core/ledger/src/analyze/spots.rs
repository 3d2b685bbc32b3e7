//! The exchanges of a pattern by which the lines of the program are found.

use smallvec::SmallVec;

use crate::findings::{Finding, Spot};

/// At most [`Finding::SPOTS_MAX`]; further ones are left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Spots(SmallVec<[Spot; 1]>);

impl Spots {
    pub(super) fn add(&mut self, spot: Spot) {
        if self.0.len() < Finding::SPOTS_MAX {
            self.0.push(spot);
        }
    }

    /// Takes out an exchange that has become another pattern's.
    pub(super) fn remove(&mut self, spot: Spot) {
        self.0.retain(|other| *other != spot);
    }

    pub(super) fn to_vec(&self) -> Vec<Spot> {
        self.0.to_vec()
    }
}

impl Extend<Spot> for Spots {
    fn extend<I: IntoIterator<Item = Spot>>(&mut self, spots: I) {
        spots.into_iter().for_each(|spot| self.add(spot));
    }
}

impl FromIterator<Spot> for Spots {
    fn from_iter<I: IntoIterator<Item = Spot>>(spots: I) -> Self {
        let mut all = Self::default();
        all.extend(spots);
        all
    }
}

impl IntoIterator for Spots {
    type Item = Spot;
    type IntoIter = smallvec::IntoIter<[Spot; 1]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl From<Spot> for Spots {
    fn from(spot: Spot) -> Self {
        Self(SmallVec::from([spot]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Moment;

    fn spot(number: u64) -> Spot {
        Spot { opened_at: Moment(0), sent_at: Moment(number) }
    }

    #[test]
    fn there_are_so_many_and_what_is_taken_out_makes_room() {
        let most = Finding::SPOTS_MAX as u64;
        let mut spots: Spots = (0..most + 5).map(spot).collect();
        assert_eq!(spots.to_vec(), (0..most).map(spot).collect::<Vec<_>>());
        spots.remove(spot(0));
        spots.extend([spot(most), spot(most + 1)]);
        assert_eq!(spots.to_vec(), (1..=most).map(spot).collect::<Vec<_>>());
    }
}

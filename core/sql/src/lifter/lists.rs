//! Lists whose length must not show: `IN (…)`, `ARRAY[…]` and the rows of `VALUES`.
//!
//! An element may have the same shape as the one kept before it: literals, parameters, NULL, TRUE and FALSE all count as
//! the same. Such an element is taken back out of the template, and `, ...` is written once in its place.

use super::{Found, Parameter};
use crate::template::Template;

/// The state of a pass, to go back to when an element is dropped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    pub(crate) template: usize,
    pub(crate) atoms: usize,
    pub(crate) literals: usize,
    pub(crate) parameters: usize,
    pub(crate) shifts: usize,
    pub(crate) next_number: u32,
    pub(crate) source_max: u32,
    pub(crate) number_max: u32,
}

/// Something in the template that stands for a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Atom {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The n of its `$n`; zero for a word such as NULL.
    pub(crate) number: u32,
    /// The number the next literal would have got here; for a literal its own.
    pub(crate) literal_number: u32,
    /// Index of the parameter it is, if it is one.
    pub(crate) parameter: Option<u32>,
}

/// An open list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) depth: u32,
    /// Rows of `VALUES`, not elements inside one pair of parentheses.
    pub(crate) is_rows: bool,
    /// Where the element at hand began.
    pub(crate) element: Mark,
    kept_start: usize,
    kept_end: usize,
    kept_atoms_start: usize,
    kept_atoms_end: usize,
    /// Length of the template behind `, ...`, once that is written behind the kept element.
    tail: Option<usize>,
}

impl List {
    pub(crate) fn new(depth: u32, is_rows: bool, element: Mark) -> Self {
        Self {
            depth,
            is_rows,
            element,
            kept_start: 0,
            kept_end: 0,
            kept_atoms_start: 0,
            kept_atoms_end: 0,
            tail: None,
        }
    }

    /// Whether the element that ends here looks like the one kept before it.
    pub(crate) fn repeats(&self, template: &[u8], atoms: &[Atom]) -> bool {
        let kept_atoms = &atoms[self.kept_atoms_start..self.kept_atoms_end];
        let new_atoms = &atoms[self.element.atoms..];
        if kept_atoms.is_empty() || kept_atoms.len() != new_atoms.len() {
            return false;
        }
        let mut kept_at = behind_blank(template, self.kept_start);
        let mut new_at = behind_blank(template, self.element.template);
        for (kept, new) in kept_atoms.iter().zip(new_atoms) {
            if template.get(kept_at..kept.start) != template.get(new_at..new.start) {
                return false;
            }
            kept_at = kept.end;
            new_at = new.end;
        }
        template.get(kept_at..self.kept_end) == template.get(new_at..)
    }

    /// The element that ends here stays and is what the next ones are compared with.
    pub(crate) fn keep(&mut self, template_len: usize, atoms_len: usize) {
        self.kept_start = self.element.template;
        self.kept_end = template_len;
        self.kept_atoms_start = self.element.atoms;
        self.kept_atoms_end = atoms_len;
        self.tail = None;
    }

    /// Takes the element that ends here out of the template. Gives the template's new length.
    pub(crate) fn drop_element(&mut self, template: &mut Template, text: &[u8], at: usize) -> usize {
        match self.tail {
            Some(tail) => template.truncate(text, tail, at),
            None => {
                template.truncate(text, self.kept_end, at);
                template.push(text, REPEATED_MARK, at);
                self.tail = Some(template.len());
            }
        }
        template.len()
    }

    /// Gives the values of an element about to be dropped the numbers of their places in the kept one.
    pub(crate) fn renumber(&self, atoms: &[Atom], literals: &mut [Found], parameters: &mut [Parameter]) {
        let kept = &atoms[self.kept_atoms_start..self.kept_atoms_end];
        let new = &atoms[self.element.atoms..];
        for literal in literals.iter_mut().skip(self.element.literals) {
            literal.number = place_of(literal.number, self.element.next_number, new)
                .and_then(|place| kept.get(place))
                .map_or(0, |atom| atom.number);
        }
        for parameter in parameters.iter_mut().skip(self.element.parameters) {
            parameter.number = 0;
        }
        for (kept, new) in kept.iter().zip(new) {
            if let Some(parameter) = new.parameter.and_then(|index| parameters.get_mut(index as usize)) {
                parameter.number = kept.number;
            }
        }
    }
}

/// Which atom of an element, whose literals are numbered from `first`, has this number.
fn place_of(number: u32, first: u32, atoms: &[Atom]) -> Option<usize> {
    let guess = number.checked_sub(first)? as usize;
    if atoms.get(guess).is_some_and(|atom| atom.number == number) {
        return Some(guess);
    }
    let place = atoms.partition_point(|atom| atom.literal_number <= number).checked_sub(1)?;
    (atoms[place].number == number).then_some(place)
}

fn behind_blank(template: &[u8], at: usize) -> usize {
    at + usize::from(template.get(at) == Some(&b' '))
}

/// What stands for further elements of the shape before it.
const REPEATED_MARK: &[u8] = b", ...";

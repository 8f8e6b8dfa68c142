//! Names of stages and their numbers. A name keeps its number for the life of the bus, so a route
//! stays good when its stage is closed and opened again.

use std::collections::HashMap;

use super::error::BusError;
use crate::envelope::Route;

/// The names one bus knows; at most 65,535.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    numbers: HashMap<Box<str>, u16>,
    names: Vec<Box<str>>,
}

impl Registry {
    /// The number of a name, made on first use.
    pub(crate) fn intern(&mut self, bus: u16, name: &str) -> Result<Route, BusError> {
        if let Some(&index) = self.numbers.get(name) {
            return Ok(Route::new(bus, index));
        }
        if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
            return Err(BusError::BadName(name.to_owned()));
        }
        let index = u16::try_from(self.names.len())
            .ok()
            .filter(|&index| index < u16::MAX)
            .ok_or(BusError::TooManyNames)?;
        self.numbers.insert(name.into(), index);
        self.names.push(name.into());
        Ok(Route::new(bus, index))
    }

    /// The number of a known name.
    pub(crate) fn find(&self, bus: u16, name: &str) -> Option<Route> {
        self.numbers.get(name).map(|&index| Route::new(bus, index))
    }

    /// The name behind a route.
    pub(crate) fn name(&self, route: Route) -> Option<&str> {
        self.names.get(usize::from(route.index())).map(|name| &**name)
    }
}

/// The name among `known` that is most like `name`, if any is alike enough to suggest.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

/// Levenshtein's edit distance (Wagner and Fischer 1974), by bytes.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, a) in left.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, b) in right.bytes().enumerate() {
            let cost = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = cost.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

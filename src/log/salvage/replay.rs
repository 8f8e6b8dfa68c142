//! Folds entries as far as they fit, and keeps account of what is not certain.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::source::Source;
use super::{Hole, Salvaged};
use crate::envelope::EnvelopeId;
use crate::log::entry::{Entry, EntryNumber, Original, entries, ids};
use crate::log::fold::fold;
use crate::log::frame::{Kind, Record};
use crate::log::segment::Location;
use crate::log::state::{Counts, Place, State};

/// A state in the making, with what is not certain of it.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) state: State,
    /// Open envelopes that may have ended in a hole.
    pub(super) uncertain: HashSet<EnvelopeId>,
    /// Dead letters that may have been dealt with in a hole.
    pub(super) uncertain_letters: BTreeSet<EntryNumber>,
    /// Envelopes of which too little can be read, and by which entry that showed.
    pub(super) lost: BTreeMap<EnvelopeId, EntryNumber>,
    pub(super) report: Salvaged,
    /// The envelopes of records that could not be followed.
    named: HashSet<EnvelopeId>,
}

impl Replay {
    pub(super) fn new(source: &Source) -> Self {
        Self {
            state: State::default(),
            uncertain: HashSet::new(),
            uncertain_letters: BTreeSet::new(),
            lost: BTreeMap::new(),
            report: source.report(),
            named: HashSet::new(),
        }
    }

    /// Begins with the state of a checkpoint.
    pub(super) fn begin(&mut self, state: State) {
        self.state = state;
        self.report.has_checkpoint = true;
    }

    /// Records are missing here: what is open or dead may be otherwise from here on.
    pub(super) fn hole(&mut self, hole: Hole) {
        self.report.note(hole);
        self.report.is_behind = true;
        self.uncertain.extend(self.state.open.keys());
        self.uncertain_letters.extend(self.state.letters.keys());
    }

    /// Plays one record.
    pub(super) fn record(&mut self, location: Location, record: &Record<'_>) {
        if record.stamp.kind != Kind::Entries {
            return;
        }
        let sequence = record.stamp.sequence;
        let body = record.body();
        for (index, entry) in (0..).zip(entries(&body)) {
            let Ok(entry) = entry else {
                // Whole bytes that say nothing: as good as missing.
                self.hole(Hole { location, first: sequence, last: Some(sequence) });
                ids(&body).skip(index as usize).for_each(|id| self.unfit(id, sequence));
                return;
            };
            let number = EntryNumber { sequence, index };
            self.entry(Place { number, location }, &entry);
        }
    }

    fn entry(&mut self, place: Place, entry: &Entry<'_>) {
        let id = entry.id();
        if fold(&mut self.state, place, entry).is_err() {
            self.report.mended += 1;
            self.unfit(id, place.number.sequence);
            self.mend(place, entry);
            self.state.last = Some(place);
        } else if let Entry::Dead { .. } = entry
            && self.uncertain.contains(&id)
        {
            // Where it stood when it died is not certain.
            self.uncertain_letters.insert(place.number);
        }
        match entry {
            // What came in or went on behind the hole is known from there.
            Entry::Accept { .. } | Entry::Redriven { .. } if self.state.open.contains_key(&id) => {
                self.uncertain.remove(&id);
                self.lost.remove(&id);
            }
            Entry::Completed { .. } | Entry::Expired { .. } | Entry::Handled { .. } => {
                self.lost.remove(&id);
            }
            Entry::Hop { .. } | Entry::Copy { of: Original::Open(_), .. } if self.is_known(id) => {
                self.uncertain.remove(&id);
            }
            Entry::Copy { of: Original::Dead(number), .. } => {
                self.uncertain_letters.remove(number);
            }
            _ => {}
        }
        if !self.state.open.contains_key(&id) {
            self.uncertain.remove(&id);
        }
    }

    /// Notes an envelope whose record could not be followed.
    fn unfit(&mut self, id: EnvelopeId, sequence: u64) {
        if !id.is_nil() && self.named.insert(id) {
            self.report.unfit.push((id, sequence));
        }
    }

    /// Whether an envelope came in by an entry that was read.
    fn is_known(&self, id: EnvelopeId) -> bool {
        self.state.open.contains_key(&id) && !self.report.uncertain.contains(&id)
    }

    /// Makes the counts add up again.
    pub(super) fn balance(&mut self) {
        let letters = self.state.letters.len() as u64;
        let open = self.state.open.len() as u64;
        let Counts { completed, expired, redriven, purged, duplicates, .. } = self.state.counts;
        let dead = redriven + purged + duplicates + letters;
        self.state.counts.dead = dead;
        self.state.counts.accepted = completed + expired + dead + open - redriven;
    }
}

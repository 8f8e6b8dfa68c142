//! Invents records: mostly what may come next, sometimes what must not.

use super::Random;
use super::story::{Account, Life, Look};
use crate::envelope::EnvelopeId;
use crate::envelope::codec::Parts;
use crate::log::entry::{CauseCode, DurableLevel, Entry, EntryKind, EntryNumber, Original, Sink};

impl Account {
    /// A record of one to four entries.
    pub(super) fn invent(&self, random: &mut Random) -> Vec<u8> {
        let mut body = Vec::new();
        for _ in 0..[1, 1, 1, 2, 4][random.below(5)] {
            self.invent_entry(random, &mut body);
        }
        body
    }

    fn invent_entry(&self, random: &mut Random, body: &mut Vec<u8>) {
        let likely = [0, 0, 0, 1, 1, 2, 3, 3, 5, 8].get(random.below(24)).copied();
        let kind = EntryKind::ALL[likely.unwrap_or_else(|| random.below(EntryKind::ALL.len()))];
        let is_letter = |life: &&(EnvelopeId, Life)| matches!(life.1, Life::Dead(..));
        let mut letters: Vec<_> = self.lives.values().filter(is_letter).collect();
        if kind == EntryKind::Duplicate && random.below(4) > 0 {
            letters.retain(|life| self.remembered.contains(&life.0));
        }
        let letter = (!letters.is_empty()).then(|| letters[random.below(letters.len())].clone());
        let is_of_letter = match kind {
            EntryKind::Redriven | EntryKind::Purged | EntryKind::Duplicate => true,
            EntryKind::Copy => random.below(2) == 0,
            _ => false,
        };
        let mut id = EnvelopeId::from_u128(random.below(12) as u128);
        if kind == EntryKind::Accept
            && let Some((dead, _)) = &letter
            && random.below(2) == 0
        {
            // While the letter waits its id may come in anew.
            id = *dead;
        }
        let subject = match letter {
            Some((id, Life::Dead(by, look))) if is_of_letter => (id, by, Some(look)),
            _ => {
                let (born, look) = self.running(id).unzip();
                (id, born.unwrap_or_default(), look)
            }
        };
        let stage = format!("stage-{}", random.below(3));
        let payload = vec![7; random.below(90)];
        let mut envelope = wire_form(random, kind, subject.0, subject.2.as_ref());
        if let Some(current) = &mut envelope.current
            && kind != EntryKind::Copy
        {
            *current = &stage;
        }
        envelope.payload = envelope.payload.map(|_| &*payload);
        let attempts = subject.2.as_ref().map_or(0, |look| look.attempts);
        let attempts = attempts + u16::from(random.below(30) != 0);
        let number = random.next();
        Self::entry(kind, (subject.0, subject.1, is_of_letter), envelope, (attempts, number))
            .encode(body)
            .expect("all of it is short");
    }

    /// An entry of this kind about `(id, letter or birth, whether that is a letter)`.
    fn entry<'a>(
        kind: EntryKind,
        (id, by, is_of_letter): (EnvelopeId, EntryNumber, bool),
        envelope: Parts<'a>,
        (attempts, number): (u16, u64),
    ) -> Entry<'a> {
        let lot = usize::from(number.to_le_bytes()[0]);
        let name = ["a", "a longer name", "b"][lot % 3];
        let value = envelope.current.unwrap_or_default().as_bytes();
        match kind {
            EntryKind::Accept => {
                let level = [DurableLevel::AtLeastOnce, DurableLevel::ExactlyOnce][lot % 2];
                Entry::Accept { level, envelope }
            }
            EntryKind::Hop => Entry::Hop { envelope },
            EntryKind::Attempt => Entry::Attempt { id, attempts, due_ms: number },
            EntryKind::Completed => Entry::Completed { id },
            EntryKind::Expired => Entry::Expired { id },
            EntryKind::Dead => {
                let cause = CauseCode::ALL[lot % 7];
                Entry::Dead { id, at_ms: number, attempts, cause, reason: name }
            }
            EntryKind::Redriven => Entry::Redriven { letter: by, envelope },
            EntryKind::Purged => Entry::Purged { letter: by, id },
            EntryKind::Duplicate => Entry::Duplicate { letter: by, id },
            EntryKind::State => Entry::State { name, value },
            EntryKind::Source => Entry::Source { name, value },
            EntryKind::Sink => {
                let sink =
                    Sink { device: 1, inode: number, length: number, added: 0, checksum: number };
                Entry::Sink { name: name.as_bytes(), sink }
            }
            EntryKind::Copy if is_of_letter => Entry::Copy { of: Original::Dead(by), envelope },
            EntryKind::Copy => Entry::Copy { of: Original::Open(by), envelope },
            EntryKind::Handled => Entry::Handled { id },
            EntryKind::Window => Entry::Window { count: u32::from(number.to_le_bytes()[1] % 12) },
        }
    }
}

/// What the entry would have to say, and now and then something else.
fn wire_form<'a>(
    random: &mut Random,
    kind: EntryKind,
    id: EnvelopeId,
    look: Option<&'a Look>,
) -> Parts<'a> {
    let (is_hop, is_copy) = (kind == EntryKind::Hop, kind == EntryKind::Copy);
    let may_have_new_body = is_hop || kind == EntryKind::Redriven;
    let has_new_body = may_have_new_body && random.below(3) == 0;
    let has_body = is_copy || kind == EntryKind::Accept || has_new_body;
    let mut wrong = |bound| random.below(bound) == 0;
    let attempts = look.filter(|_| is_copy).map_or(0, |look| look.attempts);
    let (hops, version) = look.map_or((1, 1), |look| (look.hops, look.version));
    Parts {
        hops: hops + u32::from(is_hop) + u32::from(wrong(30)),
        body_version: version + u32::from(has_new_body) + u32::from(wrong(30)),
        attempts: attempts + u16::from(wrong(30)),
        current: (!wrong(30)).then_some(look.map_or("stage-1", |look| &look.stage)),
        payload: (has_body != wrong(40)).then_some(b""),
        ..Parts::new(id)
    }
}

//! What may happen to the files of a log behind everybody's back.

use super::live::Live;
use super::*;

/// A log with a history: entries, checkpoints whole or given up, removed segments, reopenings.
pub(super) fn history(seed: u64) -> Live {
    let mut live = Live::new(seed);
    for _ in 0..live.random.below(7) + 1 {
        let count = live.random.below(14);
        live.some_entries(count).unwrap();
        match live.random.below(6) {
            0 => drop(live.checkpoint(false).unwrap()),
            1 | 2 => {
                let segment = live.tail.segment();
                if live.random.below(2) == 0 {
                    live.copy_below(segment).unwrap();
                }
                let end = live.checkpoint(true).unwrap().expect("it is whole");
                let numbers = names(&live.disk);
                if live.random.below(2) == 0 {
                    for name in numbers {
                        let number = crate::log::segment::number(&name);
                        if number.is_some_and(|number| number < end.lowest) {
                            live.disk.remove(&name).unwrap();
                        }
                    }
                }
            }
            3 => live.tail.flush().unwrap(),
            4 => {
                let seed = live.random.next();
                live.tail.flush().unwrap();
                live = live.on(live.disk.clone(), seed).unwrap();
            }
            _ => {}
        }
    }
    let count = live.random.below(10);
    live.some_entries(count).unwrap();
    if live.random.below(3) > 0 {
        live.tail.flush().unwrap();
        live.record(Kind::Mark, &[]).unwrap();
    }
    live
}

/// One mishap, and what it was.
pub(super) fn mishap(disk: &SimulatedDisk, random: &mut Random) -> String {
    let all = names(disk);
    let name = &all[random.below(all.len())];
    let length = disk.contents(name).len();
    // Most of a segment is zeros behind the end.
    let bound = [length / 4, length / 2, length][random.below(3)];
    let place = random.below(bound.max(1));
    match random.below(9) {
        _ if length < 64 => {}
        0 | 1 => disk.tamper(name, |bytes| bytes[place] ^= 1 << (place % 8)),
        2 => {
            let end = length.min(place + 1 + random.below(900));
            disk.tamper(name, |bytes| bytes[place..end].fill(0));
        }
        3 => {
            let sector = place / 512 * 512;
            let end = length.min(sector + 512);
            disk.tamper(name, |bytes| bytes[sector..end].fill(0));
        }
        4 => {
            let end = length.min(place + 40);
            disk.tamper(name, |bytes| bytes[place..end].fill(0xEE));
        }
        5 => disk.tamper(name, |bytes| bytes.truncate(place)),
        6 => disk.tamper(name, |bytes| bytes.extend([0; 512])),
        7 if all.len() > 1 => disk.remove(name).unwrap(),
        _ => disk.tamper(name, |bytes| bytes[..64][place % 64] ^= 4),
    }
    format!("{name} at {place}")
}

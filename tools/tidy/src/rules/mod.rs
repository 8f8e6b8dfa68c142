//! The rules, one file each. A rule gets the whole tree and appends what it finds.

mod ascii;
mod dead_files;
mod dependencies;
mod floors;
mod leftovers;
mod length;
mod module_head;
mod ordering;
mod sync_door;
mod unsafe_code;
mod workplace;

use crate::{Tree, Violation};

/// A rule.
pub(crate) type Rule = fn(&Tree, &mut Vec<Violation>);

/// All rules.
pub(crate) const ALL: &[Rule] = &[
    ascii::check,
    dead_files::check,
    dependencies::check,
    floors::check,
    leftovers::check,
    length::check,
    module_head::check,
    ordering::check,
    sync_door::check,
    unsafe_code::check,
    workplace::check,
];

//! An envelope's small numbers in one word, never zero.
//!
//! | bits   | what                                                                      |
//! |--------|---------------------------------------------------------------------------|
//! | 63     | always set, so that zero is an unused pattern                             |
//! | 62..24 | when it came to wait, in units of 16 ns; zero when it is not metered      |
//! | 23..16 | failed attempts at the current stage                                      |
//! | 15..0  | hops taken                                                                |
//!
//! The time wraps after 2.4 hours: an envelope that waits longer is metered too short by that.

use std::num::NonZeroU64;

const ALWAYS: NonZeroU64 = match NonZeroU64::new(1 << 63) {
    Some(bit) => bit,
    None => NonZeroU64::MIN,
};
const HOPS: u64 = 0xFFFF;
const ATTEMPTS_SHIFT: u32 = 16;
const ATTEMPTS: u64 = 0xFF << ATTEMPTS_SHIFT;
const STAMP_SHIFT: u32 = 24;
const STAMP_MAX: u64 = (1 << 39) - 1;
const STAMP: u64 = STAMP_MAX << STAMP_SHIFT;
/// Nanoseconds per unit, as a shift.
const UNIT_SHIFT: u32 = 4;

/// Hops, attempts and time stamp of one envelope.
#[derive(Clone, Copy)]
pub(super) struct Marks(NonZeroU64);

impl Marks {
    /// Nothing happened yet.
    pub(super) const NEW: Self = Self(ALWAYS);

    #[inline]
    fn with(self, field: u64, value: u64) -> Self {
        let rest = self.0.get() & !field & !ALWAYS.get();
        Self(ALWAYS | (rest | value))
    }

    #[inline]
    pub(super) fn hops(self) -> u32 {
        (self.0.get() & HOPS) as u32
    }

    /// Hops beyond 65,535 count as that many.
    #[inline]
    pub(super) fn with_hops(self, hops: u32) -> Self {
        self.with(HOPS, u64::from(hops).min(HOPS))
    }

    #[inline]
    pub(super) fn attempts(self) -> u16 {
        ((self.0.get() & ATTEMPTS) >> ATTEMPTS_SHIFT) as u16
    }

    /// Attempts beyond 255 count as that many.
    #[inline]
    pub(super) fn with_attempts(self, attempts: u16) -> Self {
        self.with(ATTEMPTS, u64::from(attempts.min(0xFF)) << ATTEMPTS_SHIFT)
    }

    #[inline]
    pub(super) fn is_metered(self) -> bool {
        self.0.get() & STAMP != 0
    }

    /// Not metered.
    pub(super) fn without_stamp(self) -> Self {
        self.with(STAMP, 0)
    }

    /// Metered from now on, waiting since `monotonic_ns`.
    pub(super) fn with_stamp(self, monotonic_ns: u64) -> Self {
        self.with(STAMP, units(monotonic_ns) << STAMP_SHIFT)
    }

    /// Nanoseconds from the stamp to `now`, to 16 ns.
    pub(super) fn since_stamp(self, now: u64) -> u64 {
        let stamp = (self.0.get() & STAMP) >> STAMP_SHIFT;
        (units(now).wrapping_sub(stamp) & STAMP_MAX) << UNIT_SHIFT
    }
}

/// A time as it is stamped: never zero, and a reading is rounded like the stamp it is compared to.
fn units(monotonic_ns: u64) -> u64 {
    (monotonic_ns >> UNIT_SHIFT & STAMP_MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::Marks;

    #[test]
    fn fields_do_not_touch_each_other() {
        let marks = Marks::NEW.with_hops(65_535).with_attempts(255).with_stamp(160);
        assert_eq!((marks.hops(), marks.attempts(), marks.since_stamp(320)), (65_535, 255, 160));
        let marks = marks.with_hops(0).with_attempts(0);
        assert_eq!((marks.hops(), marks.attempts(), marks.is_metered()), (0, 0, true));
        assert!(!marks.without_stamp().is_metered());
    }

    #[test]
    fn numbers_saturate() {
        let marks = Marks::NEW.with_hops(u32::MAX).with_attempts(u16::MAX);
        assert_eq!((marks.hops(), marks.attempts()), (65_535, 255));
    }

    #[test]
    fn nobody_waited_at_the_start_of_a_clock() {
        assert_eq!(Marks::NEW.with_stamp(1).since_stamp(1), 0);
        assert_eq!(Marks::NEW.with_stamp(1 << 43).since_stamp(1 << 43), 0);
    }

    #[test]
    fn waits_survive_the_wrap_of_the_stamp() {
        let before = (1 << 43) - 64;
        assert_eq!(Marks::NEW.with_stamp(before).since_stamp(before + 160), 160);
    }
}

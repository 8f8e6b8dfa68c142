//! The routing slip: a LIFO stack of routes still to visit, and the trail of those visited.
//!
//! Remaining hops and trail share one short array. `route[..len]` are the hops still to visit, the
//! next one last; `route[len]` is the current one, and behind it stands the trail, newest first.
//! So a ratchet only moves the border, and the trail costs nothing:
//!
//! ```text
//! via([a, b, c])   [c b a|. . .]   remaining 3
//! ratchet -> a     [c b|a . . .]   current a
//! ratchet -> b     [c|b a . . .]   current b, trail a
//! push(d)          [c d|b a . .]   the next hop is d
//! ```
//!
//! Six hops fit without allocation; a longer itinerary moves to the heap once. Where the array is
//! full, a push forgets the oldest part of the trail first. Reading the current route never pops.

use std::fmt;

/// Hops that fit into a slip without allocation.
pub const INLINE_HOPS: usize = 6;
/// The most hops a slip may hold.
pub const MAX_HOPS: usize = 65_535;
/// The most visited stages a long slip remembers.
const TRAIL_MAX: usize = 64;

/// A stage's name as one bus knows it: two small numbers, cheap to copy.
///
/// A route is made by the bus that owns the name and is good for that bus only; publishing it
/// elsewhere is refused, never misrouted. It stays valid when the stage is closed and opened again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route {
    bus: u16,
    index: u16,
}

impl Route {
    /// The route number `index` of the bus number `bus`. Bus numbers start at one.
    pub(crate) fn new(bus: u16, index: u16) -> Self {
        Self { bus, index }
    }

    /// Makes routes without a bus. Only in fuzz targets, outside semver.
    #[cfg(fuzzing)]
    #[doc(hidden)]
    #[must_use]
    pub fn for_fuzzing(bus: u16, index: u16) -> Self {
        Self::new(bus, index)
    }

    pub(crate) fn bus(self) -> u16 {
        self.bus
    }

    pub(crate) fn index(self) -> u16 {
        self.index
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Route({}.{})", self.bus, self.index)
    }
}

/// Why a slip refused a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlipError {
    /// The route belongs to another bus than those already in the slip.
    #[error("the route belongs to another bus; make it with this bus's `route(name)`")]
    ForeignRoute,
    /// The slip already holds [`MAX_HOPS`] hops.
    #[error("the slip already holds {MAX_HOPS} hops, the most it may")]
    TooLong,
}

/// Where the envelope stands on its slip: bytes and not an enum, since an envelope without unused
/// bit patterns moves as one piece, inside an `Option` too.
mod place {
    /// Not ratcheted yet.
    pub(super) const BEFORE: u8 = 0;
    /// `route[len]` is the current hop.
    pub(super) const AT: u8 = 1;
    /// Ratcheted past the last hop.
    pub(super) const PAST: u8 = 2;
}

/// A LIFO stack of routes still to visit.
///
/// ```
/// # use waystage::{Bus, BusSettings, StageSettings};
/// # let bus: Bus<u64> = Bus::start(BusSettings { workers: 0, ..BusSettings::default() })?;
/// let (a, b) = (bus.route("a")?, bus.route("b")?);
/// let mut slip = waystage::Slip::via([a, b])?; // a is visited first
/// assert_eq!(slip.ratchet(), Some(a));
/// slip.push(a)?; // the very next hop
/// assert_eq!((slip.ratchet(), slip.ratchet(), slip.ratchet()), (Some(a), Some(b), None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Slip {
    /// The bus that made the routes; without meaning while there are none.
    bus: u16,
    /// Remaining hops in the low half, valid entries from `route[len]` on in the high half.
    counts: u8,
    place: u8,
    route: [u16; INLINE_HOPS],
    /// Holds everything once the array was too short.
    long: Option<Box<Long>>,
}

/// The same layout on the heap.
#[derive(Clone, Default)]
struct Long {
    route: Vec<u16>,
    remaining: usize,
}

impl Slip {
    /// An empty slip.
    #[must_use]
    pub const fn new() -> Self {
        Self { bus: 0, counts: 0, place: place::BEFORE, route: [0; INLINE_HOPS], long: None }
    }

    /// A slip that visits `routes` in the order given.
    ///
    /// # Errors
    /// [`SlipError`] when the routes are of different buses, or too many.
    pub fn via(routes: impl IntoIterator<Item = Route>) -> Result<Self, SlipError> {
        // One more than a slip may hold is enough to refuse the rest.
        let routes: smallest::Buffer = routes.into_iter().take(MAX_HOPS + 1).collect();
        let mut slip = Self::new();
        for route in routes.iter().rev() {
            slip.push(*route)?;
        }
        Ok(slip)
    }

    /// Puts `route` on top: it becomes the very next hop.
    ///
    /// # Errors
    /// [`SlipError`] when the route is of another bus, or the slip is full; it is then unchanged.
    pub fn push(&mut self, route: Route) -> Result<(), SlipError> {
        self.insert(self.remaining(), route)
    }

    /// Adds `route` behind all remaining hops: it is visited last.
    ///
    /// # Errors
    /// [`SlipError`] when the route is of another bus, or the slip is full; it is then unchanged.
    pub fn append(&mut self, route: Route) -> Result<(), SlipError> {
        self.insert(0, route)
    }

    /// Forgets all remaining hops; current route and trail stay.
    pub fn clear(&mut self) {
        let (remaining, visited) = self.counts();
        match &mut self.long {
            None => {
                self.route.copy_within(remaining..remaining + visited, 0);
                self.set_counts(0, visited);
            }
            Some(long) => {
                long.route.drain(..long.remaining);
                long.remaining = 0;
            }
        }
    }

    /// Pops the next route into *current* and returns it; `None` once the slip is exhausted.
    #[inline]
    pub fn ratchet(&mut self) -> Option<Route> {
        if self.long.is_some() {
            return self.ratchet_long();
        }
        let (remaining, visited) = self.counts();
        if remaining == 0 {
            self.place = place::PAST;
            return None;
        }
        self.place = place::AT;
        self.set_counts(remaining - 1, visited + 1);
        Some(Route { bus: self.bus, index: self.route[remaining - 1] })
    }

    #[cold]
    fn ratchet_long(&mut self) -> Option<Route> {
        let long = self.long.as_deref_mut()?;
        if long.remaining == 0 {
            self.place = place::PAST;
            return None;
        }
        self.place = place::AT;
        long.remaining -= 1;
        long.route.truncate(long.remaining + TRAIL_MAX);
        Some(Route { bus: self.bus, index: long.route[long.remaining] })
    }

    /// The route being visited. Reading it never pops.
    #[inline]
    #[must_use]
    pub fn current(&self) -> Option<Route> {
        if self.place != place::AT {
            return None;
        }
        let index = match &self.long {
            None => self.route[self.counts().0],
            Some(long) => long.route[long.remaining],
        };
        Some(Route { bus: self.bus, index })
    }

    /// The route the next [`ratchet`](Self::ratchet) will make current.
    #[inline]
    #[must_use]
    pub fn peek_next(&self) -> Option<Route> {
        let (route, remaining) = self.parts();
        let index = *route.get(remaining.checked_sub(1)?)?;
        Some(Route { bus: self.bus, index })
    }

    /// Hops still to visit, the current one excluded.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.parts().1
    }

    /// The hops still to visit, the next one first.
    pub fn routes(&self) -> impl Iterator<Item = Route> {
        let (route, remaining) = self.parts();
        let bus = self.bus;
        route[..remaining].iter().rev().map(move |&index| Route { bus, index })
    }

    /// The stages visited, oldest first, the current one last. All of them while the itinerary is
    /// at most six hops long and nothing was pushed; otherwise the newest that fit.
    pub fn trail(&self) -> impl Iterator<Item = Route> {
        let (route, remaining) = self.parts();
        let end = match &self.long {
            None => remaining + self.counts().1,
            Some(long) => long.route.len(),
        };
        let bus = self.bus;
        route[remaining..end].iter().rev().map(move |&index| Route { bus, index })
    }

    /// Whether the slip was ratcheted and not yet past its end.
    #[inline]
    pub(crate) fn is_at_stage(&self) -> bool {
        self.place == place::AT
    }

    /// Takes the current route back as the next hop, as if it had not been ratcheted.
    pub(crate) fn unratchet(&mut self) {
        if self.place != place::AT {
            return;
        }
        self.place = place::BEFORE;
        match &mut self.long {
            None => {
                let (remaining, visited) = self.counts();
                self.set_counts(remaining + 1, visited - 1);
            }
            Some(long) => long.remaining += 1,
        }
    }

    /// Puts `route` below the `remaining() - place` hops that come before it.
    fn insert(&mut self, place: usize, route: Route) -> Result<(), SlipError> {
        if self.is_blank() {
            self.bus = route.bus;
        }
        if self.bus != route.bus {
            return Err(SlipError::ForeignRoute);
        }
        if self.remaining() >= MAX_HOPS {
            return Err(SlipError::TooLong);
        }
        if self.long.is_none() {
            let (remaining, visited) = self.counts();
            if remaining + visited < INLINE_HOPS || visited > 1 {
                // The oldest entry of the trail falls off the end when the array is full.
                let end = INLINE_HOPS - 1;
                self.route.copy_within(place..end, place + 1);
                self.route[place] = route.index;
                self.set_counts(remaining + 1, visited.min(end - remaining));
                return Ok(());
            }
            self.spill();
        }
        if let Some(long) = &mut self.long {
            long.route.insert(place, route.index);
            long.remaining += 1;
            long.route.truncate(long.remaining + TRAIL_MAX);
        }
        Ok(())
    }

    /// Whether it holds no route at all, not even a visited one.
    fn is_blank(&self) -> bool {
        match &self.long {
            None => self.counts == 0,
            Some(long) => long.route.is_empty(),
        }
    }

    #[inline]
    fn parts(&self) -> (&[u16], usize) {
        match &self.long {
            None => (&self.route, self.counts().0),
            Some(long) => (&long.route, long.remaining),
        }
    }

    #[inline]
    fn counts(&self) -> (usize, usize) {
        (usize::from(self.counts & 15), usize::from(self.counts >> 4))
    }

    #[inline]
    fn set_counts(&mut self, remaining: usize, visited: usize) {
        debug_assert!(remaining + visited <= INLINE_HOPS);
        #[expect(clippy::cast_possible_truncation, reason = "both are at most INLINE_HOPS")]
        {
            self.counts = remaining as u8 | (visited as u8) << 4;
        }
    }

    #[cold]
    fn spill(&mut self) {
        let (remaining, visited) = self.counts();
        let mut route = Vec::with_capacity(4 * INLINE_HOPS);
        route.extend_from_slice(&self.route[..remaining + visited]);
        self.long = Some(Box::new(Long { route, remaining }));
    }
}

impl Default for Slip {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Slip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slip")
            .field("current", &self.current())
            .field("next", &self.routes().collect::<Vec<_>>())
            .finish()
    }
}

/// Collects the routes of `via` without allocating for short itineraries.
mod smallest {
    use super::{INLINE_HOPS, Route};

    pub(super) enum Buffer {
        Short([Route; INLINE_HOPS], usize),
        Long(Vec<Route>),
    }

    impl Buffer {
        pub(super) fn iter(&self) -> std::slice::Iter<'_, Route> {
            match self {
                Self::Short(routes, length) => routes[..*length].iter(),
                Self::Long(routes) => routes.iter(),
            }
        }
    }

    impl FromIterator<Route> for Buffer {
        fn from_iter<I: IntoIterator<Item = Route>>(routes: I) -> Self {
            let mut short = [Route { bus: 0, index: 0 }; INLINE_HOPS];
            let mut length = 0;
            let mut routes = routes.into_iter();
            while let Some(route) = routes.next() {
                if length == INLINE_HOPS {
                    let mut long = short.to_vec();
                    long.push(route);
                    long.extend(routes);
                    return Self::Long(long);
                }
                short[length] = route;
                length += 1;
            }
            Self::Short(short, length)
        }
    }
}

#[cfg(test)]
mod tests;

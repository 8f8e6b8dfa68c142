//! The slip against a model of two lists, and the rules of the anchor's section 1.3.

use super::*;
use proptest::prelude::*;

fn route(index: u16) -> Route {
    Route::new(1, index)
}

fn slip(hops: &[u16]) -> Slip {
    Slip::via(hops.iter().map(|&index| route(index))).unwrap()
}

fn indexes(routes: impl Iterator<Item = Route>) -> Vec<u16> {
    routes.map(Route::index).collect()
}

/// What a slip means, without its bounds on the trail.
#[derive(Debug, Default)]
struct Model {
    /// The next hop last.
    remaining: Vec<u16>,
    /// All ever visited, the newest last.
    visited: Vec<u16>,
    at: bool,
    /// The most hops and visits there ever were at once.
    peak: usize,
}

#[derive(Debug, Clone)]
enum Step {
    Push(u16),
    Append(u16),
    Ratchet,
    Unratchet,
    Clear,
    PushForeign,
}

fn steps(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => any::<u16>().prop_map(Step::Push),
        4 => any::<u16>().prop_map(Step::Append),
        6 => Just(Step::Ratchet),
        1 => Just(Step::Unratchet),
        1 => Just(Step::PushForeign),
        1 => Just(Step::Clear),
    ];
    proptest::collection::vec(step, length)
}

impl Model {
    fn step(&mut self, slip: &mut Slip, step: &Step) {
        match *step {
            Step::Push(index) => {
                slip.push(route(index)).unwrap();
                self.remaining.push(index);
            }
            Step::Append(index) => {
                slip.append(route(index)).unwrap();
                self.remaining.insert(0, index);
            }
            Step::Ratchet => {
                let next = self.remaining.pop();
                self.at = next.is_some();
                self.visited.extend(next);
                assert_eq!(slip.ratchet().map(Route::index), next);
            }
            Step::Unratchet => {
                slip.unratchet();
                if std::mem::take(&mut self.at) {
                    self.remaining.extend(self.visited.pop());
                }
            }
            Step::Clear => {
                slip.clear();
                self.remaining.clear();
            }
            Step::PushForeign => {
                if slip.remaining() > 0 {
                    let foreign = Route::new(2, 0);
                    assert_eq!(slip.push(foreign), Err(SlipError::ForeignRoute));
                    assert_eq!(slip.append(foreign), Err(SlipError::ForeignRoute));
                }
            }
        }
        self.peak = self.peak.max(self.remaining.len() + self.visited.len());
        self.check(slip);
    }

    fn check(&self, slip: &Slip) {
        let current = self.visited.last().copied().filter(|_| self.at);
        assert_eq!(slip.current().map(Route::index), current);
        assert_eq!(slip.current().map(Route::index), current, "reading it again pops nothing");
        assert_eq!(slip.is_at_stage(), self.at);
        assert_eq!(slip.peek_next().map(Route::index), self.remaining.last().copied());
        assert_eq!(slip.remaining(), self.remaining.len());
        assert!(indexes(slip.routes()).iter().eq(self.remaining.iter().rev()));
        let trail = indexes(slip.trail());
        assert!(self.visited.ends_with(&trail), "{trail:?} of {:?}", self.visited);
        if self.at {
            assert!(!trail.is_empty(), "the current stage is never forgotten");
        }
        if self.peak <= INLINE_HOPS {
            assert_eq!(trail, self.visited, "a short itinerary forgets nothing");
            assert!(slip.long.is_none(), "and allocates nothing");
        }
    }
}

proptest! {
    #[test]
    fn short_slips_follow_the_model(steps in steps(0..40)) {
        let (mut slip, mut model) = (Slip::new(), Model::default());
        steps.iter().for_each(|step| model.step(&mut slip, step));
    }

    #[test]
    fn long_slips_follow_the_model(hops in 0_u16..200, steps in steps(0..300)) {
        let (mut slip, mut model) = (Slip::new(), Model::default());
        (0..hops).for_each(|hop| model.step(&mut slip, &Step::Append(hop)));
        steps.iter().for_each(|step| model.step(&mut slip, step));
    }

    #[test]
    fn via_visits_in_the_order_given(hops in proptest::collection::vec(any::<u16>(), 0..100)) {
        let mut slip = slip(&hops);
        let visited: Vec<u16> = std::iter::from_fn(|| slip.ratchet()).map(Route::index).collect();
        prop_assert_eq!(&visited, &hops);
        let trail = indexes(slip.trail());
        prop_assert_eq!(trail.len(), hops.len().min(TRAIL_MAX));
        prop_assert!(hops.ends_with(&trail));
    }
}

#[test]
fn a_lifo_the_last_hop_is_pushed_first() {
    let mut slip = Slip::new();
    for index in [3, 2, 1] {
        slip.push(route(index)).unwrap();
    }
    assert_eq!(indexes(slip.routes()), [1, 2, 3]);
    assert_eq!(indexes(self::slip(&[1, 2, 3]).routes()), [1, 2, 3]);
}

#[test]
fn b_before_the_first_ratchet_there_is_no_current_and_one_ratchet_is_one_pop() {
    let mut slip = slip(&[1, 2]);
    assert!(!slip.is_at_stage(), "so a publish knows that it must ratchet");
    assert_eq!(slip.current(), None);
    assert_eq!((slip.ratchet(), slip.remaining()), (Some(route(1)), 1));
    assert!(slip.is_at_stage(), "so a publish knows that it must not");
}

#[test]
fn c_reading_never_skips_a_hop_but_a_second_ratchet_does() {
    let mut slip = slip(&[1, 2, 3]);
    assert_eq!(slip.current(), None);
    assert_eq!(slip.ratchet(), Some(route(1)));
    assert_eq!((slip.current(), slip.current()), (Some(route(1)), Some(route(1))));
    slip.ratchet();
    assert_eq!(slip.ratchet(), Some(route(3)));
}

#[test]
fn d_a_push_at_a_stage_is_the_very_next_hop() {
    let mut slip = slip(&[1, 2]);
    slip.ratchet();
    slip.push(route(9)).unwrap();
    assert_eq!(slip.current(), Some(route(1)), "the current one stays");
    assert_eq!(slip.peek_next(), Some(route(9)));
    slip.append(route(8)).unwrap();
    assert_eq!(indexes(slip.routes()), [9, 2, 8]);
}

#[test]
fn e_the_slip_alone_says_where_the_envelope_is() {
    let mut slip = slip(&[1]);
    slip.ratchet();
    slip.clear();
    assert_eq!(slip.current(), Some(route(1)));
    slip.unratchet();
    assert_eq!((slip.current(), slip.peek_next()), (None, Some(route(1))));
    slip.unratchet();
    assert_eq!(slip.remaining(), 1, "taking back twice is taking back once");
}

#[test]
fn f_an_exhausted_slip_has_no_current_until_something_is_pushed() {
    let mut slip = slip(&[1]);
    slip.ratchet();
    for _ in 0..3 {
        assert_eq!((slip.ratchet(), slip.current(), slip.peek_next()), (None, None, None));
    }
    assert_eq!(indexes(slip.trail()), [1]);
    slip.push(route(2)).unwrap();
    assert_eq!(slip.ratchet(), Some(route(2)));
    assert_eq!(indexes(slip.trail()), [1, 2]);
    assert_eq!(Slip::new().ratchet(), None);
}

#[test]
fn a_full_slip_refuses_and_stays_as_it_was() {
    let mut slip = Slip::new();
    for count in 0..100_000_u32 {
        let outcome = slip.push(route(u16::try_from(count % 1_000).unwrap()));
        let want = if count < 65_535 { Ok(()) } else { Err(SlipError::TooLong) };
        assert_eq!(outcome, want, "push number {count}");
    }
    let before = indexes(slip.routes());
    assert_eq!(slip.append(route(7)), Err(SlipError::TooLong));
    assert_eq!(indexes(slip.routes()), before);
    slip.ratchet();
    slip.append(route(7)).unwrap();
    assert_eq!(slip.routes().last(), Some(route(7)));
    assert_eq!(Slip::via((0..=65_535).map(route)).unwrap_err(), SlipError::TooLong);
    let endless = Slip::via(std::iter::repeat(route(1)));
    assert_eq!(endless.unwrap_err(), SlipError::TooLong);
}

#[test]
fn routes_of_two_buses_do_not_mix() {
    let foreign = Route::new(2, 1);
    assert_eq!(Slip::via([route(1), foreign]).unwrap_err(), SlipError::ForeignRoute);
    let mut slip = slip(&[1]);
    assert_eq!(slip.append(foreign), Err(SlipError::ForeignRoute));
    slip.ratchet();
    assert_eq!(slip.push(foreign), Err(SlipError::ForeignRoute), "the trail is of the first bus");
    let mut emptied = self::slip(&[1, 2]);
    emptied.clear();
    emptied.push(foreign).unwrap();
    assert_eq!(emptied.ratchet(), Some(foreign));
}

#[test]
fn it_is_small() {
    assert_eq!(size_of::<Slip>(), 24);
}

//! Settlement of an envelope that the log has: what an attempt led to is one record, which is
//! written before anything moves and before the stage's permit is given up.
//!
//! Where the log takes no record the envelope is left: the log has it as it was before the
//! attempt, and it is handled again when the log is opened next.

use std::sync::Arc;
use std::time::Duration;

use super::Stage;
use super::engine::{Fate, Unwritten, collect};
use super::handler::Failure;
use super::hop::nanoseconds;
use super::lasting::{Lasting, Left};
use super::retry::pause;
use super::settings::Retry;
use super::settle::{Failed, Outcome, Verdict, start_emit};
use super::turn::Turn;
use crate::envelope::{Cause, Envelope, Settled};

impl<P: Send + 'static> Turn<'_, P> {
    /// Decides what becomes of a durable envelope, writes it down and moves it; hands it back when
    /// it is to be tried again at once.
    #[cold]
    pub(super) fn conclude_durable(
        &mut self,
        stage: &Arc<Stage<P>>,
        mut envelope: Envelope<P>,
        notebook: usize,
        outcome: Outcome,
    ) -> Option<Envelope<P>> {
        let lasting = self.scratch.notebooks[notebook].lasting.take().unwrap_or_default();
        let Lasting { saves, mut writes } = *lasting;
        let outcome = outcome
            .and_then(|()| writes.begin().map_err(|words| Failed::Said(Failure::new(words))));
        let written = match outcome {
            Ok(written) => written,
            Err(failed) => {
                let verdict = self.conclude_failure(stage, &mut envelope, notebook, failed);
                return self.fail_durable(stage, envelope, verdict);
            }
        };
        let left = Left { stage: &stage.name, saves, written };
        stage.meters.hot.done.add_as(stage.is_alone(), 1);
        stage.meters.hot.left.add_as(stage.is_alone(), 1);
        let here = envelope.current();
        self.apply(&mut envelope, notebook);
        envelope.set_attempts(0);
        let mut emits = std::mem::take(&mut self.scratch.notebooks[notebook].emits);
        for (ordinal, emit) in emits.iter_mut().enumerate() {
            let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
            self.engine.accept_emit(self.desk, &envelope, ordinal, emit);
            start_emit(here, emit);
        }
        let has_next = envelope.slip().peek_next().is_some();
        let is_spent = envelope.hops() >= self.engine.hop_limit();
        if has_next {
            envelope.arrive();
        }
        let step = if has_next { Fate::Hop } else { Fate::Completed };
        let recorded = self.engine.record(&mut envelope, step, &mut emits, &left);
        let known = match recorded {
            Ok(known) => known,
            Err(unwritten) => {
                // Callbacks may run now, and nothing waits for them.
                drop(left);
                for emit in emits {
                    self.engine.settle(self.desk, emit, Settled::Undelivered);
                }
                self.not_written(stage, envelope, unwritten, Cause::NotLogged);
                return None;
            }
        };
        let Left { saves, written, .. } = left;
        written.commit();
        if let Some(saved) = &stage.saved {
            saved.apply(saves);
        }
        for emit in known {
            self.engine.settle(self.desk, emit, Settled::Dropped);
        }
        for emit in emits {
            self.send_recorded(emit);
        }
        if !has_next {
            self.end(stage, envelope);
        } else if is_spent {
            self.give_up(stage, envelope, Cause::HopLimit);
        } else {
            match envelope.current().and_then(|next| self.find(next)) {
                Some(target) => {
                    let scratch = &mut *self.scratch;
                    collect(&mut scratch.out, &mut scratch.spare, &target, envelope);
                }
                None => self.give_up(stage, envelope, Cause::NoRoute),
            }
        }
        None
    }

    fn fail_durable(
        &mut self,
        stage: &Arc<Stage<P>>,
        mut envelope: Envelope<P>,
        verdict: Verdict,
    ) -> Option<Envelope<P>> {
        let pause = match (&verdict, stage.settings.retry) {
            (Verdict::Delay, Retry::Delayed { first, max, .. }) => {
                pause(first, max, 0.0, envelope.attempts(), 0)
            }
            _ => nanoseconds(Duration::ZERO),
        };
        let goes_on = matches!(verdict, Verdict::Retry | Verdict::Delay);
        let step = Fate::Attempt { pause };
        let nothing = Left::default();
        if goes_on
            && let Err(unwritten) =
                self.engine.record(&mut envelope, step, &mut Vec::new(), &nothing)
        {
            if matches!(verdict, Verdict::Retry) {
                stage.meters.hot.left.add_as(stage.is_alone(), 1);
            }
            self.not_written(stage, envelope, unwritten, Cause::NotLogged);
            return None;
        }
        if matches!(verdict, Verdict::Retry) {
            return Some(envelope);
        }
        self.carry_out(stage, envelope, verdict);
        None
    }

    /// What was to be written was not: what can never be is given up, since no later try would
    /// help; else the log keeps the envelope as it was.
    pub(super) fn not_written(
        &mut self,
        stage: &Stage<P>,
        envelope: Envelope<P>,
        unwritten: Unwritten,
        cause: Cause,
    ) {
        if unwritten == Unwritten::Failed {
            return self.engine.settle(self.desk, envelope, Settled::Undelivered);
        }
        stage.meters.dead.add(1);
        self.engine.bury(self.desk, envelope, cause, &stage.name);
    }
}

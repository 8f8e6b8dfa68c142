//! Batch publishing: envelopes for the same stage travel in blocks, one slot and one look at the
//! state word each.

use std::sync::Arc;

use super::core::Core;
use super::error::{BatchError, Refused};
use super::publish::Wait;
use crate::envelope::{Envelope, EnvelopeId};
use crate::metrics::counter::Tally;
use crate::stage::Stage;
use crate::stage::engine::StageMap;
use crate::stage::enter::Refusal;
use crate::stage::queue::Block;
use crate::stage::settings::Level;

impl<P: Send + 'static> Core<P> {
    /// Publishes in order; stops at the first refusal.
    pub(crate) fn publish_batch(
        &self,
        map: &StageMap<P>,
        tally: Tally<'_>,
        mut fresh_id: impl FnMut() -> EnvelopeId,
        envelopes: &mut impl Iterator<Item = Envelope<P>>,
    ) -> Result<usize, BatchError<P>> {
        let mut batch =
            Filling { core: self, tally, target: None, block: self.block(), accepted: 0 };
        for mut envelope in envelopes {
            let added = match self.target(map, &mut envelope) {
                Ok(stage) => {
                    self.stamp(&mut envelope, stage.settings().expiry, &mut fresh_id);
                    batch.add(stage, envelope)
                }
                Err(reason) => match batch.flush() {
                    Ok(()) => Err((reason, Block::from([envelope]))),
                    Err((earlier, mut rest)) => {
                        rest.push_back(envelope);
                        Err((earlier, rest))
                    }
                },
            };
            if let Err((reason, rest)) = added {
                return Err(batch.stop(reason, rest));
            }
        }
        if let Err((reason, rest)) = batch.flush() {
            return Err(batch.stop(reason, rest));
        }
        let Filling { block, accepted, .. } = batch;
        self.put_block(block);
        Ok(accepted)
    }
}

type Left<P> = (Refused, Block<P>);

/// The block being filled for one stage.
struct Filling<'a, P> {
    core: &'a Core<P>,
    tally: Tally<'a>,
    target: Option<Arc<Stage<P>>>,
    block: Block<P>,
    accepted: usize,
}

impl<P: Send + 'static> Filling<'_, P> {
    /// Adds one envelope; sends the block when it is full or for another stage.
    fn add(&mut self, stage: &Arc<Stage<P>>, envelope: Envelope<P>) -> Result<(), Left<P>> {
        if stage.settings().level != Level::AtMostOnce {
            return self.add_durable(stage, envelope);
        }
        let same = self.target.as_ref().is_some_and(|target| Arc::ptr_eq(target, stage));
        if !same {
            if let Err((reason, mut rest)) = self.flush() {
                rest.push_back(envelope);
                return Err((reason, rest));
            }
            self.target = Some(Arc::clone(stage));
        }
        self.block.push_back(envelope);
        let settings = stage.settings();
        if self.block.len() >= settings.batch.min(settings.capacity) {
            return self.flush();
        }
        Ok(())
    }

    /// Adds one for a durable stage, where each is a record of its own.
    fn add_durable(&mut self, stage: &Arc<Stage<P>>, envelope: Envelope<P>) -> Result<(), Left<P>> {
        if let Err((reason, mut rest)) = self.flush() {
            rest.push_back(envelope);
            return Err((reason, rest));
        }
        match self.core.publish_durable(stage, self.tally, envelope, Wait::Policy) {
            Ok(_) => {
                self.accepted += 1;
                Ok(())
            }
            Err(refused) => Err((refused.reason, Block::from([*refused.envelope]))),
        }
    }

    /// Sends what is in the block: as a block, or one by one where the policy does not wait.
    fn flush(&mut self) -> Result<(), Left<P>> {
        let Some(stage) = self.target.clone().filter(|_| !self.block.is_empty()) else {
            return Ok(());
        };
        let count = self.block.len();
        let block = std::mem::replace(&mut self.block, self.core.block());
        if !stage.takes_blocks() {
            return self.one_by_one(&stage, block);
        }
        let (core, tally) = (self.core, self.tally);
        let enter = |block| stage.try_enter_block(core, tally, block);
        let entered = enter(block).or_else(|(refusal, block)| {
            core.wait_for_room(&stage, refusal, block, Wait::Policy, enter)
        });
        match entered {
            Ok(()) => {
                self.accepted += count;
                Ok(())
            }
            Err((refusal, block)) => {
                if refusal == Refusal::Full {
                    return self.one_by_one(&stage, block);
                }
                stage.meters().refused.add(1);
                Err((refusal.into(), block))
            }
        }
    }

    #[cold]
    fn one_by_one(&mut self, stage: &Arc<Stage<P>>, mut block: Block<P>) -> Result<(), Left<P>> {
        while let Some(envelope) = block.pop_front() {
            match self.core.enter_waiting(stage, self.tally, envelope, Wait::No) {
                Ok(()) => self.accepted += 1,
                Err((refusal, envelope)) => {
                    stage.meters().refused.add(1);
                    block.push_front(envelope);
                    return Err((refusal.into(), block));
                }
            }
        }
        self.core.put_block(block);
        Ok(())
    }

    /// The error that hands back what was taken and not accepted.
    fn stop(self, reason: Refused, rest: Block<P>) -> BatchError<P> {
        let unratcheted = rest.into_iter().map(|mut envelope| {
            envelope.slip_mut().unratchet();
            envelope
        });
        BatchError { reason, accepted: self.accepted, rest: unratcheted.collect() }
    }
}

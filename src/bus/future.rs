//! Publishing from async code: a future that waits in the line of publishers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::core::Core;
use super::error::{PublishError, Refused};
use super::publish::Wait;
use crate::envelope::Envelope;
use crate::metrics::counter::Tally;
use crate::stage::Stage;
use crate::stage::engine::Engine as _;
use crate::stage::room::Wake;
use crate::sync::pause_point;

/// A publish that waits for room; see [`publish_async`](crate::Handle::publish_async).
#[must_use = "nothing is published before the future is polled"]
pub struct PublishFuture<P: Send + 'static> {
    core: Arc<Core<P>>,
    envelope: Option<Envelope<P>>,
    /// The stage and the place in its line.
    place: Option<(Arc<Stage<P>>, u64)>,
}

// Nothing in it is pinned: the envelope is only moved out.
impl<P: Send + 'static> Unpin for PublishFuture<P> {}

impl<P: Send + 'static> PublishFuture<P> {
    pub(crate) fn new(core: Arc<Core<P>>, envelope: Envelope<P>) -> Self {
        Self { core, envelope: Some(envelope), place: None }
    }

    fn try_now(&mut self) -> Option<Result<(), PublishError<P>>> {
        let envelope = self.envelope.take()?;
        let core = &*self.core;
        let map = core.stages();
        let lane = core.lane(0);
        let fresh_id = || lane.fresh_id(core.clock());
        match core.publish(&map, Tally::shared(&lane.accepted), fresh_id, envelope, Wait::Elsewhere)
        {
            Err(PublishError { reason: Refused::Full, envelope, .. }) => {
                self.envelope = Some(*envelope);
                None
            }
            ended => Some(ended),
        }
    }

    /// The stage it is for.
    fn stage(&mut self) -> Option<Arc<Stage<P>>> {
        let map = self.core.stages();
        let envelope = self.envelope.as_mut()?;
        let stage = self.core.target(&map, envelope).ok().cloned();
        envelope.slip_mut().unratchet();
        stage
    }

    /// Whether it stands in the line of the stage it is for.
    fn is_in_line(&mut self) -> bool {
        let stage = self.stage();
        let place = self.place.as_ref().map(|(stage, _)| stage);
        place.zip(stage.as_ref()).is_some_and(|(place, stage)| Arc::ptr_eq(place, stage))
    }

    /// Joins the line of the stage it is for, or keeps its place there.
    fn wait_in_line(&mut self, wake: Wake) {
        let core = Arc::clone(&self.core);
        let stage = self.stage();
        pause_point();
        match (&self.place, stage) {
            (Some((before, number)), Some(stage)) if Arc::ptr_eq(before, &stage) => {
                stage.rejoin_publishers(&*core, *number, wake);
            }
            (_, stage) => {
                self.leave(true);
                self.place = stage.map(|stage| {
                    let number = stage.join_publishers(wake);
                    (stage, number)
                });
            }
        }
    }

    fn leave(&mut self, used: bool) {
        if let Some((stage, number)) = self.place.take() {
            stage.leave_publishers(&*self.core, number, used);
        }
    }
}

impl<P: Send + 'static> Future for PublishFuture<P> {
    type Output = Result<(), PublishError<P>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(ended) = self.try_now() {
            self.leave(ended.is_ok());
            return Poll::Ready(ended);
        }
        loop {
            self.wait_in_line(Wake::Task(context.waker().clone()));
            // Registered: room that came in between is seen now.
            if let Some(ended) = self.try_now() {
                self.leave(ended.is_ok());
                return Poll::Ready(ended);
            }
            if self.is_in_line() {
                return Poll::Pending;
            }
            // The stage was closed and opened anew in between: nobody wakes those in its old line.
        }
    }
}

impl<P: Send + 'static> Drop for PublishFuture<P> {
    fn drop(&mut self) {
        self.leave(false);
    }
}

impl<P: Send + 'static> fmt::Debug for PublishFuture<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishFuture")
            .field("waits", &self.place.is_some())
            .finish_non_exhaustive()
    }
}

//! Running tickets: all that a tray holds, or a worker's loop until a model is done.

use waystage::model::{self, Desk, Rest, Scheduler, Shared, Step, Task, Ticket, Turned, Worker};

use crate::Tray;

/// Runs a ticket until its permit is free or given away, as a worker does that has no other.
pub fn run_all(ticket: Ticket, scheduler: &dyn Scheduler) {
    let desk = Desk { worker: 0, scheduler };
    let mut next = Some(ticket);
    while let Some(ticket) = next.take() {
        let task = std::sync::Arc::clone(ticket.task());
        match task.turn(ticket, &desk) {
            Turned::Keep { ticket, taken: 1.. } => next = Some(ticket),
            Turned::Keep { ticket, .. } | Turned::Release { ticket, .. } => {
                let task = std::sync::Arc::clone(ticket.task());
                next = Task::release(task, ticket);
                // Loom may show an old ring for ever to a thread that never yields.
                loom::thread::yield_now();
            }
            Turned::Gone { .. } => {}
        }
    }
}

impl Tray {
    /// Runs all tickets in it, and those that come of that.
    pub fn run(&self) {
        while let Some(ticket) = self.take() {
            run_all(ticket, self);
        }
    }
}

/// A worker's loop, until `is_done` or until another worker stops the team.
pub fn work_until(shared: &Shared, mut worker: Worker, is_done: impl Fn() -> bool) {
    while !model::is_stopping(shared) {
        if is_done() {
            model::stop(shared);
            return;
        }
        match worker.step() {
            Step::Worked(_) => continue,
            Step::Polled | Step::Empty => {}
        }
        if matches!(worker.steal(), Step::Worked(_)) {
            continue;
        }
        if let Rest::Park(timeout) = worker.settle_down() {
            worker.park(timeout);
        }
    }
}

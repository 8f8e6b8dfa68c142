//! Tests that drive the whole bus from inside: the seeded simulator, and workers stepped by hand.
//! Compiled for tests only.
//!
//! One thread, no waiting: workers are values whose turns are called in an order that a seed
//! chooses, time moves by hand, and handlers, callbacks and destructors let the rest of the world
//! go on in their midst, which is how calls overlap here.

mod bounds;
mod busy;
mod cargo;
mod checks;
mod control;
mod crashes;
mod handlers;
mod hung;
mod ledger;
mod oldest;
mod paused;
mod publishing;
mod random;
mod reopened;
mod simulator;
mod workers;
mod world;
mod write_back;

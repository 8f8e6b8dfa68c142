//! The shapes on the peers: same messages, same checks, capacity 1024.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use crossbeam_utils::Backoff;
use waystage::{Bus, BusSettings, Envelope};

use crate::message::{Check, Message};
use waystage_peers::gate::{free, pin};

const CAPACITY: usize = 1024;

fn push<T>(ring: &ArrayQueue<T>, mut value: T) {
    let backoff = Backoff::new();
    while let Err(back) = ring.push(value) {
        value = back;
        backoff.snooze();
    }
}

fn pop<T>(ring: &ArrayQueue<T>) -> T {
    let backoff = Backoff::new();
    loop {
        if let Some(value) = ring.pop() {
            return value;
        }
        backoff.snooze();
    }
}

/// Producer on core 0, consumer on core 1, over any pair of functions.
fn two_threads(
    messages: u64,
    mut send: impl FnMut(Message) + Send,
    mut receive: impl FnMut() -> Message + Send,
) -> Duration {
    std::thread::scope(|scope| {
        let consumer = scope.spawn(move || {
            pin(1);
            let mut check = Check::default();
            while check.count() < messages {
                check.take(&receive());
            }
        });
        pin(0);
        let begin = Instant::now();
        for number in 0..messages {
            send(Message::new(0, number));
        }
        consumer.join().expect("a failed check ends the run");
        begin.elapsed()
    })
}

/// The bare ring.
pub fn ring_hop(messages: u64) -> Duration {
    let ring = Arc::new(ArrayQueue::new(CAPACITY));
    let other = Arc::clone(&ring);
    two_threads(messages, move |message| push(&ring, message), move || pop(&other))
}

/// The bare ring, moving our envelopes: what our hop costs beyond the ring itself.
pub fn ring_of_envelopes(messages: u64) -> Duration {
    let bus: Bus<Message> = Bus::start(BusSettings { workers: 0, ..BusSettings::default() })
        .expect("the settings are valid");
    let slip = bus.slip(["check"]).expect("a short slip");
    let ring = Arc::new(ArrayQueue::new(CAPACITY));
    let other = Arc::clone(&ring);
    two_threads(
        messages,
        move |message| push(&ring, Envelope::new(message, slip.clone())),
        move || pop(&other).into_payload(),
    )
}

/// crossbeam-channel.
pub fn channel_hop(messages: u64) -> Duration {
    let (sender, receiver) = crossbeam_channel::bounded(CAPACITY);
    two_threads(
        messages,
        move |message| sender.send(message).expect("the receiver lives"),
        move || receiver.recv().expect("the sender lives"),
    )
}

/// tokio's channel between two threads.
pub fn tokio_hop(messages: u64) -> Duration {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(CAPACITY);
    two_threads(
        messages,
        move |message| sender.blocking_send(message).expect("the receiver lives"),
        move || receiver.blocking_recv().expect("the sender lives"),
    )
}

/// Producer, two passing threads and a checking one, unpinned.
fn four_threads<S, R>(
    messages: u64,
    make: impl Fn() -> (S, R),
    send: impl Fn(&S, Message) + Copy + Send + Sync,
    receive: impl Fn(&mut R) -> Message + Copy + Send + Sync,
) -> Duration
where
    S: Send,
    R: Send,
{
    let (first, mut a) = make();
    let (second, mut b) = make();
    let (third, mut c) = make();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..messages {
                let mut message = receive(&mut a);
                message.body[1] += 1;
                send(&second, message);
            }
        });
        scope.spawn(move || {
            for _ in 0..messages {
                let mut message = receive(&mut b);
                message.body[1] += 1;
                send(&third, message);
            }
        });
        let last = scope.spawn(move || {
            let mut check = Check::default();
            while check.count() < messages {
                check.take(&receive(&mut c));
            }
        });
        let begin = Instant::now();
        for number in 0..messages {
            send(&first, Message::new(0, number));
        }
        last.join().expect("a failed check ends the run");
        begin.elapsed()
    })
}

/// Three rings in a row.
pub fn ring_pipeline(messages: u64) -> Duration {
    unpinned(move || {
        four_threads(
            messages,
            || {
                let ring = Arc::new(ArrayQueue::new(CAPACITY));
                (Arc::clone(&ring), ring)
            },
            |ring, message| push(ring, message),
            |ring| pop(ring),
        )
    })
}

/// Three channels in a row.
pub fn channel_pipeline(messages: u64) -> Duration {
    unpinned(move || {
        four_threads(
            messages,
            || crossbeam_channel::bounded(CAPACITY),
            |sender, message| sender.send(message).expect("the receiver lives"),
            |receiver| receiver.recv().expect("the sender lives"),
        )
    })
}

/// tokio's channels between tasks on two workers.
pub fn tokio_pipeline(messages: u64) -> Duration {
    unpinned(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .expect("a runtime starts");
        let pass = |mut from: tokio::sync::mpsc::Receiver<Message>,
                    to: tokio::sync::mpsc::Sender<Message>| async move {
            while let Some(mut message) = from.recv().await {
                message.body[1] += 1;
                to.send(message).await.expect("the receiver lives");
            }
        };
        let (first, a) = tokio::sync::mpsc::channel(CAPACITY);
        let (second, b) = tokio::sync::mpsc::channel(CAPACITY);
        let (third, mut c) = tokio::sync::mpsc::channel(CAPACITY);
        runtime.spawn(pass(a, second));
        runtime.spawn(pass(b, third));
        let last = runtime.spawn(async move {
            let mut check = Check::default();
            while check.count() < messages {
                check.take(&c.recv().await.expect("the sender lives"));
            }
        });
        let begin = Instant::now();
        runtime.spawn(async move {
            for number in 0..messages {
                first.send(Message::new(0, number)).await.expect("the receiver lives");
            }
        });
        runtime.block_on(last).expect("a failed check ends the run");
        begin.elapsed()
    })
}

/// One producer that sends each message into three channels.
pub fn channel_fan(messages: u64) -> Duration {
    unpinned(move || {
        std::thread::scope(|scope| {
            let mut senders = Vec::new();
            let mut receivers = Vec::new();
            for _ in 0..3 {
                let (sender, receiver) = crossbeam_channel::bounded::<Message>(CAPACITY);
                senders.push(sender);
                receivers.push(scope.spawn(move || {
                    let mut check = Check::default();
                    while check.count() < messages {
                        check.take(&receiver.recv().expect("the sender lives"));
                    }
                }));
            }
            let begin = Instant::now();
            for number in 0..messages {
                for sender in &senders {
                    sender.send(Message::new(0, number)).expect("the receiver lives");
                }
            }
            for receiver in receivers {
                receiver.join().expect("a failed check ends the run");
            }
            begin.elapsed()
        })
    })
}

/// Runs on a thread that may use every core, whatever the caller was pinned to.
fn unpinned(body: impl FnOnce() -> Duration + Send) -> Duration {
    free();
    body()
}

//! What is sent: 64 bytes, and the check of what arrives.

/// A 64-byte message.
#[derive(Clone, Copy)]
pub struct Message {
    /// Rises by one per sender.
    pub number: u64,
    /// Who sent it.
    pub sender: u64,
    /// Payload, derived from the number.
    pub body: [u64; 6],
}

impl Message {
    /// The message number `number` of `sender`.
    pub fn new(sender: u64, number: u64) -> Self {
        Self { number, sender, body: [number ^ 0x5555; 6] }
    }
}

/// Checks order and payload of everything one receiver gets.
#[derive(Default)]
pub struct Check {
    next: u64,
    sum: u64,
}

impl Check {
    /// Takes one message.
    ///
    /// # Panics
    /// When it is not the next one, or its payload is not its own.
    #[inline]
    pub fn take(&mut self, message: &Message) {
        assert_eq!((message.sender, message.number), (0, self.next), "order or count");
        assert_eq!(message.body[5], message.number ^ 0x5555, "payload");
        self.sum = self.sum.wrapping_add(message.body[0]);
        self.next += 1;
    }

    /// How many came.
    pub fn count(&self) -> u64 {
        self.next
    }
}

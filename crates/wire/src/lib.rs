//! SSH messages to bytes and back: one table of all messages.

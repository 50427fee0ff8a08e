//! Sockets, timers, files and agents: performs what the pure layers ask.

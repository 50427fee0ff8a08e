//! ssh-agent's messages.

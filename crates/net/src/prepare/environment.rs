//! What is sent of the environment: SetEnv and SendEnv.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use sshoal_ssh_config::Session;

/// Names and values, as they are sent: what SendEnv names of our environment, then what SetEnv sets (ssh.c,
/// client_session2_setup). A variable that both name is sent once, with SetEnv's value.
pub(super) fn of(session: &Session) -> Vec<(Vec<u8>, Vec<u8>)> {
    let set = &session.set_env.value;
    if set.is_empty() && session.send_env.is_empty() {
        return Vec::new();
    }
    let is_set = |name: &str| set.iter().any(|(other, _)| other == name);
    let ours = std::env::vars_os().filter(|(name, _)| {
        name.to_str()
            .is_some_and(|name| session.sends(name) && !is_set(name))
    });
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = ours
        .map(|(name, value)| (OsString::into_vec(name), OsString::into_vec(value)))
        .collect();
    all.sort();
    all.extend(
        set.iter()
            .map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes())),
    );
    all
}

//! Command lines of ssh_config.

use sshoal_spawn::Command;

/// A command line as ssh runs it: by the user's shell (`execute_in_shell`, readconf.c; `ssh_proxy_connect`,
/// sshconnect.c).
pub(crate) fn command(line: &str) -> Command {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| "/bin/sh".into());
    let mut command = Command::new(shell);
    command.arg("-c").arg(line);
    command
}

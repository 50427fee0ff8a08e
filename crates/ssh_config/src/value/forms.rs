//! Values with a form of their own, brought into the words of `ssh -G`
//! (`process_config_line_depth` and `dump_client_config`, readconf.c).

use std::vec::IntoIter;

use super::number::{integer, seconds};
use super::required;

/// Reads a keyword's arguments and says what `ssh -G` would.
pub(crate) type Form = fn(&mut IntoIter<String>) -> Result<String, String>;

/// `ControlPersist`: a flag, or how long; 0 is for as long as it likes.
pub(crate) fn control_persist(arguments: &mut IntoIter<String>) -> Result<String, String> {
    let argument = required(arguments.next())?;
    Ok(match argument.as_str() {
        "no" | "false" => "no".into(),
        "yes" | "true" => "yes".into(),
        time => match seconds(time)? {
            0 => "yes".into(),
            seconds => seconds.to_string(),
        },
    })
}

/// `EscapeChar`: a character, `^` and a letter, or `none`.
pub(crate) fn escape_char(arguments: &mut IntoIter<String>) -> Result<String, String> {
    let argument = required(arguments.next())?;
    match argument.as_bytes() {
        b"none" => Ok("none".into()),
        &[c] => Ok(visible(c)),
        &[b'^', c] if (64..128).contains(&c) => Ok(visible(c & 31)),
        _ => Err(format!("bad escape character \"{argument}\"")),
    }
}

/// `vis` (vis.c) with `VIS_WHITE`.
fn visible(c: u8) -> String {
    match c {
        b'\\' => r"\\".into(),
        b' ' | b'\t' | b'\n' => format!("\\{c:03o}"),
        0..=31 | 127 => format!("\\^{}", char::from(c ^ 64)),
        _ => char::from(c).into(),
    }
}

/// `StreamLocalBindMask`: octal digits, and whatever follows them.
pub(crate) fn stream_local_bind_mask(arguments: &mut IntoIter<String>) -> Result<String, String> {
    let argument = required(arguments.next())?;
    let text = argument.trim_start();
    let digits = text.strip_prefix('+').unwrap_or(text);
    let end = digits
        .find(|c: char| !c.is_digit(8))
        .unwrap_or(digits.len());
    match u32::from_str_radix(&digits[..end], 8) {
        Ok(0) => Ok("00".into()),
        Ok(mask @ 1..=0o777) => Ok(format!("0{mask:o}")),
        _ => Err(format!("bad mask \"{argument}\": give 0 to 0777 in octal")),
    }
}

/// Largest number of a tunnel device (`SSH_TUNID_MAX`, misc.h).
const MAX_TUNNEL: u32 = 0x7fff_ffff - 2;

/// `TunnelDevice LOCAL[:REMOTE]` (`a2tun`, misc.c).
pub(crate) fn tunnel_device(arguments: &mut IntoIter<String>) -> Result<String, String> {
    let argument = required(arguments.next())?;
    let device = |text: &str| match text {
        any if any.eq_ignore_ascii_case("any") => Ok("any".to_string()),
        number => integer(number)
            .ok()
            .filter(|&number| number <= MAX_TUNNEL)
            .map(|number| number.to_string())
            .ok_or_else(|| format!("bad tunnel device \"{argument}\"")),
    };
    let (local, remote) = argument.split_once(':').unwrap_or((&argument, "any"));
    Ok(format!("{}:{}", device(local)?, device(remote)?))
}

/// Types of service by name (`ipqos`, misc.c).
const TYPES_OF_SERVICE: &[(&str, u8)] = &[
    ("af11", 0x28),
    ("af12", 0x30),
    ("af13", 0x38),
    ("af21", 0x48),
    ("af22", 0x50),
    ("af23", 0x58),
    ("af31", 0x68),
    ("af32", 0x70),
    ("af33", 0x78),
    ("af41", 0x88),
    ("af42", 0x90),
    ("af43", 0x98),
    ("cs0", 0x00),
    ("cs1", 0x20),
    ("cs2", 0x40),
    ("cs3", 0x60),
    ("cs4", 0x80),
    ("cs5", 0xa0),
    ("cs6", 0xc0),
    ("cs7", 0xe0),
    ("ef", 0xb8),
    ("le", 0x04),
    ("va", 0xb0),
];

/// Names from before DSCP, which OpenSSH 10.1 and later take for `none`.
const OLD_TYPES_OF_SERVICE: [&str; 3] = ["lowdelay", "throughput", "reliability"];

/// `IPQoS INTERACTIVE [BULK]`; one stands for both.
pub(crate) fn ip_qos(arguments: &mut IntoIter<String>) -> Result<String, String> {
    let interactive = type_of_service(&required(arguments.next())?)?;
    let bulk = match arguments.next() {
        Some(argument) => type_of_service(&argument)?,
        None => interactive.clone(),
    };
    Ok(format!("{interactive} {bulk}"))
}

/// `parse_ipqos` and `iptos2str` (misc.c). Numbers may be hexadecimal or octal, as they may before
/// OpenSSH 10.3.
fn type_of_service(argument: &str) -> Result<String, String> {
    let name = argument.to_ascii_lowercase();
    if name == "none" || OLD_TYPES_OF_SERVICE.contains(&name.as_str()) {
        return Ok("none".into());
    }
    if TYPES_OF_SERVICE.iter().any(|row| row.0 == name) {
        return Ok(name);
    }
    let number = match (name.strip_prefix("0x"), name.strip_prefix('0')) {
        (Some(digits), _) => u8::from_str_radix(digits, 16),
        (None, Some(digits)) if !digits.is_empty() => u8::from_str_radix(digits, 8),
        _ => name.parse(),
    };
    let number = number.map_err(|_| format!("bad IPQoS value \"{argument}\""))?;
    let known = TYPES_OF_SERVICE.iter().find(|row| row.1 == number);
    Ok(known.map_or_else(|| format!("0x{number:02x}"), |row| row.0.into()))
}

/// `ObscureKeystrokeTiming`: a flag, or `interval:` and milliseconds, of which 20 is yes.
pub(crate) fn obscure_keystroke_timing(arguments: &mut IntoIter<String>) -> Result<String, String> {
    let argument = required(arguments.next())?;
    match argument.as_str() {
        "yes" | "true" | "interval:20" => return Ok("yes".into()),
        "no" | "false" => return Ok("no".into()),
        _ => {}
    }
    let interval = argument
        .strip_prefix("interval:")
        .ok_or_else(|| format!("unsupported value \"{argument}\""))?;
    match integer(interval)? {
        20 => Ok("yes".into()),
        interval @ 1..=1000 => Ok(interval.to_string()),
        _ => Err(format!("\"{interval}\" ms is not 1 to 1000")),
    }
}

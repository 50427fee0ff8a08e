//! Numbers, ports, times and sizes.

use std::time::Duration;

/// `atoi_err` (misc.c): 0 to 2^31-1.
pub(crate) fn integer(text: &str) -> Result<u32, String> {
    let digits = text
        .trim_start()
        .strip_prefix('+')
        .unwrap_or(text.trim_start());
    digits
        .parse::<u32>()
        .ok()
        .filter(|number| i32::try_from(*number).is_ok())
        .ok_or_else(|| format!("\"{text}\" is not a number from 0 to {}", i32::MAX))
}

/// `a2port` (misc.c), but of the services only ssh's own name; 0 where it may be chosen.
pub(crate) fn port_or_zero(text: &str) -> Option<u16> {
    if text == "ssh" {
        return Some(22);
    }
    u16::try_from(integer(text).ok()?).ok()
}

/// A port that can be connected to.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    port_or_zero(text)
        .filter(|&port| port > 0)
        .ok_or_else(|| format!("bad port \"{text}\": give a number from 1 to 65535"))
}

/// A time, or `none`.
pub(crate) fn time_or_none(text: &str) -> Result<Option<u32>, String> {
    if text == "none" {
        Ok(None)
    } else {
        seconds(text).map(Some)
    }
}

/// `convtime` (misc.c): `90`, `1m30s`, `1h`, `2d`, `1w`; seconds may have a fraction, which is
/// dropped.
pub(crate) fn seconds(text: &str) -> Result<u32, String> {
    let invalid = || format!("\"{text}\" is not a time: write 90, 1m30s, 2h or the like");
    let mut total = 0f64;
    let mut seen_seconds = false;
    let mut rest = text;
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let unit = after.chars().next();
        let per_unit = match unit.map(|c| c.to_ascii_lowercase()) {
            None | Some('s') if !seen_seconds => {
                seen_seconds = true;
                1f64
            }
            Some('m') => 60f64,
            Some('h') => 3600f64,
            Some('d') => 86_400f64,
            Some('w') => 604_800f64,
            _ => return Err(invalid()),
        };
        if number.contains('.') && (per_unit > 1f64 || number.ends_with('.')) {
            return Err(invalid());
        }
        total += number.parse::<f64>().map_err(|_| invalid())? * per_unit;
        rest = &after[unit.map_or(0, char::len_utf8)..];
    }
    if total > f64::from(i32::MAX) {
        return Err(invalid());
    }
    Ok(total as u32)
}

/// `scan_scaled` (fmt_scaled.c): a number with B, K, M, G, T, P or E behind it, powers of 1024;
/// a fraction counts only with such a unit.
pub(crate) fn scaled(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut units = unit.chars();
    let scale: u64 = match units.next().map(|c| c.to_ascii_uppercase()) {
        None | Some('B') => 1,
        Some(c) => 1024u64.checked_pow(" KMGTPE".find(c).filter(|&at| at > 0)? as u32)?,
    };
    if units.next().is_some_and(|c| c.is_ascii_alphanumeric()) || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let fraction: f64 = if fraction.is_empty() {
        0.
    } else {
        format!("0.{fraction}").parse().ok()?
    };
    let bytes = whole
        .checked_mul(scale)?
        .checked_add((fraction * scale as f64) as u64)?;
    i64::try_from(bytes).is_ok().then_some(bytes)
}

/// The seconds of a time as a duration.
pub(crate) fn duration(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

//! A terminal's modes as SSH has them (RFC 4254 section 8), read from the passenger's own before it makes it raw.

use std::os::fd::AsFd;

use rustix::termios::{
    ControlModes, InputModes, LocalModes, OutputModes, SpecialCodeIndex, Termios, tcgetattr,
    tcgetwinsize,
};
use sshoal_proto::Pty;

const TTY_OP_END: u8 = 0;
const TTY_OP_ISPEED: u8 = 128;
const TTY_OP_OSPEED: u8 = 129;
/// "255 indicates that the value is not to be used" (section 8).
const DISABLED: u32 = 255;

const CODES: [(u8, SpecialCodeIndex); 14] = [
    (1, SpecialCodeIndex::VINTR),
    (2, SpecialCodeIndex::VQUIT),
    (3, SpecialCodeIndex::VERASE),
    (4, SpecialCodeIndex::VKILL),
    (5, SpecialCodeIndex::VEOF),
    (6, SpecialCodeIndex::VEOL),
    (7, SpecialCodeIndex::VEOL2),
    (8, SpecialCodeIndex::VSTART),
    (9, SpecialCodeIndex::VSTOP),
    (10, SpecialCodeIndex::VSUSP),
    (12, SpecialCodeIndex::VREPRINT),
    (13, SpecialCodeIndex::VWERASE),
    (14, SpecialCodeIndex::VLNEXT),
    (18, SpecialCodeIndex::VDISCARD),
];

const INPUT: [(u8, InputModes); 13] = [
    (30, InputModes::IGNPAR),
    (31, InputModes::PARMRK),
    (32, InputModes::INPCK),
    (33, InputModes::ISTRIP),
    (34, InputModes::INLCR),
    (35, InputModes::IGNCR),
    (36, InputModes::ICRNL),
    (37, InputModes::IUCLC),
    (38, InputModes::IXON),
    (39, InputModes::IXANY),
    (40, InputModes::IXOFF),
    (41, InputModes::IMAXBEL),
    // RFC 8160.
    (42, InputModes::IUTF8),
];

const LOCAL: [(u8, LocalModes); 13] = [
    (50, LocalModes::ISIG),
    (51, LocalModes::ICANON),
    (52, LocalModes::XCASE),
    (53, LocalModes::ECHO),
    (54, LocalModes::ECHOE),
    (55, LocalModes::ECHOK),
    (56, LocalModes::ECHONL),
    (57, LocalModes::NOFLSH),
    (58, LocalModes::TOSTOP),
    (59, LocalModes::IEXTEN),
    (60, LocalModes::ECHOCTL),
    (61, LocalModes::ECHOKE),
    (62, LocalModes::PENDIN),
];

const OUTPUT: [(u8, OutputModes); 6] = [
    (70, OutputModes::OPOST),
    (71, OutputModes::OLCUC),
    (72, OutputModes::ONLCR),
    (73, OutputModes::OCRNL),
    (74, OutputModes::ONOCR),
    (75, OutputModes::ONLRET),
];

/// The pseudo-terminal that is like this one. Where it is none (`ssh -tt`) the server's own modes hold.
pub(crate) fn pty(term: String, terminal: impl AsFd) -> Pty {
    let (columns, rows) = size(&terminal).unwrap_or_default();
    let modes = tcgetattr(&terminal).map(|termios| modes(&termios));
    Pty {
        term,
        columns,
        rows,
        modes: modes.unwrap_or_else(|_| vec![TTY_OP_END]),
    }
}

/// Columns and rows.
pub(crate) fn size(terminal: impl AsFd) -> Option<(u32, u32)> {
    let size = tcgetwinsize(terminal).ok()?;
    Some((size.ws_col.into(), size.ws_row.into()))
}

fn modes(termios: &Termios) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |code: u8, value: u32| {
        out.push(code);
        out.extend_from_slice(&value.to_be_bytes());
    };
    put(TTY_OP_ISPEED, termios.input_speed());
    put(TTY_OP_OSPEED, termios.output_speed());
    for (code, index) in CODES {
        put(
            code,
            match termios.special_codes[index] {
                0 => DISABLED,
                octet => octet.into(),
            },
        );
    }
    for (code, mode) in INPUT {
        put(code, termios.input_modes.contains(mode).into());
    }
    for (code, mode) in LOCAL {
        put(code, termios.local_modes.contains(mode).into());
    }
    for (code, mode) in OUTPUT {
        put(code, termios.output_modes.contains(mode).into());
    }
    let width = termios.control_modes & ControlModes::CSIZE;
    put(90, (width == ControlModes::CS7).into());
    put(91, (width == ControlModes::CS8).into());
    put(
        92,
        termios.control_modes.contains(ControlModes::PARENB).into(),
    );
    put(
        93,
        termios.control_modes.contains(ControlModes::PARODD).into(),
    );
    out.push(TTY_OP_END);
    out
}

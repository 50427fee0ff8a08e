//! The tracer: a program that follows one login on the host itself (`main.rs` says how), built static for each processor that a
//! host may have, and carried in the program that sends it there.
//!
//! It is compiled from this crate's own sources by `build.rs`, for musl where that processor's std is installed, and otherwise
//! for glibc, in either case without any library to look for at run time. Where no compiler for a processor is there, this
//! build has no tracer for it: [`program`] says so.

/// A processor that a host may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    /// AMD's and Intel's, 64 bits.
    X86_64,
    /// ARM's, 64 bits.
    Aarch64,
}

impl Processor {
    /// By what `uname -m` says.
    pub fn of_machine(machine: &str) -> Option<Processor> {
        match machine {
            "x86_64" | "amd64" => Some(Processor::X86_64),
            "aarch64" | "arm64" => Some(Processor::Aarch64),
            _ => None,
        }
    }
}

/// The tracer for a processor, an ELF file; `None` if this build has none.
pub fn program(processor: Processor) -> Option<&'static [u8]> {
    let program: &[u8] = match processor {
        Processor::X86_64 => include_bytes!(concat!(env!("OUT_DIR"), "/tracer-x86_64")),
        Processor::Aarch64 => include_bytes!(concat!(env!("OUT_DIR"), "/tracer-aarch64")),
    };
    (!program.is_empty()).then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_is_a_program_of_that_processor_that_needs_no_other_file() {
        // e_machine of elf(5): EM_X86_64 and EM_AARCH64.
        for (processor, machine) in [(Processor::X86_64, 62_u8), (Processor::Aarch64, 183)] {
            let Some(program) = program(processor) else {
                assert!(processor != here(), "none for this machine");
                continue;
            };
            assert!(program.starts_with(b"\x7fELF\x02\x01"));
            assert_eq!(program[18], machine);
            assert!(!has_interpreter(program));
        }
    }

    fn here() -> Processor {
        Processor::of_machine(std::env::consts::ARCH).expect("a processor of the two")
    }

    /// A program header PT_INTERP (elf(5)).
    fn has_interpreter(program: &[u8]) -> bool {
        let number = |at: usize, length: usize| {
            let octets = &program[at..at + length];
            octets
                .iter()
                .rev()
                .fold(0_usize, |sum, octet| sum << 8 | usize::from(*octet))
        };
        let (offset, size, count) = (number(32, 8), number(54, 2), number(56, 2));
        (0..count).any(|header| number(offset + header * size, 4) == 3)
    }
}

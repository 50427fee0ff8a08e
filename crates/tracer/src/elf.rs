//! Where a shared library has its functions: as little of ELF (elf(5), 64 bits, of this processor's order) as that takes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A library whose tables are larger is none.
const MAX_TABLE: u64 = 16 * 1024 * 1024;
const FILE_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;
const PT_LOAD: u32 = 1;
const SHT_DYNSYM: u32 = 11;
const STT_FUNC: u8 = 2;

/// The offsets in a library's file at which functions begin, by name: all that `wanted` takes.
///
/// # Errors
///
/// It cannot be read, or is no such library.
pub(crate) fn functions(
    path: &Path,
    wanted: impl Fn(&str) -> bool,
) -> io::Result<Vec<(String, u64)>> {
    let file = File::open(path)?;
    let header = read(&file, 0, FILE_HEADER as u64)?;
    if !header.starts_with(b"\x7fELF\x02") {
        return Err(io::Error::other("it is no ELF file of 64 bits"));
    }
    let segments = table(&file, long(&header, 32), short(&header, 56), PROGRAM_HEADER)?;
    let sections = table(&file, long(&header, 40), short(&header, 60), SECTION_HEADER)?;
    let section = |at: usize| sections.chunks_exact(SECTION_HEADER).nth(at);
    let symbols = sections
        .chunks_exact(SECTION_HEADER)
        .find(|section| word(section, 4) == SHT_DYNSYM)
        .ok_or_else(|| io::Error::other("it has no symbols"))?;
    let strings = section(word(symbols, 40) as usize)
        .ok_or_else(|| io::Error::other("its symbols have no names"))?;
    let names = read(&file, long(strings, 24), long(strings, 32))?;
    let symbols = read(&file, long(symbols, 24), long(symbols, 32))?;
    let mut found = Vec::new();
    for symbol in symbols.chunks_exact(SYMBOL) {
        let (name, address) = (word(symbol, 0) as usize, long(symbol, 8));
        let is_function = symbol[4] & 0xf == STT_FUNC && address != 0;
        let name = names
            .get(name..)
            .and_then(|rest| rest.split(|octet| *octet == 0).next());
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        if let Some(name) = name.filter(|name| is_function && wanted(name))
            && let Some(offset) = file_offset(&segments, address)
        {
            found.push((name.to_owned(), offset));
        }
    }
    found.sort();
    // One function may have several versions; the same place is probed once.
    found.dedup_by(|one, other| one.1 == other.1);
    Ok(found)
}

/// Where an address of the library stands in its file.
fn file_offset(segments: &[u8], address: u64) -> Option<u64> {
    let loaded = segments
        .chunks_exact(PROGRAM_HEADER)
        .filter(|segment| word(segment, 0) == PT_LOAD);
    loaded
        .map(|segment| (long(segment, 8), long(segment, 16), long(segment, 32)))
        .find(|(_, begin, size)| (*begin..begin.saturating_add(*size)).contains(&address))
        .map(|(offset, begin, _)| address - begin + offset)
}

fn table(file: &File, offset: u64, count: u16, size: usize) -> io::Result<Vec<u8>> {
    read(file, offset, u64::from(count) * size as u64)
}

fn read(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    if length > MAX_TABLE {
        return Err(io::Error::other("a table of it is too long"));
    }
    let mut octets = vec![0; length as usize];
    file.read_exact_at(&mut octets, offset)?;
    Ok(octets)
}

fn short(octets: &[u8], at: usize) -> u16 {
    octets
        .get(at..at + 2)
        .and_then(|part| part.try_into().ok())
        .map_or(0, u16::from_ne_bytes)
}

fn word(octets: &[u8], at: usize) -> u32 {
    octets
        .get(at..at + 4)
        .and_then(|part| part.try_into().ok())
        .map_or(0, u32::from_ne_bytes)
}

fn long(octets: &[u8], at: usize) -> u64 {
    octets
        .get(at..at + 8)
        .and_then(|part| part.try_into().ok())
        .map_or(0, u64::from_ne_bytes)
}

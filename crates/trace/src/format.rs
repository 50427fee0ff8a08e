//! Descriptions of the kernel's events (`events/SYSTEM/EVENT/format`): where each field of a record stands. They differ from
//! kernel to kernel, and so every host sends its own.

/// Most fields of an event.
const MAX_FIELDS: usize = 128;
/// Longest string that is taken out of a record.
const MAX_TEXT: usize = 512;

/// One event's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Format {
    /// "SYSTEM/EVENT".
    pub(crate) name: String,
    /// What its records begin with.
    pub(crate) id: u16,
    fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    offset: usize,
    size: usize,
    /// `__data_loc`: four octets say where in the record the text stands, and how long it is.
    is_elsewhere: bool,
}

impl Format {
    /// Reads one; `None` if that is none.
    pub(crate) fn parse(text: &str) -> Option<Format> {
        let (name, rest) = text.split_once('\n')?;
        let id = rest.lines().find_map(|line| line.strip_prefix("ID: "))?;
        let fields = rest.lines().filter_map(field).take(MAX_FIELDS);
        Some(Format {
            name: name.to_owned(),
            id: id.trim().parse().ok()?,
            fields: fields.collect(),
        })
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// A whole number of a record, of up to eight octets; negative ones as their two's complement.
    pub(crate) fn number(&self, record: &[u8], name: &str) -> Option<u64> {
        let field = self.field(name)?;
        let octets = record.get(field.offset..field.offset.checked_add(field.size)?)?;
        let mut whole = [0; 8];
        whole.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(u64::from_le_bytes(whole))
    }

    /// A process number.
    pub(crate) fn pid(&self, record: &[u8], name: &str) -> Option<u32> {
        u32::try_from(self.number(record, name)?).ok()
    }

    /// A text of a record, up to its first NUL; `None` if the kernel could not read it where it stood, too.
    pub(crate) fn text(&self, record: &[u8], name: &str) -> Option<String> {
        let field = self.field(name)?;
        let (offset, size) = match field.is_elsewhere {
            true => {
                let place = self.number(record, name)?;
                if place >> 16 == 0 {
                    return None;
                }
                ((place & 0xffff) as usize, (place >> 16 & 0xffff) as usize)
            }
            false => (field.offset, field.size),
        };
        let octets = record.get(offset..offset.checked_add(size)?)?;
        let octets = &octets[..octets.len().min(MAX_TEXT)];
        let octets = octets.split(|octet| *octet == 0).next()?;
        Some(String::from_utf8_lossy(octets).into_owned())
    }

    /// Octets of a record as they are.
    pub(crate) fn octets<'r>(&self, record: &'r [u8], name: &str) -> Option<&'r [u8]> {
        let field = self.field(name)?;
        record.get(field.offset..field.offset.checked_add(field.size)?)
    }
}

/// `field:pid_t prev_pid; offset:24; size:4; signed:1;`
fn field(line: &str) -> Option<Field> {
    let mut parts = line
        .trim()
        .strip_prefix("field:")?
        .split(';')
        .map(str::trim);
    let declaration = parts.next()?;
    let mut number = |prefix: &str| parts.next()?.strip_prefix(prefix)?.parse().ok();
    let (offset, size) = (number("offset:")?, number("size:")?);
    // Of an array the name ends where its length begins.
    let name = declaration.rsplit(' ').next()?;
    Some(Field {
        name: name.split('[').next()?.to_owned(),
        offset,
        size,
        is_elsewhere: declaration.starts_with("__data_loc"),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    /// Of Linux 6.18.
    pub(crate) const EXEC: &str = "sched/sched_process_exec
name: sched_process_exec
ID: 365
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;
\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;
\tfield:pid_t old_pid;\toffset:16;\tsize:4;\tsigned:1;
";

    fn exec(filename: &[u8], place: u32) -> Vec<u8> {
        let mut record = vec![0x6d, 1, 0, 0, 42, 0, 0, 0];
        record.extend(place.to_le_bytes());
        record.extend(42_u32.to_le_bytes());
        record.extend(42_u32.to_le_bytes());
        record.extend(filename);
        record
    }

    #[test]
    fn fields_are_found_where_the_description_says() {
        let format = Format::parse(EXEC).unwrap();
        assert_eq!(
            (format.name.as_str(), format.id),
            ("sched/sched_process_exec", 365)
        );
        let record = exec(b"/bin/sh\0", 8 << 16 | 20);
        assert_eq!(format.pid(&record, "common_pid"), Some(42));
        assert_eq!(format.text(&record, "filename").as_deref(), Some("/bin/sh"));
        assert_eq!(format.number(&record, "nothing"), None);
        // It points out of the record.
        assert_eq!(
            format.text(&exec(b"/bin/sh\0", 9 << 16 | 20), "filename"),
            None
        );
    }

    #[test]
    fn arrays_are_named_without_their_length() {
        let line = "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;";
        let found = field(line).unwrap();
        assert_eq!(
            (found.name.as_str(), found.offset, found.size),
            ("prev_comm", 8, 16)
        );
        assert_eq!(field("\tfield:int x;\toffset:-1;\tsize:4;"), None);
    }

    proptest! {
        #[test]
        fn no_record_and_no_description_are_too_much(text: String, record: Vec<u8>, offset: u32, size: u32) {
            let _ = Format::parse(&text);
            let described = format!("a/b\nID: 1\n\tfield:__data_loc char[] x;\toffset:{offset};\tsize:{size};\n");
            let format = Format::parse(&described).unwrap();
            let _ = (format.text(&record, "x"), format.number(&record, "x"), format.octets(&record, "x"));
        }
    }
}

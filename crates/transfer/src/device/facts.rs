//! What is known of a block device, and whether it may be written.

use super::segments::Geometry;
use crate::Trouble;

/// A block device, as the host's kernel tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Device {
    /// What the kernel calls it: `sda1`.
    pub(crate) name: Vec<u8>,
    /// Octets.
    pub(crate) size: Option<u64>,
    pub(crate) is_read_only: bool,
    /// Major and minor number.
    pub(crate) number: Option<(u32, u32)>,
    /// Octets of what the medium writes at once.
    pub(crate) physical: Option<u64>,
    /// Octets of the least that may be written.
    pub(crate) logical: Option<u64>,
    /// /proc/self/mountinfo.
    pub(crate) mounts: Vec<u8>,
    /// /proc/swaps.
    pub(crate) swaps: Vec<u8>,
}

impl Device {
    /// How large it is, if it may be written, with an image of so many octets as far as that is known.
    pub(crate) fn admits(&self, image: Option<u64>) -> Result<u64, Trouble> {
        let Some(size) = self.size else {
            return Err(Trouble::DeviceUnknown);
        };
        if let Some(by) = self.used_by() {
            return Err(Trouble::DeviceInUse(by));
        }
        if self.is_read_only {
            return Err(Trouble::DeviceReadOnly);
        }
        match image {
            Some(image) if image > size => Err(Trouble::DeviceTooSmall { image, size }),
            _ => Ok(size),
        }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        Geometry::of(self.physical, self.logical)
    }

    /// What it, or a partition of it, is mounted as or swapped to.
    pub(crate) fn used_by(&self) -> Option<String> {
        let mounts = self.mounts.split(|&octet| octet == b'\n');
        let mounted = mounts.filter_map(|line| self.mounted(line)).next();
        let swaps = self.swaps.split(|&octet| octet == b'\n').skip(1);
        let mut swaps = swaps.filter(|line| {
            let path = line.split(|octet| octet.is_ascii_whitespace()).next();
            path.is_some_and(|path| self.is_me(path))
        });
        mounted.or_else(|| swaps.next().map(|_| "it is swap space".to_owned()))
    }

    /// Where it is mounted, if it is this line of /proc/self/mountinfo: numbers of mount and parent, major:minor, root,
    /// mount point, options, optional fields, a dash, type, source, options.
    fn mounted(&self, line: &[u8]) -> Option<String> {
        let fields: Vec<&[u8]> = line.split(|&octet| octet == b' ').collect();
        let (number, point) = (fields.get(2)?, fields.get(4)?);
        let dash = fields.iter().position(|field| *field == b"-")?;
        let source = fields.get(dash + 2).copied().unwrap_or_default();
        let is_number = |(major, minor)| format!("{major}:{minor}").as_bytes() == *number;
        let is_mine = self.number.is_some_and(is_number) || self.is_me(source);
        is_mine.then(|| format!("it is mounted on {}", String::from_utf8_lossy(point)))
    }

    /// Whether a path of /dev is this device, or a partition of it.
    fn is_me(&self, path: &[u8]) -> bool {
        let Some(rest) = path
            .strip_prefix(b"/dev/")
            .filter(|_| !self.name.is_empty())
            .and_then(|name| name.strip_prefix(self.name.as_slice()))
        else {
            return false;
        };
        // sda1, but nvme0n1p1: a name that ends in a digit has a p behind it.
        let ends_in_digit = self.name.last().is_some_and(u8::is_ascii_digit);
        let partition = match (rest, ends_in_digit) {
            (b"", _) => return true,
            (rest, true) => rest.strip_prefix(b"p"),
            (rest, false) => Some(rest),
        };
        partition.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, number: (u32, u32)) -> Device {
        Device {
            name: name.as_bytes().to_vec(),
            size: Some(1 << 20),
            number: Some(number),
            mounts: b"22 1 8:2 / / rw - ext4 /dev/sda2 rw\n\
                40 22 0:40 / /pool rw,noatime shared:7 master:1 - btrfs /dev/nvme0n1p3 rw\n"
                .to_vec(),
            swaps: b"Filename Type Size Used Priority\n/dev/sdb1   partition 1048572 0 -2\n"
                .to_vec(),
            ..Device::default()
        }
    }

    #[test]
    fn what_is_mounted_or_swapped_to_is_in_use_and_so_is_the_disk_that_it_is_on() {
        for (name, number, by) in [
            ("sda2", (8, 2), Some("it is mounted on /")),
            ("sda", (8, 0), Some("it is mounted on /")),
            ("renamed", (8, 2), Some("it is mounted on /")),
            ("sda1", (8, 1), None),
            ("sda20", (8, 20), None),
            ("nvme0n1", (259, 0), Some("it is mounted on /pool")),
            ("nvme0n1p3", (259, 3), Some("it is mounted on /pool")),
            ("nvme0n1p30", (259, 30), None),
            ("nvme0n", (259, 9), None),
            ("sdb", (8, 16), Some("it is swap space")),
            ("sdb1", (8, 17), Some("it is swap space")),
            ("sdb11", (8, 27), None),
            ("", (9, 9), None),
        ] {
            let used = device(name, number).used_by();
            assert_eq!(used.as_deref(), by, "{name}");
        }
    }

    #[test]
    fn a_device_is_written_only_if_all_is_known_and_nothing_speaks_against_it() {
        let free = device("sdc", (8, 32));
        assert_eq!(free.admits(Some(1 << 20)), Ok(1 << 20));
        assert_eq!(free.admits(None), Ok(1 << 20));
        let (image, size) = ((1 << 20) + 1, 1 << 20);
        let too_small = Trouble::DeviceTooSmall { image, size };
        assert_eq!(free.admits(Some(image)), Err(too_small));
        let read_only = Device {
            is_read_only: true,
            ..free.clone()
        };
        assert_eq!(read_only.admits(None), Err(Trouble::DeviceReadOnly));
        let unknown = Device { size: None, ..free };
        assert_eq!(unknown.admits(None), Err(Trouble::DeviceUnknown));
    }
}

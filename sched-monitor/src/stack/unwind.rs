//! The unwinder: finds the return addresses in the copy of a stack.
//!
//! It needs two tables of each *module* (the program, or one of its libraries). `.eh_frame_hdr` is
//! an index of the functions. `.eh_frame` says how to unwind each function. Both are in memory. The
//! unwinder copies them while the loader is locked, because a library may be unloaded at any time
//! afterwards.
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use libc::{c_int, c_void, dl_phdr_info, size_t, ucontext_t};
use std::{ops::Range, slice};

/// The most addresses of one stack.
const DEPTH: usize = 128;

/// A thread's registers. The unwinder begins with them.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    instruction: u64,
    stack: u64,
    frame: u64,
    /// The return address, which this machine keeps in a register.
    #[cfg(target_arch = "aarch64")]
    link: u64,
}

impl Registers {
    pub(super) const NONE: Self = Self {
        instruction: 0,
        stack: 0,
        frame: 0,
        #[cfg(target_arch = "aarch64")]
        link: 0,
    };

    pub(super) fn stack_pointer(self) -> u64 {
        self.stack
    }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use super::{Registers, ucontext_t};
    pub(super) use framehop::x86_64::{CacheX86_64 as Cache, UnwinderX86_64 as Unwinder};

    impl Registers {
        pub(in super::super) fn of(context: &ucontext_t) -> Self {
            let general = &context.uc_mcontext.gregs;
            Self {
                instruction: general[libc::REG_RIP as usize] as u64,
                stack: general[libc::REG_RSP as usize] as u64,
                frame: general[libc::REG_RBP as usize] as u64,
            }
        }

        pub(super) fn for_unwinder(self) -> framehop::x86_64::UnwindRegsX86_64 {
            framehop::x86_64::UnwindRegsX86_64::new(self.instruction, self.stack, self.frame)
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use super::{Registers, ucontext_t};
    pub(super) use framehop::aarch64::{CacheAarch64 as Cache, UnwinderAarch64 as Unwinder};

    impl Registers {
        pub(in super::super) fn of(context: &ucontext_t) -> Self {
            let machine = &context.uc_mcontext;
            Self {
                instruction: machine.pc,
                stack: machine.sp,
                frame: machine.regs[29],
                link: machine.regs[30],
            }
        }

        pub(super) fn for_unwinder(self) -> framehop::aarch64::UnwindRegsAarch64 {
            framehop::aarch64::UnwindRegsAarch64::new(self.link, self.stack, self.frame)
        }
    }
}

/// An unwinder of this process's stacks.
pub(super) struct Unwinder {
    modules: machine::Unwinder<Vec<u8>>,
    cache: machine::Cache,
    /// How many modules the loader had loaded, and how many it had unloaded, at the last `refresh`.
    /// A loader that does not count says zero.
    version: Option<(u64, u64)>,
}

impl Unwinder {
    pub(super) fn new() -> Self {
        Self {
            modules: machine::Unwinder::new(),
            cache: machine::Cache::new(),
            version: None,
        }
    }

    /// Returns the address of the thread's next instruction, and then the return addresses. `stack`
    /// is the memory from the stack pointer on.
    pub(super) fn unwind(&mut self, registers: Registers, stack: &[u64]) -> Vec<usize> {
        self.refresh();
        let mut read = |address: u64| {
            let offset = address.checked_sub(registers.stack).ok_or(())?;
            let word = stack.get((offset / 8) as usize);
            word.copied().filter(|_| offset % 8 == 0).ok_or(())
        };
        let mut frames = self.modules.iter_frames(
            registers.instruction,
            registers.for_unwinder(),
            &mut self.cache,
            &mut read,
        );
        let mut addresses = Vec::new();
        // An error ends the stack, too: the unwinder may not recognise the root of a stack.
        while addresses.len() < DEPTH {
            let Ok(Some(frame)) = frames.next() else {
                break;
            };
            addresses.push(frame.address() as usize);
        }
        addresses
    }

    /// Updates the loaded modules, if they have changed.
    fn refresh(&mut self) {
        let mut search = Search {
            known: self.version,
            version: self.version,
            found: Vec::new(),
        };
        // SAFETY: `visit` has the right type, and gets `search`, which lives until the end of the
        // call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
        if search.version == self.version {
            return;
        }
        *self = Self {
            version: search.version,
            ..Self::new()
        };
        for module in search.found {
            self.modules.add_module(module.into());
        }
    }
}

/// The version that the unwinder knows (`known`), and the loader's answer.
struct Search {
    known: Option<(u64, u64)>,
    version: Option<(u64, u64)>,
    found: Vec<Found>,
}

/// A module's tables. Addresses are relative to its base, except in `code`.
struct Found {
    base: u64,
    code: Range<u64>,
    index: (u64, Vec<u8>),
    frames: (u64, Vec<u8>),
}

impl From<Found> for Module<Vec<u8>> {
    fn from(found: Found) -> Self {
        let range = |(from, bytes): &(u64, Vec<u8>)| Some(*from..from + bytes.len() as u64);
        let sections = ExplicitModuleSectionInfo {
            eh_frame_hdr_svma: range(&found.index),
            eh_frame_svma: range(&found.frames),
            eh_frame_hdr: Some(found.index.1),
            eh_frame: Some(found.frames.1),
            ..ExplicitModuleSectionInfo::default()
        };
        Self::new(String::new(), found.code, found.base, sections)
    }
}

/// Looks at a module. The loader is locked.
unsafe extern "C" fn visit(info: *mut dl_phdr_info, size: size_t, search: *mut c_void) -> c_int {
    // SAFETY: the pointer is to the `Search` of `refresh`, and `refresh` does not use that value
    // while it calls `dl_iterate_phdr`.
    let search = unsafe { &mut *search.cast::<Search>() };
    // SAFETY: the loader passes a valid pointer.
    let info = unsafe { &*info };
    if size >= size_of::<dl_phdr_info>() {
        search.version = Some((info.dlpi_adds, info.dlpi_subs));
        if search.version == search.known {
            return 1; // Nothing has changed: no further call.
        }
    }
    search.found.extend(find(info));
    0
}

/// Copies the tables of a module.
fn find(info: &dl_phdr_info) -> Option<Found> {
    if info.dlpi_phdr.is_null() {
        return None;
    }
    // SAFETY: the loader has this number of headers there.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let range = |header: &libc::Elf64_Phdr| header.p_vaddr..header.p_vaddr + header.p_memsz;
    // Only a segment that is readable, and not writable, may be copied. Linkers put both tables
    // into such a segment.
    let may_copy = |one: &&libc::Elf64_Phdr| {
        one.p_type == libc::PT_LOAD && one.p_flags & (libc::PF_R | libc::PF_W) == libc::PF_R
    };
    let loaded = |at: u64| {
        let segments = headers.iter().filter(may_copy);
        segments.map(range).find(|segment| segment.contains(&at))
    };
    let code = headers
        .iter()
        .filter(|one| one.p_type == libc::PT_LOAD)
        .map(range)
        .reduce(|one, other| one.start.min(other.start)..one.end.max(other.end))?;
    let index = headers
        .iter()
        .find(|one| one.p_type == libc::PT_GNU_EH_FRAME)?;
    let base = info.dlpi_addr;
    let copy = |range: Range<u64>| {
        let from = std::ptr::with_exposed_provenance::<u8>((base + range.start) as usize);
        // SAFETY: the range is in a loaded segment, which stays loaded while the loader is locked.
        // The loader has mapped the segment as readable, and not as writable: no code writes it.
        unsafe { slice::from_raw_parts(from, (range.end - range.start) as usize) }.to_vec()
    };
    loaded(index.p_vaddr).filter(|segment| range(index).end <= segment.end)?;
    let table = copy(range(index));
    // All linkers write version 1, and then 0x1b. The address of `.eh_frame` follows at byte 4. The
    // linker writes it relative to the address of byte 4.
    let (&[1, 0x1b, ..], Some(offset)) = (&table[..], table.get(4..8)) else {
        return None;
    };
    let offset = i32::from_le_bytes(offset.try_into().ok()?);
    let frames = index.p_vaddr.checked_add_signed(i64::from(offset) + 4)?;
    // The end of `.eh_frame` is unknown, but it is not beyond the end of the segment.
    let end = loaded(frames)?.end;
    Some(Found {
        base,
        code: base + code.start..base + code.end,
        index: (index.p_vaddr, table),
        frames: (frames, copy(frames..end)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a module whose one segment begins with the two tables, and looks for them.
    fn find_in_segment_of(flags: u32) -> Option<Found> {
        // The index has its version, the kind of its address, and the distance from byte 4 to
        // `.eh_frame`, which is at byte 16.
        let mut memory = [7_u8; 64];
        memory[..2].copy_from_slice(&[1, 0x1b]);
        memory[4..8].copy_from_slice(&12_i32.to_le_bytes());
        let header = |kind, size| libc::Elf64_Phdr {
            p_type: kind,
            p_flags: flags,
            p_offset: 0,
            p_vaddr: 0,
            p_paddr: 0,
            p_filesz: size,
            p_memsz: size,
            p_align: 1,
        };
        let headers = [header(libc::PT_LOAD, 64), header(libc::PT_GNU_EH_FRAME, 16)];
        // SAFETY: all zeroes are a valid value of a plain C structure.
        let mut info: dl_phdr_info = unsafe { std::mem::zeroed() };
        info.dlpi_addr = memory.as_ptr().expose_provenance() as u64;
        info.dlpi_phdr = headers.as_ptr();
        info.dlpi_phnum = headers.len() as u16;
        find(&info)
    }

    #[test]
    fn tables_of_a_readable_segment_are_found() {
        for flags in [libc::PF_R, libc::PF_R | libc::PF_X] {
            let found = find_in_segment_of(flags).unwrap();
            assert_eq!((found.index.0, found.index.1.len()), (0, 16));
            assert_eq!(found.frames, (16, vec![7; 48]));
        }
    }

    /// Fails if memory is read that may not be readable, or that may be written meanwhile.
    #[test]
    fn tables_of_writable_and_unreadable_segments_are_not_read() {
        for flags in [0, libc::PF_X, libc::PF_W, libc::PF_R | libc::PF_W] {
            assert!(find_in_segment_of(flags).is_none());
        }
    }
}

//! Open files on disks, as descriptors lead to them.
use super::{Done, Errno, FileId, HostId, Network, files::Kind};
use crate::disk::{Ino, Opened, Volume};

impl Network {
    /// Gives an open file a descriptor.
    pub(crate) fn add_on_disk(&mut self, host: HostId, opened: Opened) -> Done<usize> {
        let (disk, ino) = (opened.disk, opened.ino);
        let added = self.add_file(host, true, Kind::OnDisk(opened));
        if added.is_err() {
            self.disks.volume(disk).close(ino);
        }
        added
    }

    pub(crate) fn is_on_disk(&mut self, id: FileId) -> bool {
        matches!(self.file(id).kind, Kind::OnDisk(_))
    }

    /// Returns an open file, and its disk.
    pub(crate) fn on_disk(&mut self, id: FileId) -> Done<(&mut Opened, &mut Volume)> {
        let file = self.files.get_mut(&id).ok_or(Errno::BadDescriptor)?;
        match &mut file.kind {
            Kind::OnDisk(opened) => {
                let volume = self.disks.volume(opened.disk);
                Ok((opened, volume))
            }
            _ => Err(Errno::Invalid),
        }
    }

    /// Locks a file for a descriptor and its duplicates. Returns false if others hold it.
    pub(crate) fn lock_file(&mut self, id: FileId, is_exclusive: bool) -> Done<bool> {
        let (opened, _) = self.on_disk(id)?;
        let key = (opened.disk, opened.ino);
        let lock = self.disks.lock(key);
        let is_locked = lock.take(id, is_exclusive);
        if is_locked {
            // One that was exclusive may be shared now.
            self.out.wakes.extend(lock.take_waiting());
        }
        Ok(is_locked)
    }

    /// Ends the lock of a descriptor, if it has one.
    pub(crate) fn unlock_file(&mut self, id: FileId) {
        if let Ok((opened, _)) = self.on_disk(id) {
            let key = (opened.disk, opened.ino);
            self.release_lock(key, id);
        }
    }

    pub(super) fn release_lock(&mut self, key: (usize, Ino), id: FileId) {
        let waiting = self.disks.unlock(key, id);
        self.out.wakes.extend(waiting);
    }
}

//! A private replacement of `/proc/net`.
//!
//! `/proc/net` is a symbolic link to `self/net`, so no mount below it can be visible to all
//! processes. Another symbolic link can be mounted over it (`move_mount`, Linux 5.2) in a private
//! mount namespace. The mount namespace ends with its last process, so the machine does not change
//! and needs no cleanup.

use std::ffi::{CStr, CString};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::fuse::Connection;
use crate::system::checked;

/// Mount point for the file system. Every Linux has this directory, and it is always empty:
/// `proc_tty_init` keeps it for old programs.
const MOUNT_POINT: &CStr = c"/proc/tty/ldisc";

/// Symbolic link in the root of the file system that replaces `/proc/net`. It must point to
/// [`PrivateMounts::ROOT`].
const LINK: &CStr = c"/proc/tty/ldisc/wirestorm";

/// Private mounts of the thread that created them; dropping the value unmounts them.
///
/// Only that thread and the processes that it starts in the meantime see the mounts. Therefore the
/// value is not `Send`.
#[derive(Debug)]
pub struct PrivateMounts(PhantomData<*const ()>);

impl PrivateMounts {
    /// Path of the file system's root.
    pub const ROOT: &str = "/proc/tty/ldisc";
    /// Name of a link in that root which points to the root.
    pub const LINK: &str = "wirestorm";

    /// Gives the calling thread a private mount namespace and mounts the file system in it. After
    /// that, another thread must serve the connection.
    ///
    /// # Errors
    /// Fails if the process may not mount (`CAP_SYS_ADMIN`), or the kernel has no FUSE.
    pub fn mount(connection: &Connection) -> io::Result<Self> {
        // SAFETY: `unshare` takes flags only. The other threads keep their namespace and directory.
        checked(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
        // Private propagation hides the mounts below from other namespaces.
        mount(c"none", c"/", c"", libc::MS_PRIVATE | libc::MS_REC, c"")?;
        let options = CString::new(connection.mount_options())?;
        mount(c"wirestorm", MOUNT_POINT, c"fuse", libc::MS_NOSUID | libc::MS_NODEV, &options)?;
        Ok(Self(PhantomData))
    }

    /// Mounts the file system's root over `/proc/net`. A thread must already serve the connection.
    ///
    /// # Errors
    /// Fails if the kernel is older than 5.2 or refuses the mount.
    pub fn cover_proc_net(&self) -> io::Result<()> {
        let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | libc::AT_SYMLINK_NOFOLLOW;
        // SAFETY: the path is a null-terminated string.
        let link =
            unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, LINK.as_ptr(), flags) };
        let link = checked(link as libc::c_int)?;
        // SAFETY: the descriptor was just opened and has no other owner.
        let link = unsafe { OwnedFd::from_raw_fd(link) };
        // The mount covers the link /proc/net itself, not the link's target.
        // SAFETY: both paths are null-terminated strings, and the descriptor is open.
        let moved = unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                link.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_FDCWD,
                c"/proc/net".as_ptr(),
                MOVE_MOUNT_F_EMPTY_PATH,
            )
        };
        checked(moved as libc::c_int).map(drop)
    }
}

/// From `linux/mount.h`.
const OPEN_TREE_CLONE: libc::c_int = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;

impl Drop for PrivateMounts {
    fn drop(&mut self) {
        for path in [c"/proc/net", MOUNT_POINT] {
            let flags = libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW;
            // SAFETY: the path is a null-terminated string. If the call fails, the mounts end with
            // the thread.
            unsafe { libc::umount2(path.as_ptr(), flags) };
        }
    }
}

fn mount(
    source: &CStr,
    target: &CStr,
    kind: &CStr,
    flags: libc::c_ulong,
    options: &CStr,
) -> io::Result<()> {
    // SAFETY: all arguments are null-terminated strings.
    checked(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    })
    .map(drop)
}

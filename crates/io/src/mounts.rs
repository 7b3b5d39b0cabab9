//! A `/proc/net` that only some processes see.
//!
//! `/proc/net` is a symbolic link to `self/net`, so nothing can be mounted below it for all
//! processes alike. But another symbolic link can be mounted over this one (`move_mount`, Linux
//! 5.2), in a mount namespace of its own, which goes with the last process in it. So nothing on
//! the machine changes, and nothing has to be changed back.

use std::ffi::{CStr, CString};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::fuse::Connection;
use crate::system::checked;

/// A directory that every Linux has, that is always empty (`proc_tty_init` keeps it for old
/// programs), and that can be mounted on without making one.
const MOUNT_POINT: &CStr = c"/proc/tty/ldisc";

/// The name in the file system's root of the link that is put in place of `/proc/net`. It has to
/// lead to [`PrivateMounts::ROOT`].
const LINK: &CStr = c"/proc/tty/ldisc/wirestorm";

/// The mounts of the thread that made them; dropping it takes them away.
///
/// Only that thread, and the processes that it starts while the value lives, see them; so it stays
/// with the thread.
#[derive(Debug)]
pub struct PrivateMounts(PhantomData<*const ()>);

impl PrivateMounts {
    /// Where the root of the file system is.
    pub const ROOT: &str = "/proc/tty/ldisc";
    /// The name in that root of a link to the root.
    pub const LINK: &str = "wirestorm";

    /// Gives the calling thread mounts of its own, and mounts a file system there. From then on
    /// the connection can, and has to, be served.
    ///
    /// # Errors
    /// Where the process may not mount (`CAP_SYS_ADMIN`), or the kernel has no FUSE.
    pub fn mount(connection: &Connection) -> io::Result<Self> {
        // SAFETY: only flags are passed. The other threads keep their namespace and directory.
        checked(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
        // What is mounted below is to be seen by nobody else.
        mount(c"none", c"/", c"", libc::MS_PRIVATE | libc::MS_REC, c"")?;
        let options = CString::new(connection.mount_options())?;
        mount(c"wirestorm", MOUNT_POINT, c"fuse", libc::MS_NOSUID | libc::MS_NODEV, &options)?;
        Ok(Self(PhantomData))
    }

    /// Puts the file system's root in the place of `/proc/net`; it has to be served already.
    ///
    /// # Errors
    /// Where the kernel is older than 5.2 or refuses.
    pub fn cover_proc_net(&self) -> io::Result<()> {
        let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | libc::AT_SYMLINK_NOFOLLOW;
        // SAFETY: the path is a string that ends in zero.
        let link =
            unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, LINK.as_ptr(), flags) };
        let link = checked(link as libc::c_int)?;
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        let link = unsafe { OwnedFd::from_raw_fd(link) };
        // The link /proc/net itself is covered, not what it leads to.
        // SAFETY: both paths are strings that end in zero, the descriptor is open.
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

/// `linux/mount.h`.
const OPEN_TREE_CLONE: libc::c_int = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;

impl Drop for PrivateMounts {
    fn drop(&mut self) {
        for path in [c"/proc/net", MOUNT_POINT] {
            let flags = libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW;
            // SAFETY: the path is a string that ends in zero. Where it fails the mounts go with
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
    // SAFETY: all are strings that end in zero.
    checked(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    })
    .map(drop)
}

//! Whether standard output was closed when the program began.
//!
//! Before `main`, Rust opens `/dev/null` in the place of a standard stream that is closed, and all that
//! is written to it is lost without a word. What is asked here is asked before that.

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod before_main {
    use std::sync::atomic::{AtomicBool, Ordering};

    pub(super) static CLOSED: AtomicBool = AtomicBool::new(false);

    extern "C" fn look() {
        // SAFETY: it reads the flags of a descriptor by its number, whether it is open or not.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        CLOSED.store(flags == -1, Ordering::Relaxed);
    }

    // SAFETY: a function that takes nothing and gives nothing, which the loader calls before `main`.
    #[used]
    #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
    #[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
    static LOOK: extern "C" fn() = look;
}

/// Whether what is written to standard output goes nowhere.
pub fn is_standard_output_closed() -> bool {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    let closed = before_main::CLOSED.load(std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    let closed = false;
    closed
}

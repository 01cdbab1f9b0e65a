//! Numbers below the normal range, taken for zero.
//!
//! A vanishing gradient passes through that range on its way to 0, and arithmetic there is a
//! hundred times slower on most processors. Every operation of this folder runs with such numbers
//! flushed; [`flush_denormals`] does the same for a thread of one's own.

/// Takes numbers below the normal range for zero, in this thread, from now on.
///
/// For a pool's start handler, so that whatever else runs in its threads (matrix products) is as
/// fast as the operations here. Does nothing on machines where there is nothing to set.
///
/// # Safety
/// Rust takes the processor's setting for the default one: what it computes while compiling may differ
/// from what it computes in this thread. Nothing that the thread runs later may be unsound by that,
/// as code would be that trusts a sum of tiny numbers to be the same in both.
///
/// ```
/// std::thread::spawn(|| {
///     // SAFETY: the thread does nothing but the division below.
///     unsafe { regard_kernels::flush_denormals() };
///     # #[cfg(target_arch = "x86_64")]
///     assert_eq!(std::hint::black_box(f32::MIN_POSITIVE) / std::hint::black_box(2.0), 0.0);
/// })
/// .join()
/// .unwrap();
/// ```
pub unsafe fn flush_denormals() {
    std::mem::forget(Flushed::new());
}

/// Flushed until dropped, when the thread's own setting comes back.
pub(crate) struct Flushed {
    #[cfg(target_arch = "x86_64")]
    before: u32,
}

/// Results (bit 15) and operands (bit 6) below the normal range are zero.
#[cfg(target_arch = "x86_64")]
const FLUSH: u32 = 1 << 15 | 1 << 6;

impl Flushed {
    pub(crate) fn new() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let before = read();
            write(before | FLUSH);
            Self { before }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self {}
    }
}

impl Drop for Flushed {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        write(self.before);
    }
}

#[cfg(target_arch = "x86_64")]
fn read() -> u32 {
    let mut word = 0u32;
    // SAFETY: stores four bytes at `word`.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack)) };
    word
}

#[cfg(target_arch = "x86_64")]
fn write(word: u32) {
    // SAFETY: a word that was read, with two documented bits set or not; rounding and traps stay.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &word, options(nostack, readonly)) };
}

//! A process that was forked while another thread held a lock goes on without what it guards.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use regard_kernels::{Cpu, Forward, Spec, View, ViewMut, fork};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};

unsafe extern "C" {
    #[link_name = "fork"]
    fn fork_process() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn alarm(seconds: u32) -> u32;
    fn _exit(status: i32) -> !;
}

/// What a forked process ended with; one that does not end is ended by the system.
fn status_of_child(f: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child computes, on one thread, and ends without running what the parent registered.
    unsafe {
        let child = fork_process();
        if child == 0 {
            alarm(20);
            _exit(if f() { 0 } else { 1 });
        }
        let mut status = -1;
        assert_eq!(waitpid(child, &mut status, 0), child);
        status
    }
}

fn attend() -> bool {
    let (n, d) = (300, 16);
    let x = vec![0.5f32; n * d];
    let mut out = vec![0f32; n * d];
    let x = View::new(&x, [1, 1, n, d]).unwrap();
    let pass = Forward::new(ViewMut::new(&mut out, [1, 1, n, d]).unwrap());
    // On this thread alone: a forked process has no other.
    let done = regard_kernels::sequential(|| {
        let done = Cpu::best().forward(&Spec::scaled_dot(d), x, x, x, pass).is_ok();
        regard_kernels::release_memory();
        done
    });
    done && out.iter().all(|&x| x == 0.5)
}

#[test]
fn a_lock_that_a_thread_of_the_parent_holds_is_not_waited_for() {
    static GUARDED: Mutex<i32> = Mutex::new(7);
    assert_eq!(fork::lock(&GUARDED).as_deref(), Some(&7));
    let (held, forked) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let _guard = GUARDED.lock().unwrap();
            held.wait();
            forked.wait();
        });
        held.wait();
        let status = status_of_child(|| fork::lock(&GUARDED).is_none());
        forked.wait();
        assert_eq!(status, 0, "the child waited, or took what is locked");
    });
    // The parent has it as before.
    assert_eq!(fork::lock(&GUARDED).as_deref(), Some(&7));
}

#[test]
fn a_forked_process_attends_while_threads_of_its_parent_do() {
    assert!(attend());
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                assert!(attend());
            }
        });
        let statuses: Vec<i32> = (0..50).map(|_| status_of_child(attend)).collect();
        done.store(true, Ordering::Relaxed);
        assert_eq!(statuses, [0; 50]);
    });
}

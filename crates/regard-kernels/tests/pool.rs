//! The memory that calls keep for the next is given back: when asked, and when it is of no use.
//!
//! A file of its own with one test, because what is kept is the whole process's.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

mod case;

use case::*;
use regard_kernels::{Cpu, pooled_bytes, release_memory};

fn run(nq: usize, nk: usize) -> Vec<u64> {
    let case = Case { hq: 2, hk: 2, nq, nk, d: 64, dv: 64, ..Case::default() };
    case.data::<f32>().fused(Cpu::best().isa()).bits()
}

#[test]
fn memory_that_is_kept_is_given_back_on_request_and_when_it_is_of_no_use() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let first = pool.install(|| run(300, 900));
    assert!(pooled_bytes() > 0, "nothing is kept, so this test shows nothing");
    pool.install(release_memory);
    assert_eq!(pooled_bytes(), 0);

    // On rayon's own threads, from a thread that is none of them.
    assert_eq!(run(300, 900), first);
    assert!(pooled_bytes() > 0);
    release_memory();
    assert_eq!(pooled_bytes(), 0);
    assert_eq!(run(300, 900), first);

    // A large call's arrays are kept through some small ones, but not for ever.
    release_memory();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    one.install(|| run(2000, 2000));
    let large = pooled_bytes();
    let few = Case { hq: 2, hk: 2, nq: 70, nk: 600, d: 64, dv: 64, ..Case::default() };
    let few = few.data::<f32>();
    let again = || one.install(|| few.fused(Cpu::best().isa()));
    again();
    assert!(pooled_bytes() >= large, "what may be of use at once was given back");
    for _ in 0..1000 {
        again();
    }
    let small = pooled_bytes();
    assert!(2 * small < large, "{large} bytes were kept, and {small} still are");
}

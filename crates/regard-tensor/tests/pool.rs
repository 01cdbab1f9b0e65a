//! The pool gives back what it keeps. Alone in its file: other tests would be counted too.
#![allow(clippy::unwrap_used)]

use regard_tensor::{DType, Memory, Tensor};

fn tensor(bytes: usize) -> Tensor {
    Tensor::zeros(&[bytes], DType::Bool).unwrap()
}

#[test]
fn the_pool_gives_back_what_it_keeps_on_request_and_what_nobody_used_for_long() {
    const LARGE: usize = 16 << 20;
    const SMALL: usize = 1 << 12;
    drop(tensor(LARGE));
    assert_eq!(Memory::now().pooled, LARGE);
    assert_eq!(Memory::release(), LARGE);
    assert_eq!((Memory::now().pooled, Memory::release()), (0, 0));

    // In use beside it, another block stays; the large one goes after enough allocations.
    drop(tensor(LARGE));
    drop(tensor(SMALL));
    assert_eq!(Memory::now().pooled, LARGE + SMALL);
    for _ in 0..1 << 15 {
        drop(tensor(SMALL));
    }
    assert_eq!(Memory::now().pooled, LARGE + SMALL, "given back too early");
    for _ in 0..1 << 16 {
        drop(tensor(SMALL));
    }
    assert_eq!(Memory::now().pooled, SMALL);

    // What is in use is not touched.
    let x = Tensor::full(&[LARGE], 1.0, DType::Bool).unwrap();
    assert_eq!(Memory::release(), SMALL);
    assert_eq!(Memory::now().live, LARGE);
    assert!(x.to_vec::<u8>().unwrap().iter().all(|&x| x == 1));
}

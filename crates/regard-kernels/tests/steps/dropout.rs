use regard_kernels::{Cpu, Isa, philox};

/// The rule in words: number 64·w + i of a block of 256 is decided by word w of draw i.
fn plain(x: &[f32], share: f64, key: u64) -> Vec<f32> {
    let (below, factor) = ((share * 4294967296.0) as u32, (1.0 / (1.0 - share)) as f32);
    let kept = |at: usize| {
        let (block, place) = (at / 256, at % 256);
        let counter = [block as u32, (place % 64) as u32, 0, 2];
        philox(counter, [key as u32, (key >> 32) as u32])[place / 64] >= below
    };
    x.iter().enumerate().map(|(at, x)| if kept(at) { x * factor } else { 0.0 }).collect()
}

#[test]
fn what_is_dropped_follows_from_the_place_and_the_key_on_every_instruction_set() {
    for n in [0, 1, 3, 63, 64, 65, 255, 256, 257, 1000, 70_000] {
        let x: Vec<f32> = (0..n).map(|x| x as f32 + 1.0).collect();
        for isa in Isa::ALL {
            let Some(cpu) = Cpu::with(isa) else { continue };
            for threads in [1, 2, 3] {
                let mut out = vec![f32::NAN; n];
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| cpu.dropout(&x, 0.6, 5 << 40 | 9, &mut out)).unwrap();
                assert_eq!(out, plain(&x, 0.6, 5 << 40 | 9), "{n} numbers by {isa:?}");
            }
        }
    }
}

#[test]
fn the_share_that_is_dropped_is_the_one_asked_for() {
    let n = 1 << 20;
    for share in [0.1, 0.5, 0.9] {
        let mut out = vec![0f64; n];
        Cpu::best().dropout(&vec![1.0; n], share, 3, &mut out).unwrap();
        let dropped = out.iter().filter(|&&x| x == 0.0).count() as f64 / n as f64;
        // Five standard deviations.
        assert!((dropped - share).abs() < 5.0 * (share * (1.0 - share) / n as f64).sqrt());
    }
}

#[test]
fn shares_and_lengths_that_make_no_sense_are_refused() {
    let drop = |share, n| Cpu::best().dropout(&[1f32; 3], share, 1, &mut vec![0.0; n]);
    assert_eq!(said(drop(1.0, 3)), "a dropout of 1 is not within 0..1");
    assert_eq!(said(drop(-0.1, 3)), "a dropout of -0.1 is not within 0..1");
    assert_eq!(said(drop(0.5, 2)), "out has 2 elements, x has 3");
}

fn said(result: Result<(), regard_kernels::Error>) -> String {
    result.unwrap_err().to_string()
}

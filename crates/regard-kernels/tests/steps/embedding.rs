use crate::case::Draws;
use crate::rule::*;
use regard_kernels::step::reference;
use regard_kernels::{Cpu, Real};

#[derive(Debug)]
struct Case {
    n: usize,
    words: usize,
    width: usize,
    padding: Option<i64>,
}

impl Case {
    fn numbers(&self) -> (Vec<f64>, Vec<i64>) {
        let mut draws = Draws::new(self.n as u64 + 1000 * self.width as u64);
        let grad = draws.normals(self.n * self.width, 1.0);
        (grad, (0..self.n).map(|_| draws.below(self.words) as i64).collect())
    }
}

impl Step for Case {
    const RESULTS: &'static [&'static str] = &["grad table"];

    fn plain<T: Real>(&self) -> Vec<Vec<T>> {
        let (grad, ids) = self.numbers();
        let grad = of::<T>(&grad);
        vec![reference::embedding_backward(&ids, &grad, self.width, self.padding, self.words)]
    }

    fn fused<T: Real>(&self, cpu: Cpu) -> Vec<Vec<T>> {
        let (grad, ids) = self.numbers();
        let mut table = vec![T::of(f64::NAN); self.words * self.width];
        cpu.embedding_backward(&ids, &of::<T>(&grad), self.width, self.padding, &mut table)
            .unwrap();
        vec![table]
    }
}

#[test]
fn the_table_keeps_the_rule() {
    for (n, words, width) in
        [(1, 1, 1), (5, 3, 7), (40, 9, 33), (300, 1000, 64), (900, 20, 300), (0, 4, 5), (3, 4, 0)]
    {
        for padding in [None, Some(0)] {
            keeps_the_rule(&Case { n, words, width, padding });
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    has_the_same_bits_on_any_threads(&Case { n: 500, words: 11, width: 300, padding: None });
}

#[test]
fn an_id_outside_the_table_is_refused_with_its_place() {
    let refused = |ids: &[i64], grad: &[f32]| {
        let mut table = [0f32; 6];
        let error = Cpu::best().embedding_backward(ids, grad, 2, None, &mut table);
        error.unwrap_err().to_string()
    };
    assert_eq!(refused(&[0, 3], &[0.0; 4]), "id 3 at 1 is no row of a table of 3");
    assert_eq!(refused(&[-1], &[0.0; 2]), "id -1 at 0 is no row of a table of 3");
    assert_eq!(refused(&[0], &[0.0; 3]), "grad has 3 elements, 1 ids of width 2 need 2");
}

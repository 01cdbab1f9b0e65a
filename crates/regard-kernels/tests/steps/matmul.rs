use crate::case::Draws;
use crate::rule::*;
use regard_kernels::half::bf16;
use regard_kernels::step::reference;
use regard_kernels::{Base, Cpu, Matrix, Real};

/// `base + a · b`, with operands that lie either way.
#[derive(Debug)]
struct Case {
    m: usize,
    n: usize,
    k: usize,
    spread: f64,
    turned: [bool; 2],
}

impl Case {
    /// a, b, a result that is there, a bias.
    fn numbers<T: Real>(&self) -> [Vec<T>; 4] {
        let Self { m, n, k, spread, .. } = *self;
        let mut draws = Draws::new((m + 1000 * n + 1_000_000 * k) as u64);
        [(m * k, spread), (k * n, spread), (m * n, 1.0), (n, 1.0)]
            .map(|(len, spread)| of(&draws.normals(len, spread)))
    }

    /// The results, of a, b, a result that is there, a bias.
    fn plain_of<T: Real>(&self, [a, b, there, bias]: [Vec<T>; 4]) -> Vec<Vec<T>> {
        let rows: Vec<T> = (0..there.len()).map(|at| bias[at % self.n]).collect();
        let product = |base: &[T]| reference::matmul(&a, &b, self.k, base);
        let zeros = product(&vec![T::ZERO; there.len()]);
        vec![zeros.clone(), product(&there), product(&rows), zeros]
    }
}

/// Rows after rows, or columns after columns: some numbers more than the matrix has in each.
fn lay<T: Real>(x: &[T], [rows, columns]: [usize; 2], turned: bool) -> (Vec<T>, [usize; 2]) {
    const MORE: usize = 3;
    let strides = if turned { [1, rows + MORE] } else { [columns + MORE, 1] };
    let mut laid = vec![T::of(f64::NAN); rows * strides[0] + columns * strides[1]];
    for (at, &x) in x.iter().enumerate() {
        laid[at / columns * strides[0] + at % columns * strides[1]] = x;
    }
    (laid, strides)
}

impl Step for Case {
    const RESULTS: &'static [&'static str] = &["product", "added", "with a bias", "one of many"];

    fn plain<T: Real>(&self) -> Vec<Vec<T>> {
        self.plain_of(self.numbers())
    }

    fn fused<T: Real>(&self, cpu: Cpu) -> Vec<Vec<T>> {
        let [a, b, there, bias] = self.numbers::<T>();
        let Self { m, n, k, turned, .. } = *self;
        let (a, a_strides) = lay(&a, [m, k], turned[0]);
        let (b, b_strides) = lay(&b, [k, n], turned[1]);
        let a = Matrix::strided(&a, [m, k], a_strides).unwrap();
        let b = Matrix::strided(&b, [k, n], b_strides).unwrap();
        let mut results = vec![vec![T::of(f64::NAN); m * n]; 4];
        results[1] = there;
        for (base, to) in
            [Base::Nothing, Base::There, Base::Row(&bias)].into_iter().zip(&mut results)
        {
            cpu.matmul(a, b, base, to).unwrap();
        }
        let mut many = vec![T::ZERO; 3 * m * n];
        cpu.matmuls(&[[a, b]; 3], &mut many).unwrap();
        assert_eq!(many[..m * n], many[2 * m * n..]);
        results[3].copy_from_slice(&many[m * n..2 * m * n]);
        results
    }

    fn terms(&self) -> Vec<f64> {
        let [a, b, ..] = self.numbers::<f64>();
        vec![largest(&a) * largest(&b) * (self.k as f64).sqrt() + 3.0; 4]
    }
}

/// A case whose factors are bf16 numbers: what is computed of them in f32 keeps the rule of f32.
#[derive(Debug)]
struct OfHalves(Case);

impl OfHalves {
    /// The case's numbers, factors rounded to bf16.
    fn numbers<T: Real>(&self) -> [Vec<T>; 4] {
        let [a, b, there, bias] = self.0.numbers::<f64>();
        let rounded =
            |x: Vec<f64>| of(&x.iter().map(|&x| bf16::from_f64(x).to_f64()).collect::<Vec<_>>());
        [rounded(a), rounded(b), of(&there), of(&bias)]
    }
}

impl Step for OfHalves {
    const RESULTS: &'static [&'static str] = Case::RESULTS;

    fn plain<T: Real>(&self) -> Vec<Vec<T>> {
        self.0.plain_of(self.numbers::<T>())
    }

    fn fused<T: Real>(&self, cpu: Cpu) -> Vec<Vec<T>> {
        // There is no product of bf16 numbers into f64.
        if size_of::<T>() == size_of::<f64>() {
            return self.plain();
        }
        let Case { m, n, k, turned, .. } = self.0;
        let [a, b, there, bias] = self.numbers::<f32>();
        let (a, a_strides) = lay(&a, [m, k], turned[0]);
        let (b, b_strides) = lay(&b, [k, n], turned[1]);
        let [a, b] = [a, b].map(|x| x.into_iter().map(bf16::from_f32).collect::<Vec<_>>());
        let a = Matrix::strided(&a, [m, k], a_strides).unwrap();
        let b = Matrix::strided(&b, [k, n], b_strides).unwrap();
        let mut results = vec![vec![f32::NAN; m * n]; 4];
        results[1] = there;
        for (base, to) in
            [Base::Nothing, Base::There, Base::Row(&bias)].into_iter().zip(&mut results)
        {
            cpu.matmul_bf16(a, b, base, to).unwrap();
        }
        let mut many = vec![f32::NAN; 3 * m * n];
        cpu.matmuls_bf16(&[[a, b]; 3], &mut many).unwrap();
        assert_eq!(many[..m * n], many[2 * m * n..]);
        results[3].copy_from_slice(&many[m * n..2 * m * n]);
        results.into_iter().map(|x| x.into_iter().map(|x| T::of(x.into())).collect()).collect()
    }

    fn terms(&self) -> Vec<f64> {
        self.0.terms()
    }
}

const SHAPES: [[usize; 3]; 11] = [
    [1, 1, 1],
    [3, 5, 7],
    [33, 65, 40],
    [97, 161, 200],
    [64, 64, 64],
    [100, 130, 77],
    [70, 600, 300],
    [200, 50, 1000],
    [600, 70, 33],
    [129, 513, 257],
    [65, 97, 2500],
];
const WAYS: [[bool; 2]; 4] = [[false, false], [false, true], [true, false], [true, true]];

#[test]
fn products_keep_the_rule_however_the_operands_lie() {
    for [m, n, k] in SHAPES {
        for turned in WAYS {
            keeps_the_rule(&Case { m, n, k, spread: 1.0, turned });
        }
        for spread in [1e-12, 1e12] {
            keeps_the_rule(&Case { m, n, k, spread, turned: [false, true] });
        }
    }
}

/// Also where no unit multiplies bf16, and where numbers are too large or small for it.
#[test]
fn products_of_bf16_keep_the_rule_of_f32_however_the_operands_lie() {
    let mut cases = 0;
    for [m, n, k] in SHAPES {
        for turned in WAYS {
            keeps_the_rule(&OfHalves(Case { m, n, k, spread: 1.0, turned }));
            cases += 1;
        }
        for spread in [1e-12, 1e12] {
            keeps_the_rule(&OfHalves(Case { m, n, k, spread, turned: [false, true] }));
            cases += 1;
        }
    }
    assert_eq!(cases, 66);
    let wide = OfHalves(Case { m: 700, n: 4101, k: 64, spread: 1.0, turned: [false, true] });
    keeps_the_rule(&wide);
    has_the_same_bits_on_any_threads(&wide);
    for turned in WAYS {
        let deep = Case { m: 65, n: 97, k: 2500, spread: 1.0, turned };
        has_the_same_bits_on_any_threads(&OfHalves(deep));
    }
}

#[test]
fn products_have_the_same_bits_on_any_threads() {
    for turned in WAYS {
        for [m, n, k] in [[300, 600, 300], [65, 97, 2500]] {
            has_the_same_bits_on_any_threads(&Case { m, n, k, spread: 1.0, turned });
        }
    }
}

/// As many columns as a vocabulary has words: blocks of them, and of rows, are tasks.
#[test]
fn wide_products_keep_the_rule_and_their_bits() {
    let case = Case { m: 700, n: 4101, k: 64, spread: 1.0, turned: [false, true] };
    keeps_the_rule(&case);
    has_the_same_bits_on_any_threads(&case);
}

#[test]
fn a_product_of_nothing_is_its_base() {
    for cpu in cpus() {
        let (a, b) = (Matrix::new(&[], 2, 0).unwrap(), Matrix::new(&[], 0, 3).unwrap());
        let mut to = [1f32; 6];
        cpu.matmul(a, b, Base::There, &mut to).unwrap();
        assert_eq!(to, [1.0; 6]);
        cpu.matmul(a, b, Base::Row(&[1.0, 2.0, 3.0]), &mut to).unwrap();
        assert_eq!(to, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        cpu.matmul(a, b, Base::Nothing, &mut to).unwrap();
        assert_eq!(to, [0.0; 6]);
    }
}

/// Infinite numbers, those too large to be rounded to bf16, and NaN: the same kinds of results as by
/// the plain formula, and no other row or column is touched.
#[test]
fn numbers_without_bounds_spread_as_by_the_plain_formula() {
    let (m, n, k) = (160, 160, 320);
    let case = Case { m, n, k, spread: 1.0, turned: [false, false] };
    let [a, b, ..] = case.numbers::<f32>();
    let zeros = vec![0f32; m * n];
    for odd in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX] {
        for (place, in_a) in [(5 * k + 3, true), (3 * n + 77, false)] {
            let (mut a, mut b) = (a.clone(), b.clone());
            if in_a {
                a[place] = odd
            } else {
                b[place] = odd
            }
            let plain = reference::matmul(&a, &b, k, &zeros);
            for cpu in cpus() {
                let mut to = vec![0f32; m * n];
                let (a, b) = (Matrix::new(&a, m, k).unwrap(), Matrix::new(&b, k, n).unwrap());
                cpu.matmul(a, b, Base::Nothing, &mut to).unwrap();
                are_of_one_kind(&to, &plain, k, &format!("{} {odd} in {in_a}", cpu.isa()));
            }
            let halves =
                [&a, &b].map(|x| x.iter().copied().map(bf16::from_f32).collect::<Vec<_>>());
            let [wide_a, wide_b] =
                [0, 1].map(|x| halves[x].iter().map(|x| x.to_f32()).collect::<Vec<_>>());
            let plain = reference::matmul(&wide_a, &wide_b, k, &zeros);
            for cpu in cpus() {
                let mut to = vec![0f32; m * n];
                let [a, b] = [(0, m, k), (1, k, n)]
                    .map(|(x, rows, columns)| Matrix::new(&halves[x], rows, columns).unwrap());
                cpu.matmul_bf16(a, b, Base::Nothing, &mut to).unwrap();
                are_of_one_kind(&to, &plain, k, &format!("{} bf16 {odd} in {in_a}", cpu.isa()));
            }
        }
    }
}

/// Panics unless numbers are NaN and infinite where the plain ones are, and near them elsewhere.
fn are_of_one_kind(to: &[f32], plain: &[f32], k: usize, case: &str) {
    for (at, (&x, &plain)) in to.iter().zip(plain).enumerate() {
        let same = match plain {
            p if p.is_nan() => x.is_nan(),
            p if p.is_infinite() => x == p,
            // The plain sum of k numbers near 1 is itself as wrong as √k roundings of √k.
            p => (x - p).abs() <= 2.0 * f32::EPSILON * p.abs().max(k as f32),
        };
        assert!(same, "{case}: {x} at {at}, not {plain}");
    }
}

#[test]
fn products_that_do_not_fit_are_refused_by_their_sizes() {
    let said = |error: regard_kernels::Error| error.to_string();
    assert_eq!(
        said(Matrix::new(&[1f32; 5], 2, 3).unwrap_err()),
        "a matrix of 2 × 3 with strides 3 and 1 reaches 6 numbers, but there are 5"
    );
    let x = Matrix::new(&[1f32; 6], 2, 3).unwrap();
    let cpu = Cpu::best();
    assert_eq!(
        said(cpu.matmul(x, x, Base::Nothing, &mut [0.0; 6]).unwrap_err()),
        "a product of 2 × 3 and 2 × 3 numbers into 6 does not fit"
    );
    assert_eq!(
        said(cpu.matmuls(&[[x, x.transposed()], [x.transposed(), x]], &mut [0.0; 8]).unwrap_err()),
        "2 products into 8 numbers are not of one shape"
    );
    assert_eq!(
        said(cpu.matmul(x, x.transposed(), Base::Row(&[0.0]), &mut [0.0; 4]).unwrap_err()),
        "a bias of 1 numbers for 2 columns"
    );
}

//! The text of a warpgroup's products: an instruction names each of its registers, so there is one
//! function for each number of columns.

use super::source::Stored;
use std::fmt::Write;

/// Functions `product` for products of 64 rows and so many columns, 16 numbers deep: the left side from
/// shared memory or from registers, the right side from shared memory, along its rows or across them.
pub(in crate::cuda) fn products(stored: Stored, columns: &[usize]) -> String {
    let mut columns = columns.to_vec();
    columns.sort_unstable();
    columns.dedup();
    let mut text = String::from("#ifndef EMULATED\n");
    for n in columns {
        text += &product(stored, n);
    }
    text + "#endif\n"
}

fn product(stored: Stored, n: usize) -> String {
    let kind = if stored == Stored::F16 { "f16" } else { "bf16" };
    let count = n / 2;
    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
    let (registers, outputs) = (list(&|i| format!("%{i}")), list(&|i| format!("\"+f\"(d[{i}])")));
    let instruction = format!("wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{kind}.{kind}");
    let [a, b, c, d, e, f, g] = [0, 1, 2, 3, 4, 5, 6].map(|i| format!("%{}", count + i));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        text,
        r#"
template <int ACROSS_A, int ACROSS_B> __device__ __forceinline__ void product(float (&d)[{count}], u64 a, u64 b, int add) {{
    asm volatile("{{\n.reg .pred adds;\nsetp.ne.b32 adds, {c}, 0;\n"
                 "{instruction} {{{registers}}}, {a}, {b}, adds, 1, 1, {d}, {e};\n}}"
                 : {outputs}
                 : "l"(a), "l"(b), "r"(add), "n"(ACROSS_A), "n"(ACROSS_B));
}}
template <int ACROSS_B> __device__ __forceinline__ void product(float (&d)[{count}], const u32 (&a)[4], u64 b, int add) {{
    asm volatile("{{\n.reg .pred adds;\nsetp.ne.b32 adds, {f}, 0;\n"
                 "{instruction} {{{registers}}}, {{{a}, {b}, {c}, {d}}}, {e}, adds, 1, 1, {g};\n}}"
                 : {outputs}
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(ACROSS_B));
}}
"#
    );
    text
}

// Σ w tanh(q + k) under softmax, in f32, tile by tile.
//
// tanh(q + k) = 1 − 2 / (1 + e^2q e^2k), so a score is Σw − 2 Σ w / (1 + e^2q e^2k). With c = 1 / w,
// A = c e^2q and B = e^2k a term is 1 / E, E = c + AB: one product and sum; four terms share a reciprocal,
// 1/E₁ + 1/E₂ = (E₁ + E₂) / (E₁E₂) and so on, so that a feature costs three operations. w is taken in
// units of a power of two 2^20 times smaller than the largest, so that hardly a c is above 1. The product of
// four overflows where |q| + |k| or c is large; one term alone never does where A and B are finite; beyond
// that tanh is computed as it is written.

#define ROWS 64    // queries of a block
#define COLUMNS 64 // keys of a tile
#define DEPTH 32   // features at a time
#define STAGES 2
#define SIDE 4 // a thread has 4 × 4 scores
#define THREADS 256
#define ACROSS (COLUMNS / SIDE)
#define VALUE_PARTS (VALUE_PADDED / COLUMNS)
#define ABREAST 2 // tiles of 16 rows whose products are begun together
#define UNROLLED 2
#define SHARED_BITS 121.0f // of the product of four terms, a bit for each sum
#define FINITE_BITS 124.0f
#define UNIT_BITS 20      // of the largest w in its unit
#define BITS 2.8853901f   // of e^2x: x · 2 / ln 2
#define NEGLIGIBLE 9.5e-7f // 2^−20 units: so small beside the largest, w is 0

struct Tiles {
    T *q, *k;          // [B, heads, WIDTH_PADDED, length padded]: e^2q, e^2k
    T *q_rows, *k_rows; // the same, [B, heads, length padded, WIDTH_PADDED]; for backward
    T *grads, *values;  // [B, heads, VALUE_PADDED, length padded]: the output's gradient, v; for backward
    T *deltas;          // [B, Hq, Nq]
    T *q_slabs;         // [B, Hq, slabs, length padded, WIDTH_PADDED]: parts of q's gradient
    i64 slabs;
    T *q_reach, *k_reach; // [B, heads, blocks, WIDTH_PADDED / DEPTH]: the largest |q|, |k| of 64 rows
    i64 q_padded, k_padded;
    i64 splits;
    T *part_out, *part_top, *part_total; // of each split
};

__device__ __forceinline__ void copy_async(void *to, const void *from, bool there) {
    u32 at = (u32)__cvta_generic_to_shared(to);
    int bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes));
}
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;"); }
template <int LEFT> __device__ __forceinline__ void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT)); }

__device__ __forceinline__ T reciprocal(T x) {
    T y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// A head's w and its unit; by all threads of a block.
struct Weights {
    const T *w;
    T unit;
};
__device__ __forceinline__ Weights weights_of(const Problem &p, i64 h) {
    __shared__ T tops[THREADS / WARP];
    const T *w = p.parameters[0].data + h * p.parameters[0].head;
    T top = 0;
    for (int d = threadIdx.x; d < p.width; d += THREADS) top = fmaxf(top, fabsf(w[d]));
    top = warp_max(top);
    if (threadIdx.x % WARP == 0) tops[threadIdx.x / WARP] = top;
    __syncthreads();
    for (int n = 0; n < THREADS / WARP; n++) top = fmaxf(top, tops[n]);
    // Where it would be ∞ or less than the least, it is ∞, and tanh is computed as it is written.
    T unit = top == 0 ? (T)1 : top < -NEG_INF && top > 1e-30f ? ldexpf(1.0f, ilogbf(top) - UNIT_BITS) : -NEG_INF;
    return {w, unit};
}

// 1 / w in its units; 0 where there is none.
__device__ __forceinline__ T inverse_of(const Problem &p, const Weights &weights, int d) {
    T w = d < p.width ? weights.w[d] : (T)0;
    return fabsf(w) <= NEGLIGIBLE * weights.unit ? (T)0 : weights.unit / w;
}

// 64 rows and 32 features, transposed, and as they are where `rows` is given: e^2x, and the largest |x|
// among them, where `reach` is given, else x. The transposed queries are multiplied by c. One block each.
enum Turned { TURN_QUERIES, TURN_KEYS, TURN_ROWS };
template <Turned WHAT>
__device__ __forceinline__ void prepare(const Problem &p, const Array &from, i64 b, i64 h, i64 heads, i64 block, i64 length, i64 padded, i64 width, int width_padded, T *to, T *rows, T *reach) {
    __shared__ T turned[DEPTH][ROWS + 1];
    __shared__ T tops[THREADS / WARP];
    i64 first = block * ROWS;
    int d = threadIdx.x % DEPTH, d0 = blockIdx.z * DEPTH;
    if (d0 >= width_padded) return;
    T *head = to + ((b * heads + h) * width_padded + d0) * padded + first;
    T *row_head = rows + ((b * heads + h) * padded + first) * width_padded + d0;
    const T *place = from.data + b * from.b + h * from.h + first * from.n + d0 + d;
    T x[DEPTH * ROWS / THREADS], top = 0, c = 1;
#pragma unroll
    for (int n = 0; n < DEPTH * ROWS / THREADS; n++) {
        int i = threadIdx.x / DEPTH + n * (THREADS / DEPTH);
        bool there = d0 + d < width && first + i < length;
        x[n] = there ? place[i * from.n] : WHAT == TURN_ROWS ? (T)0 : NEG_INF;
    }
    if (WHAT == TURN_QUERIES) c = inverse_of(p, weights_of(p, h), d0 + d);
#pragma unroll
    for (int n = 0; n < DEPTH * ROWS / THREADS; n++) {
        int i = threadIdx.x / DEPTH + n * (THREADS / DEPTH);
        bool there = d0 + d < width && first + i < length;
        T y = WHAT == TURN_ROWS ? x[n] : expf(2 * x[n]);
        if (there) top = fmaxf(top, fabsf(x[n]));
        turned[d][i] = WHAT == TURN_QUERIES ? c * y : y;
        if (rows) row_head[i * width_padded + d] = y;
    }
    top = warp_max(top);
    if (threadIdx.x % WARP == 0) tops[threadIdx.x / WARP] = top;
    __syncthreads();
#pragma unroll
    for (int n = threadIdx.x; n < DEPTH * ROWS; n += THREADS) head[n / ROWS * padded + n % ROWS] = turned[n / ROWS][n % ROWS];
    if (reach && threadIdx.x == 0) {
        for (int n = 1; n < THREADS / WARP; n++) top = fmaxf(top, tops[n]);
        reach[((b * heads + h) * (padded / ROWS) + block) * (WIDTH_PADDED / DEPTH) + blockIdx.z] = top;
    }
}

// Queries and keys: blocks of rows by x, the queries' first, head after head (y has no room for many); features by z.
extern "C" __global__ void __launch_bounds__(THREADS) additive_prepare(const __grid_constant__ Problem p, const __grid_constant__ Tiles t) {
    u32 q_blocks = t.q_padded / ROWS, all = q_blocks + t.k_padded / ROWS, block = blockIdx.x % all, head = blockIdx.x / all;
    bool of_keys = block >= q_blocks;
    i64 heads = of_keys ? p.key_heads : p.heads;
    if (head >= p.batch * heads) return;
    i64 b = head / heads, h = head % heads;
    if (of_keys) prepare<TURN_KEYS>(p, p.k, b, h, heads, block - q_blocks, p.keys, t.k_padded, p.width, WIDTH_PADDED, t.k, t.k_rows, t.k_reach);
    else prepare<TURN_QUERIES>(p, p.q, b, h, heads, block, p.queries, t.q_padded, p.width, WIDTH_PADDED, t.q, t.q_rows, t.q_reach);
}

// The largest of all features.
__device__ __forceinline__ T whole_reach(const T *reach) {
    T top = 0;
#pragma unroll
    for (int n = 0; n < WIDTH_PADDED / DEPTH; n++) top = fmaxf(top, reach[n]);
    return top;
}

// What the terms of all features have in common.
struct Features {
    T c[WIDTH_PADDED];
    T halves[WIDTH_PADDED]; // w / 2, or what an absent term adds
    T sums[WIDTH_PADDED / DEPTH]; // of a chunk's
    T bits[WIDTH_PADDED / 4]; // of the product of those among four c that are above 1
};
struct Limits {
    T unit;
    T bits; // of the product of those among four c that are above 1, at most
};

__device__ __forceinline__ Limits load_features(const Problem &p, i64 h, Features &f) {
    Weights weights = weights_of(p, h);
    for (int n = threadIdx.x; n < WIDTH_PADDED / 4; n += THREADS) {
        T bits = 0;
        for (int d = n * 4; d < n * 4 + 4; d++) {
            T c = inverse_of(p, weights, d);
            // Where w is 0, and so A: a term of one unit that is the same for all, taken off again.
            f.c[d] = c == 0 ? (T)1 : c;
            f.halves[d] = c == 0 ? (T)1 : 0.5f / c;
            if (fabsf(c) > 1) bits += log2f(fabsf(c));
        }
        f.bits[n] = bits;
    }
    __syncthreads();
    if (threadIdx.x < WIDTH_PADDED / DEPTH) {
        T sum = 0;
        for (int d = 0; d < DEPTH; d++) sum += f.halves[threadIdx.x * DEPTH + d];
        f.sums[threadIdx.x] = sum;
    }
    __syncthreads();
    T bits = weights.unit == -NEG_INF ? weights.unit : (T)0;
    for (int n = 0; n < WIDTH_PADDED / 4; n++) bits = fmaxf(bits, f.bits[n]);
    return {weights.unit, bits};
}

// How the terms of a tile are computed: four together, one by one, or as tanh is written.
enum Way { TOGETHER, SINGLY, DIRECTLY };
__device__ __forceinline__ Way way_of(const Limits &limits, T q_reach, T k_reach) {
    if (4 * BITS * (q_reach + k_reach) + limits.bits < SHARED_BITS) return TOGETHER;
    return BITS * q_reach + fmaxf(limits.bits, UNIT_BITS + 1) < FINITE_BITS && BITS * k_reach < FINITE_BITS ? SINGLY : DIRECTLY;
}

struct Shared {
    // The weights of a tile, in two parts, come when its features are done with.
    union {
        struct {
            T a[STAGES][DEPTH][ROWS];
            T b[STAGES][DEPTH][COLUMNS];
        };
        T weights[2][ROWS][COLUMNS + 4];
    };
    T values[COLUMNS][VALUE_PADDED + 8];
    T shrinks[ROWS], totals[ROWS];
    Features features;
};

__device__ __forceinline__ void load_chunk(Shared &s, int stage, const T *a, i64 a_row, const T *b, i64 b_row, int d0) {
    // Some features of 64 rows each: four numbers a copy.
    int d = threadIdx.x / (ROWS / 4), x = threadIdx.x % (ROWS / 4) * 4;
    a += (d0 + d) * a_row + x, b += (d0 + d) * b_row + x;
#pragma unroll
    for (int more = 0; more < DEPTH; more += THREADS / (ROWS / 4)) {
        copy_async(&s.a[stage][d + more][x], a + more * a_row, true);
        copy_async(&s.b[stage][d + more][x], b + more * b_row, true);
    }
}

__device__ __forceinline__ void load_values(const Problem &p, Shared &s, i64 b, i64 hk, i64 j0) {
    const T *from = p.v.data + b * p.v.b + hk * p.v.h + j0 * p.v.n;
    int columns = VALUE_PADDED / 4, d = threadIdx.x % columns * 4, left = (int)least(p.keys - j0, COLUMNS);
    bool wide = d < p.value_width;
    // Where the copies of a row divide the threads, a thread keeps its columns.
    if (THREADS % columns == 0) {
#pragma unroll
        for (int j = threadIdx.x / columns; j < COLUMNS; j += THREADS / columns) {
            bool there = wide && j < left;
            copy_async(&s.values[j][d], there ? from + j * p.v.n + d : p.v.data, there);
        }
        return;
    }
    for (int n = threadIdx.x; n < COLUMNS * columns; n += THREADS) {
        int j = n / columns;
        d = n % columns * 4;
        bool there = j < left && d < p.value_width;
        copy_async(&s.values[j][d], there ? from + j * p.v.n + d : p.v.data, there);
    }
}

#define EACH_PAIR(r, c) \
    _Pragma("unroll") for (int r = 0; r < SIDE; r++) _Pragma("unroll") for (int c = 0; c < SIDE; c++)

__device__ __forceinline__ void load_side(T (&to)[SIDE], const T *from) {
    float4 v = *(const float4 *)from;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

// Adds Σ 1 / E of a chunk: `a`, `b` and `c` begin at its features.
__device__ __forceinline__ void add_terms(Way way, const T (*a)[ROWS], const T (*b)[COLUMNS], const T *c, int ty, int tx, T (&sum)[SIDE][SIDE]) {
    if (way == TOGETHER) {
#pragma unroll UNROLLED
        for (int d = 0; d < DEPTH; d += 4) {
            T x[4][SIDE], y[4][SIDE], z[4];
#pragma unroll
            for (int u = 0; u < 4; u++) {
                load_side(x[u], &a[d + u][ty * SIDE]);
                load_side(y[u], &b[d + u][tx * SIDE]);
            }
            load_side(z, c + d);
            EACH_PAIR(r, k) {
                T e = fmaf(x[0][r], y[0][k], z[0]), next = fmaf(x[1][r], y[1][k], z[1]);
                T above = e + next, below = e * next;
#pragma unroll
                for (int u = 2; u < 4; u++) {
                    next = fmaf(x[u][r], y[u][k], z[u]);
                    above = fmaf(above, next, below);
                    below *= next;
                }
                sum[r][k] = fmaf(above, reciprocal(below), sum[r][k]);
            }
        }
    } else {
#pragma unroll 2
        for (int d = 0; d < DEPTH; d++) {
            T x[SIDE], y[SIDE];
            load_side(x, &a[d][ty * SIDE]);
            load_side(y, &b[d][tx * SIDE]);
            EACH_PAIR(r, k) sum[r][k] += reciprocal(fmaf(x[r], y[k], c[d]));
        }
    }
}

// A number as the sum of two that have eleven bits each.
__device__ __forceinline__ u32 eleven_bits(T x) { return (__float_as_uint(x) + 0x1000u) & 0xffffe000u; }
__device__ __forceinline__ void halve(T x, u32 &high, u32 &low) {
    high = eleven_bits(x);
    low = eleven_bits(x - __uint_as_float(high));
}

// d += a b: 16 rows, 8 columns, 8 deep.
__device__ __forceinline__ void warp_product(T (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// A warp has all rows and VALUE_PARTS · 8 columns of the output; a lane rows `lane / 4` and 8 further of every 16,
// columns `lane % 4 · 2` and the next of every 8.
typedef T Output[ROWS / 16][VALUE_PARTS][4];
#define ROW_OF(m, n) ((m) * 16 + lane_id() / 4 + (n) / 2 * 8)
#define COLUMN_OF(part, n) ((threadIdx.x / WARP * VALUE_PARTS + (part)) * 8 + lane_id() % 4 * 2 + (n) % 2)
#define EACH_OUTPUT(m, part, n) \
    _Pragma("unroll") for (int m = 0; m < ROWS / 16; m++) _Pragma("unroll") for (int part = 0; part < VALUE_PARTS; part++) _Pragma("unroll") for (int n = 0; n < 4; n++)

// Adds weights · values of eight keys as it is written, but for the values that a row does not see: 0 · NaN is NaN.
__device__ __forceinline__ void add_seen(const Shared &s, int k, Output &out, bool all_seen) {
#pragma unroll 1
    for (int u = k; u < k + 8; u++) {
        EACH_OUTPUT(m, part, n) {
            T weight = s.weights[0][ROW_OF(m, n)][u] + s.weights[1][ROW_OF(m, n)][u];
            if (all_seen || weight != 0) out[m][part][n] = fmaf(weight, s.values[u][COLUMN_OF(part, n)], out[m][part][n]);
        }
    }
}

// Adds weights · values by the tensor cores, both in two parts; what is not finite has none.
__device__ __forceinline__ void add_values(const Shared &s, Output &out, bool all_seen) {
    int row = lane_id() / 4, deep = lane_id() % 4;
#pragma unroll 1
    for (int k = 0; k < COLUMNS; k += 8) {
        u32 high[VALUE_PARTS][2], low[VALUE_PARTS][2];
        bool odd = !all_seen;
#pragma unroll
        for (int n = 0; n < VALUE_PARTS; n++) {
#pragma unroll
            for (int u = 0; u < 2; u++) {
                T x = s.values[k + deep + u * 4][(threadIdx.x / WARP * VALUE_PARTS + n) * 8 + row];
                odd |= !(fabsf(x) < 3e38f);
                halve(x, high[n][u], low[n][u]);
            }
        }
        if (__any_sync(ALL, odd)) {
            add_seen(s, k, out, all_seen);
            continue;
        }
        // The three products into a place follow each other at a distance.
#pragma unroll
        for (int m = 0; m < ROWS / 16; m += ABREAST) {
            u32 weight[2][ABREAST][4];
#pragma unroll
            for (int n = 0; n < 8 * ABREAST; n++)
                weight[n / 4 % 2][n / 8][n % 4] = __float_as_uint(s.weights[n / 4 % 2][(m + n / 8) * 16 + row + n % 2 * 8][k + deep + n % 4 / 2 * 4]);
#pragma unroll
            for (int u = 0; u < ABREAST * VALUE_PARTS; u++) warp_product(out[m + u / VALUE_PARTS][u % VALUE_PARTS], weight[1][u / VALUE_PARTS], high[u % VALUE_PARTS]);
#pragma unroll
            for (int u = 0; u < ABREAST * VALUE_PARTS; u++) warp_product(out[m + u / VALUE_PARTS][u % VALUE_PARTS], weight[0][u / VALUE_PARTS], low[u % VALUE_PARTS]);
#pragma unroll
            for (int u = 0; u < ABREAST * VALUE_PARTS; u++) warp_product(out[m + u / VALUE_PARTS][u % VALUE_PARTS], weight[0][u / VALUE_PARTS], high[u % VALUE_PARTS]);
        }
    }
}

__device__ __noinline__ T direct_score(const Problem &p, i64 b, i64 h, i64 hk, i64 i, i64 j) {
    const T *q = p.q.data + b * p.q.b + h * p.q.h + i * p.q.n, *k = p.k.data + b * p.k.b + hk * p.k.h + j * p.k.n;
    const T *w = p.parameters[0].data + h * p.parameters[0].head;
    T sum = 0;
    for (i64 d = 0; d < p.width; d++) sum += w[d] * tanhf(q[d] + k[d]);
    return sum;
}

#ifndef BACKWARD
extern "C" __global__ void __launch_bounds__(THREADS, 2) additive_forward(const __grid_constant__ Problem p, const __grid_constant__ Forward o, const __grid_constant__ Tiles t) {
    extern __shared__ __align__(16) unsigned char raw[];
    Shared &s = *(Shared *)raw;
    int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
    u32 each = (u32)(t.q_padded / ROWS) * (u32)t.splits, within = blockIdx.x % each, head = blockIdx.x / each;
    i64 block = within / (u32)t.splits, split = within % (u32)t.splits;
    i64 b = head / (u32)p.heads, h = head % (u32)p.heads, hk = h / (p.heads / p.key_heads);
    i64 i0 = block * ROWS, tiles = t.k_padded / COLUMNS, per_split = (tiles + t.splits - 1) / t.splits;
    const T *a = t.q + (b * p.heads + h) * WIDTH_PADDED * t.q_padded + i0;
    T q_reach = whole_reach(t.q_reach + ((b * p.heads + h) * (t.q_padded / ROWS) + block) * (WIDTH_PADDED / DEPTH));
    Limits limits = load_features(p, h, s.features);
    // Rows that are not there see what the last one sees.
    Reach top_row = keys_of(p, b, i0), bottom_row = keys_of(p, b, least(i0 + ROWS, p.queries) - 1);
    i64 from = most(split * per_split, most(top_row.low, 0) / COLUMNS);
    i64 until = least(least(tiles, (split + 1) * per_split), (most(bottom_row.high, 0) + COLUMNS - 1) / COLUMNS);
    T top[SIDE], total[SIDE];
    Output out;
#pragma unroll
    for (int r = 0; r < SIDE; r++) top[r] = NEG_INF, total[r] = 0;
    EACH_OUTPUT(m, part, n) out[m][part][n] = 0;
    for (i64 tile = from; tile < until; tile++) {
        i64 j0 = tile * COLUMNS;
        const T *bk = t.k + (b * p.key_heads + hk) * WIDTH_PADDED * t.k_padded + j0;
        T k_reach = whole_reach(t.k_reach + ((b * p.key_heads + hk) * tiles + tile) * (WIDTH_PADDED / DEPTH));
        Way way = way_of(limits, q_reach, k_reach);
        T score[SIDE][SIDE];
        EACH_PAIR(r, c) score[r][c] = 0;
#pragma unroll
        for (int stage = 0; stage < STAGES - 1; stage++) {
            if (stage * DEPTH < WIDTH_PADDED) load_chunk(s, stage, a, t.q_padded, bk, t.k_padded, stage * DEPTH);
            copies_commit();
        }
#pragma unroll 1
        for (int chunk = 0; chunk < WIDTH_PADDED / DEPTH; chunk++) {
            copies_wait<STAGES - 2>();
            __syncthreads();
            int next = chunk + STAGES - 1;
            if (next * DEPTH < WIDTH_PADDED) load_chunk(s, next % STAGES, a, t.q_padded, bk, t.k_padded, next * DEPTH);
            if (chunk == 0) load_values(p, s, b, hk, j0); // they come while the scores are computed
            copies_commit();
            // −½ of a score, which is Σ 1 / E − ½ Σw: chunk by chunk, since both are large where scores are small.
            EACH_PAIR(r, c) score[r][c] -= s.features.sums[chunk];
            if (way != DIRECTLY) add_terms(way, s.a[chunk % STAGES], s.b[chunk % STAGES], s.features.c + chunk * DEPTH, ty, tx, score);
        }
        EACH_PAIR(r, c) score[r][c] *= -2 * limits.unit;
        __syncthreads();
        if (way == DIRECTLY) {
            EACH_PAIR(r, c) {
                i64 i = least(i0 + ty * SIDE + r, p.queries - 1), j = least(j0 + tx * SIDE + c, p.keys - 1);
                score[r][c] = direct_score(p, b, h, hk, i, j);
            }
        }
        bool whole = j0 + COLUMNS <= p.keys && bottom_row.low <= j0 && top_row.high >= j0 + COLUMNS;
#pragma unroll
        for (int r = 0; r < SIDE; r++) {
            if (!whole) {
                Reach reach = keys_of(p, b, least(i0 + ty * SIDE + r, p.queries - 1));
#pragma unroll
                for (int c = 0; c < SIDE; c++) {
                    i64 j = j0 + tx * SIDE + c;
                    if (j < reach.low || j >= reach.high) score[r][c] = NEG_INF;
                }
            }
            T before = top[r], here = NEG_INF;
#pragma unroll
            for (int c = 0; c < SIDE; c++) here = fmaxf(here, score[r][c]);
#pragma unroll
            for (int step = ACROSS / 2; step > 0; step /= 2) here = fmaxf(here, __shfl_xor_sync(ALL, here, step));
            top[r] = fmaxf(before, here);
            T base = top[r] == NEG_INF ? (T)0 : top[r], shrink = expf(before - base), sum = 0;
#pragma unroll
            for (int c = 0; c < SIDE; c++) {
                score[r][c] = expf(score[r][c] - base);
                sum += score[r][c];
            }
            total[r] = fmaf(total[r], shrink, sum);
            if (tx == 0) s.shrinks[ty * SIDE + r] = shrink;
            uint4 high, low;
            halve(score[r][0], high.x, low.x), halve(score[r][1], high.y, low.y);
            halve(score[r][2], high.z, low.z), halve(score[r][3], high.w, low.w);
            *(uint4 *)&s.weights[0][ty * SIDE + r][tx * SIDE] = high;
            *(uint4 *)&s.weights[1][ty * SIDE + r][tx * SIDE] = low;
        }
        copies_wait<0>();
        __syncthreads();
        EACH_OUTPUT(m, part, n) out[m][part][n] *= s.shrinks[ROW_OF(m, n)];
        add_values(s, out, whole);
        __syncthreads();
    }
    bool one = t.splits == 1;
#pragma unroll
    for (int r = 0; r < SIDE; r++) {
#pragma unroll
        for (int step = ACROSS / 2; step > 0; step /= 2) total[r] += __shfl_xor_sync(ALL, total[r], step);
        i64 i = i0 + ty * SIDE + r, row = (b * p.heads + h) * p.queries + i;
        if (tx != 0) continue;
        s.totals[ty * SIDE + r] = total[r];
        if (i >= p.queries) continue;
        if (one && o.lse) o.lse[row] = total[r] == 0 ? NEG_INF : top[r] + logf(total[r]);
        if (!one) t.part_top[row * t.splits + split] = top[r], t.part_total[row * t.splits + split] = total[r];
    }
    EACH_OUTPUT(m, part, n) s.values[ROW_OF(m, n)][COLUMN_OF(part, n)] = out[m][part][n];
    __syncthreads();
    for (int n = threadIdx.x; n < ROWS * VALUE_PADDED / 4; n += THREADS) {
        int r = n / (VALUE_PADDED / 4), d = n % (VALUE_PADDED / 4) * 4;
        i64 i = i0 + r, row = (b * p.heads + h) * p.queries + i;
        if (i >= p.queries) break;
        float4 v = *(float4 *)&s.values[r][d];
        if (!one) {
            *(float4 *)(t.part_out + (row * t.splits + split) * VALUE_PADDED + d) = v;
        } else if (d < p.value_width) {
            T scale = s.totals[r] == 0 ? (T)0 : 1 / s.totals[r];
            *(float4 *)(o.out.data + b * o.out.b + h * o.out.h + i * o.out.n + d) = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
        }
    }
}

// The splits of each row put together, in order; a warp has a row.
extern "C" __global__ void __launch_bounds__(128) additive_merge(const __grid_constant__ Problem p, const __grid_constant__ Forward o, const __grid_constant__ Tiles t) {
    int lane = lane_id();
    for (i64 row = warp_id(); row < p.batch * p.heads * p.queries; row += warps()) {
        T top = NEG_INF, total = 0;
        for (i64 n = 0; n < t.splits; n++) top = fmaxf(top, t.part_top[row * t.splits + n]);
        T base = top == NEG_INF ? (T)0 : top;
        for (i64 n = 0; n < t.splits; n++) total += t.part_total[row * t.splits + n] * expf(t.part_top[row * t.splits + n] - base);
        T scale = total == 0 ? (T)0 : 1 / total;
        i64 b = row / p.queries / p.heads, h = row / p.queries % p.heads, i = row % p.queries;
        T *to = o.out.data + b * o.out.b + h * o.out.h + i * o.out.n;
        for (int d = lane * 4; d < p.value_width; d += WARP * 4) {
            float4 sum = make_float4(0, 0, 0, 0);
            for (i64 n = 0; n < t.splits; n++) {
                T share = expf(t.part_top[row * t.splits + n] - base);
                float4 v = *(const float4 *)(t.part_out + (row * t.splits + n) * VALUE_PADDED + d);
                sum.x = fmaf(share, v.x, sum.x), sum.y = fmaf(share, v.y, sum.y);
                sum.z = fmaf(share, v.z, sum.z), sum.w = fmaf(share, v.w, sum.w);
            }
            *(float4 *)(to + d) = make_float4(sum.x * scale, sum.y * scale, sum.z * scale, sum.w * scale);
        }
        if (lane == 0 && o.lse) o.lse[row] = total == 0 ? NEG_INF : top + logf(total);
    }
}
#endif

// Σ w tanh(q + k) under softmax, in f32, tile by tile.
//
// tanh(q + k) = 1 − 2 / (1 + e^2q e^2k), so with A = e^2q and B = e^2k a score is Σw − 2 Σ w / D,
// D = 1 + AB, and four terms share a reciprocal:
// w₁/D₁ + w₂/D₂ = (w₁D₂ + w₂D₁) / (D₁D₂), and two such once more.
// That product overflows where |q| + |k| passes SHARED; one term alone never does where A and B are
// finite; beyond that tanh is computed as it is written.

#define ROWS 64    // queries of a block
#define COLUMNS 64 // keys of a tile
#define DEPTH 32   // features at a time
#define STAGES 2
#define SIDE 4 // a thread has 4 × 4 scores
#define THREADS 256
#define ACROSS (COLUMNS / SIDE)
#define VALUE_PARTS (VALUE_PADDED / COLUMNS)
#define UNROLLED (VALUE_PADDED > 128 ? 1 : 2)
#define SHARED_REACH 10.5f
#define FINITE_REACH 43.0f

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

// 64 rows and 32 features, transposed, and as they are where `rows` is given: e^2x, and the largest |x|
// among them, where `reach` is given, else x. One block each.
__device__ __forceinline__ void prepare(const Array &from, i64 b, i64 h, i64 heads, i64 block, i64 length, i64 padded, i64 width, int width_padded, T *to, T *rows, T *reach) {
    __shared__ T turned[DEPTH][ROWS + 1];
    __shared__ T tops[THREADS / WARP];
    i64 first = block * ROWS;
    int d0 = blockIdx.z * DEPTH;
    if (d0 >= width_padded) return;
    T *head = to + ((b * heads + h) * width_padded + d0) * padded + first;
    T *row_head = rows + ((b * heads + h) * padded + first) * width_padded + d0;
    T top = 0;
#pragma unroll
    for (int n = threadIdx.x; n < DEPTH * ROWS; n += THREADS) {
        int d = n % DEPTH, i = n / DEPTH;
        bool there = d0 + d < width && first + i < length;
        T x = there ? from.data[b * from.b + h * from.h + (first + i) * from.n + d0 + d] : (T)0;
        top = fmaxf(top, fabsf(x));
        T y = reach ? (there ? expf(2 * x) : (T)0) : x;
        turned[d][i] = y;
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

// Queries and keys: blocks of rows by x, the queries' first; heads by y; features by z.
extern "C" __global__ void __launch_bounds__(THREADS) additive_prepare(const __grid_constant__ Problem p, const __grid_constant__ Tiles t) {
    i64 q_blocks = t.q_padded / ROWS;
    bool of_keys = blockIdx.x >= q_blocks;
    i64 heads = of_keys ? p.key_heads : p.heads;
    if (blockIdx.y >= p.batch * heads) return;
    i64 b = blockIdx.y / heads, h = blockIdx.y % heads;
    if (of_keys) prepare(p.k, b, h, heads, blockIdx.x - q_blocks, p.keys, t.k_padded, p.width, WIDTH_PADDED, t.k, t.k_rows, t.k_reach);
    else prepare(p.q, b, h, heads, blockIdx.x, p.queries, t.q_padded, p.width, WIDTH_PADDED, t.q, t.q_rows, t.q_reach);
}

// The largest of all features.
__device__ __forceinline__ T whole_reach(const T *reach) {
    T top = 0;
#pragma unroll
    for (int n = 0; n < WIDTH_PADDED / DEPTH; n++) top = fmaxf(top, reach[n]);
    return top;
}

struct Shared {
    // The weights of a tile come when its features are done with.
    union {
        struct {
            T a[STAGES][DEPTH][ROWS];
            T b[STAGES][DEPTH][COLUMNS];
        };
        T weights[ROWS][COLUMNS + 4];
    };
    T values[COLUMNS][VALUE_PADDED];
    T w[WIDTH_PADDED];
    T w_sums[WIDTH_PADDED / DEPTH];
};

__device__ __forceinline__ void load_chunk(Shared &s, int stage, const T *a, i64 a_row, const T *b, i64 b_row, int d0) {
    // Some features of 64 rows each: four numbers a copy.
#pragma unroll
    for (int n = threadIdx.x; n < 2 * DEPTH * ROWS / 4; n += THREADS) {
        int d = n / (ROWS / 4) % DEPTH, x = n % (ROWS / 4) * 4;
        if (n < DEPTH * ROWS / 4) copy_async(&s.a[stage][d][x], a + (d0 + d) * a_row + x, true);
        else copy_async(&s.b[stage][d][x], b + (d0 + d) * b_row + x, true);
    }
}

__device__ __forceinline__ void load_values(const Problem &p, Shared &s, i64 b, i64 hk, i64 j0) {
    const T *from = p.v.data + b * p.v.b + hk * p.v.h + j0 * p.v.n;
    for (int n = threadIdx.x; n < COLUMNS * VALUE_PADDED / 4; n += THREADS) {
        int j = n / (VALUE_PADDED / 4), d = n % (VALUE_PADDED / 4) * 4;
        bool there = j0 + j < p.keys && d < p.value_width;
        copy_async(&s.values[j][d], there ? from + j * p.v.n + d : p.v.data, there);
    }
}

#define EACH_PAIR(r, c) \
    _Pragma("unroll") for (int r = 0; r < SIDE; r++) _Pragma("unroll") for (int c = 0; c < SIDE; c++)

__device__ __forceinline__ void load_side(T (&to)[SIDE], const T *from) {
    float4 v = *(const float4 *)from;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

// Σ w / D of a chunk, four features to a reciprocal.
__device__ __forceinline__ void add_shared(const Shared &s, int stage, int d0, int ty, int tx, T (&sum)[SIDE][SIDE]) {
#pragma unroll UNROLLED
    for (int d = 0; d < DEPTH; d += 4) {
        T a[4][SIDE], b[4][SIDE], w[4];
#pragma unroll
        for (int u = 0; u < 4; u++) {
            load_side(a[u], &s.a[stage][d + u][ty * SIDE]);
            load_side(b[u], &s.b[stage][d + u][tx * SIDE]);
        }
        load_side(w, &s.w[d0 + d]);
        EACH_PAIR(r, c) {
            T d1 = fmaf(a[0][r], b[0][c], 1.0f), d2 = fmaf(a[1][r], b[1][c], 1.0f);
            T d3 = fmaf(a[2][r], b[2][c], 1.0f), d4 = fmaf(a[3][r], b[3][c], 1.0f);
            T below = d1 * d2, beneath = d3 * d4;
            T above = fmaf(w[1], d1, w[0] * d2), atop = fmaf(w[3], d3, w[2] * d4);
            T whole = fmaf(atop, below, above * beneath);
            sum[r][c] = fmaf(whole, reciprocal(below * beneath), sum[r][c]);
        }
    }
}

// The same, each by itself.
__device__ __forceinline__ void add_single(const Shared &s, int stage, int d0, int ty, int tx, T (&sum)[SIDE][SIDE]) {
#pragma unroll 2
    for (int d = 0; d < DEPTH; d++) {
        T a[SIDE], b[SIDE], w = s.w[d0 + d];
        load_side(a, &s.a[stage][d][ty * SIDE]);
        load_side(b, &s.b[stage][d][tx * SIDE]);
        EACH_PAIR(r, c) sum[r][c] = fmaf(w, reciprocal(fmaf(a[r], b[c], 1.0f)), sum[r][c]);
    }
}

// Adds weights · values. Where some pairs are hidden their values are not looked at: 0 · NaN is NaN.
template <bool ALL_SEEN>
__device__ __forceinline__ void add_values(const Shared &s, int ty, int tx, T (&out)[SIDE][VALUE_PARTS * 4]) {
#pragma unroll 1
    for (int k = 0; k < COLUMNS; k += 4) {
        T weight[SIDE][4];
#pragma unroll
        for (int r = 0; r < SIDE; r++) load_side(weight[r], &s.weights[ty * SIDE + r][k]);
#pragma unroll
        for (int u = 0; u < 4; u++) {
#pragma unroll
            for (int part = 0; part < VALUE_PARTS; part++) {
                T v[4];
                load_side(v, &s.values[k + u][part * COLUMNS + tx * 4]);
#pragma unroll
                for (int r = 0; r < SIDE; r++) {
#pragma unroll
                    for (int c = 0; c < 4; c++) {
                        T &to = out[r][part * 4 + c];
                        if (ALL_SEEN || weight[r][u] != 0) to = fmaf(weight[r][u], v[c], to);
                    }
                }
            }
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
    i64 block = blockIdx.x / t.splits, split = blockIdx.x % t.splits;
    i64 b = blockIdx.y / p.heads, h = blockIdx.y % p.heads, hk = h / (p.heads / p.key_heads);
    i64 i0 = block * ROWS, tiles = t.k_padded / COLUMNS, per_split = (tiles + t.splits - 1) / t.splits;
    const T *a = t.q + (b * p.heads + h) * WIDTH_PADDED * t.q_padded + i0;
    T q_reach = whole_reach(t.q_reach + ((b * p.heads + h) * (t.q_padded / ROWS) + block) * (WIDTH_PADDED / DEPTH));
    for (int d = threadIdx.x; d < WIDTH_PADDED; d += THREADS)
        s.w[d] = d < p.width ? p.parameters[0].data[h * p.parameters[0].head + d] : (T)0;
    __syncthreads();
    if (threadIdx.x < WIDTH_PADDED / DEPTH) {
        T sum = 0;
        for (int d = 0; d < DEPTH; d++) sum += s.w[threadIdx.x * DEPTH + d];
        s.w_sums[threadIdx.x] = sum;
    }
    __syncthreads();
    // Rows that are not there see what the last one sees.
    Reach top_row = keys_of(p, b, i0), bottom_row = keys_of(p, b, least(i0 + ROWS, p.queries) - 1);
    i64 from = most(split * per_split, most(top_row.low, 0) / COLUMNS);
    i64 until = least(least(tiles, (split + 1) * per_split), (most(bottom_row.high, 0) + COLUMNS - 1) / COLUMNS);
    T top[SIDE], total[SIDE], out[SIDE][VALUE_PARTS * 4];
#pragma unroll
    for (int r = 0; r < SIDE; r++) {
        top[r] = NEG_INF, total[r] = 0;
#pragma unroll
        for (int c = 0; c < VALUE_PARTS * 4; c++) out[r][c] = 0;
    }
    for (i64 tile = from; tile < until; tile++) {
        i64 j0 = tile * COLUMNS;
        const T *bk = t.k + (b * p.key_heads + hk) * WIDTH_PADDED * t.k_padded + j0;
        T k_reach = whole_reach(t.k_reach + ((b * p.key_heads + hk) * tiles + tile) * (WIDTH_PADDED / DEPTH));
        bool shared = q_reach + k_reach < SHARED_REACH, finite = q_reach < FINITE_REACH && k_reach < FINITE_REACH;
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
            // −½ of a score, which is Σ w / D − ½ Σw: chunk by chunk, since both are large where scores are small.
            T half_sum = 0.5f * s.w_sums[chunk];
            EACH_PAIR(r, c) score[r][c] -= half_sum;
            if (shared) add_shared(s, chunk % STAGES, chunk * DEPTH, ty, tx, score);
            else if (finite) add_single(s, chunk % STAGES, chunk * DEPTH, ty, tx, score);
        }
        EACH_PAIR(r, c) score[r][c] *= -2;
        __syncthreads();
        if (!finite) {
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
#pragma unroll
            for (int c = 0; c < VALUE_PARTS * 4; c++) out[r][c] *= shrink;
            *(float4 *)&s.weights[ty * SIDE + r][tx * SIDE] = make_float4(score[r][0], score[r][1], score[r][2], score[r][3]);
        }
        copies_wait<0>();
        __syncthreads();
        if (whole) add_values<true>(s, ty, tx, out);
        else add_values<false>(s, ty, tx, out);
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < SIDE; r++) {
#pragma unroll
        for (int step = ACROSS / 2; step > 0; step /= 2) total[r] += __shfl_xor_sync(ALL, total[r], step);
        i64 i = i0 + ty * SIDE + r, row = (b * p.heads + h) * p.queries + i;
        if (i >= p.queries) continue;
        bool one = t.splits == 1;
        T *to = one ? o.out.data + b * o.out.b + h * o.out.h + i * o.out.n : t.part_out + (row * t.splits + split) * VALUE_PADDED;
#pragma unroll
        for (int part = 0; part < VALUE_PARTS; part++) {
            int d = part * COLUMNS + tx * 4;
            float4 v = make_float4(out[r][part * 4], out[r][part * 4 + 1], out[r][part * 4 + 2], out[r][part * 4 + 3]);
            if (one) {
                T scale = total[r] == 0 ? (T)0 : 1 / total[r];
                v.x *= scale, v.y *= scale, v.z *= scale, v.w *= scale;
            }
            if (!one || d < p.value_width) *(float4 *)(to + d) = v;
        }
        if (tx == 0 && one && o.lse) o.lse[row] = total[r] == 0 ? NEG_INF : top[r] + logf(total[r]);
        if (tx == 0 && !one) t.part_top[row * t.splits + split] = top[r], t.part_total[row * t.splits + split] = total[r];
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

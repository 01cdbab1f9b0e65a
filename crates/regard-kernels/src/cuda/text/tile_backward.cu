// Backward in general tiles: by query for q's gradient, by key for k's and v's, and once more by query for what biases
// learn. Scores are computed again in each; nothing is added to by two blocks.

#define OWN_KEYS (16 * WARPS) // of a block, by key
#define TOGETHER (WIDTH + VALUES <= 256)

struct Deltas {
    float lse, delta; // in UNITs, and as it is
    __device__ __forceinline__ Deltas() {}
    __device__ __forceinline__ Deltas(const Backward &g, i64 row) : lse(g.lse ? g.lse[row] * UNIT : 0.0f), delta(NORMALIZER == SOFTMAX ? g.delta[row] : 0.0f) {}
};

// Softmax: Σ weight · gradient of a row, less what arrives at its log-sum-exp. A warp has a row.
extern "C" __global__ void __launch_bounds__(128) tile_deltas(const __grid_constant__ Problem p, const __grid_constant__ Backward g) {
    for (i64 at = warp_id(); at < p.batch * p.heads * p.queries; at += warps()) {
        i64 b = at / p.queries / p.heads, h = at / p.queries % p.heads, i = at % p.queries;
        const E *x = g.grad_out.data + b * g.grad_out.b + h * g.grad_out.h + i * g.grad_out.n;
        const E *y = g.out.data + b * g.out.b + h * g.out.h + i * g.out.n;
        float sum = 0;
        for (i64 d = lane_id(); d < p.value_width; d += WARP) sum += widen(x[d]) * widen(y[d]);
        sum = warp_sum(sum);
        if (lane_id() == 0) g.delta[at] = g.grad_lse ? sum - g.grad_lse[at] : sum;
    }
}

// The gradient of a pair's weight, keep factor included.
__device__ __forceinline__ float weight_grad(const Problem &p, const Backward &g, float product, i64 row, i64 j, bool dropped) {
#if HAS_ARRIVING
    product += g.grad_weights[row * p.keys + j];
#endif
#if HAS_DROPOUT
    product *= dropped ? 0.0f : (float)p.kept;
#endif
    return product;
}

// ---- By query ----

// A warp's 16 rows: from scores to their gradients.
__device__ __forceinline__ void score_grads_of_tile(const Problem &p, const Backward &g, const Walk &walk, const Deltas (&rows)[2], float (&s)[KEYS / 2],
                                                    float (&grads)[KEYS / 2], int first) {
    const E *v = p.v.data + walk.queries.b * p.v.b + walk.queries.hk * p.v.h;
    each_pair(p, walk.lines[0], first, [&](int at, int r, int j, bool dropped) {
        const Line &l = walk.lines[0][r];
        float score = s[at], grad = 0;
        if (!(score == NEG_INF)) {
            float product = defined(grads[at], l.row_of(g.grad_out), v + j * p.v.n, p.value_width);
            grad = score_grad(weight_at(score, rows[r].lse), weight_grad(p, g, product, l.row(p), j, dropped) - rows[r].delta);
        }
        s[at] = grad;
    });
}

#if HAS_ARRIVING && NORMALIZER == SOFTMAX
// What arrives at the weights themselves, added to each row's delta.
extern "C" __global__ void __launch_bounds__(THREADS) tile_arriving(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Tile t) {
    SHARED_MEMORY(memory);
    Walk walk(p, queries_of_block(p, t), memory);
    walk.load_queries(p);
    float sums[2] = {0, 0}, lse[2];
#pragma unroll
    for (int r = 0; r < 2; r++) lse[r] = g.lse[walk.lines[0][r].row(p)] * UNIT;
    walk.over_keys(p, false, [&](float(&s)[1][KEYS / 2], int first, const u16 *, const u16 *) {
        each_pair(p, walk.lines[0], first, [&](int at, int r, int j, bool dropped) {
            const Line &l = walk.lines[0][r];
            if (!(s[0][at] == NEG_INF)) sums[r] += weight_at(s[0][at], lse[r]) * weight_grad(p, g, 0, l.row(p), j, dropped);
        });
    });
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const Line &l = walk.lines[0][r];
        float sum = quad_sum(sums[r]);
        if (l.there && lane_id() % 4 == 0) g.delta[l.row(p)] += sum;
    }
}
#endif

// A pair as the formula has it, for rows that are computed again: its weight, and the gradient of its score.
struct Pair {
    float weight, grad;
    bool seen;
};

__device__ __forceinline__ Pair plain_pair(const Problem &p, const Backward &g, const Line &l, i64 j) {
    float score = plain_score(p, l, j);
    if (score == NEG_INF) return {0, 0, false};
    const E *v = p.v.data + l.b * p.v.b + l.h / (p.heads / p.key_heads) * p.v.h + j * p.v.n;
    Deltas row(g, l.row(p));
    float keep = keep_factor(p, l.b * p.heads + l.h, l.i, j), weight = weight_at(score, row.lse);
    float grad = weight_grad(p, g, product_of(l.row_of(g.grad_out), v, p.value_width), l.row(p), j, keep == 0);
    return {weight * keep, score_grad(weight, grad - row.delta), true};
}

__device__ void query_row_again(const Problem &p, const Backward &g, const Line &l) {
    const E *k = p.k.data + l.b * p.k.b + l.h / (p.heads / p.key_heads) * p.k.h;
    Sums sums(p.width);
    for (int j0 = l.low; j0 < l.high && !sums.undefined(); j0 += WARP) {
        int j = j0 + lane_id();
        Pair pair = {0, 0, false};
        if (j < l.high) pair = plain_pair(p, g, l, j);
        u32 seen = __ballot_sync(ALL, pair.seen);
        for (int n = 0; n < WARP; n++)
            if (seen >> n & 1) sums.add(__shfl_sync(ALL, pair.grad, n), k + (j0 + n) * p.k.n);
    }
    sums.store(g.grad_q.data + l.b * g.grad_q.b + l.h * g.grad_q.h + l.i * g.grad_q.n, (float)p.scale);
}

extern "C" __global__ void __launch_bounds__(THREADS) tile_backward_queries(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Tile t) {
    SHARED_MEMORY(memory);
    Walk walk(p, queries_of_block(p, t), memory);
    walk.load_queries(p);
    walk.load_grads(p, g.grad_out);
    Deltas rows[2];
#pragma unroll
    for (int r = 0; r < 2; r++) rows[r] = Deltas(g, walk.lines[0][r].row(p));
    float sum[1][WIDTH / 2];
#pragma unroll
    for (int n = 0; n < WIDTH / 2; n++) sum[0][n] = 0;
    walk.over_keys(p, true, [&](float(&s)[1][KEYS / 2], int first, const u16 *k, const u16 *v) {
        float grads[1][KEYS / 2];
        multiply_rows<1, ROWS, KEYS, VALUES>(grads, walk.grad, walk.row(0, 0) - lane_id() / 4, v);
        score_grads_of_tile(p, g, walk, rows, s[0], grads[0], first);
        multiply_columns<1, KEYS, WIDTH>(sum, s, k);
    });
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const Line &l = walk.lines[0][r];
        E *row = g.grad_q.data + l.b * g.grad_q.b + l.h * g.grad_q.h + l.i * g.grad_q.n;
        float scale = (float)p.scale;
        if (l.there)
#pragma unroll
            for (int n = 2 * r; n < WIDTH / 2; n += 4) store_two(row, own_column(n), p.width, sum[0][n] * scale, sum[0][n + 1] * scale);
        bool odd = is_undefined(p, sum[0], r); // lanes ask each other
        u32 again = __ballot_sync(ALL, l.there && odd && lane_id() % 4 == 0);
        __syncwarp();
        for (; again; again &= again - 1) {
            int lane = __ffs(again) - 1;
            query_row_again(p, g, Line(p, __shfl_sync(ALL, l.b, lane), __shfl_sync(ALL, l.h, lane), __shfl_sync(ALL, l.i, lane), true));
        }
    }
}

// ---- By key ----

// What one key's scores need besides the product, in one head.
struct Column {
    int b, h, j;
    int low, high; // the queries that it is in reach of
    bool there;
#if HAS_SEGMENTS
    i64 segment;
#endif
#if HAS_DENSE
    const u8 *dense;
#endif
#if HAS_KEY_BIAS
    float key_bias;
#endif
#if HAS_FULL_BIAS
    const T *full_bias;
#endif
#if HAS_ALIBI
    float slope;
#endif
#if HAS_RELATIVE
    const T *relative;
#endif

    __device__ __forceinline__ Column() {}
    __device__ __forceinline__ Column(const Problem &p, i64 b, i64 h, i64 key) : b((int)b), h((int)h), j((int)least(key, p.keys - 1)), there(key < p.keys) {
        Reach reach = queries_of(p, b, j);
        low = (int)least(most(reach.low, 0), p.queries), high = there ? (int)most(reach.high, 0) : 0;
#if HAS_SEGMENTS
        segment = p.k_segments[b * p.keys + j];
#endif
#if HAS_DENSE
        dense = (const u8 *)p.dense.data + b * p.dense.b + h * p.dense.h + j * p.dense.k;
#endif
#if HAS_KEY_BIAS
        key_bias = ((const T *)p.key_bias.data)[b * p.key_bias.b + h * p.key_bias.h + j * p.key_bias.k];
#endif
#if HAS_FULL_BIAS
        full_bias = (const T *)p.full_bias.data + b * p.full_bias.b + h * p.full_bias.h + j * p.full_bias.k;
#endif
#if HAS_ALIBI
        slope = p.alibi[h];
#endif
#if HAS_RELATIVE
        relative = p.relative + h * p.relative_head + p.max_distance;
#endif
    }
};

template <bool CUT> __device__ __forceinline__ float score_of_column(const Problem &p, const Column &x, float product, int i) {
    if (CUT && (i < x.low || i >= x.high)) return NEG_INF;
#if HAS_SEGMENTS
    if (p.q_segments[x.b * p.queries + i] != x.segment) return NEG_INF;
#endif
#if HAS_DENSE
    if (!x.dense[i * p.dense.q]) return NEG_INF;
#endif
    float score = product * (float)(p.scale * (double)UNIT);
#if HAS_BIAS
    float bias = 0;
#if HAS_KEY_BIAS
    bias += x.key_bias;
#endif
#if HAS_FULL_BIAS
    bias += x.full_bias[i * p.full_bias.q];
#endif
#if HAS_ALIBI || HAS_RELATIVE
    int distance = x.j - (int)(i + p.offset);
#endif
#if HAS_ALIBI
    bias -= x.slope * (float)(distance < 0 ? -distance : distance);
#endif
#if HAS_RELATIVE
    bias += x.relative[most(least(distance, p.max_distance), -p.max_distance)];
#endif
    if (bias == NEG_INF) return NEG_INF;
    score += bias * UNIT;
#endif
    return score;
}

__device__ void key_row_again(const Problem &p, const Backward &g, i64 b, i64 hk, i64 j, bool of_k, bool of_v) {
    i64 group = p.heads / p.key_heads;
    Sums keys(p.width), values(p.value_width);
    for (i64 h = hk * group; h < (hk + 1) * group; h++) {
        Column x(p, b, h, j);
        const E *q = p.q.data + b * p.q.b + h * p.q.h, *grad = g.grad_out.data + b * g.grad_out.b + h * g.grad_out.h;
        for (int i0 = x.low; i0 < x.high; i0 += WARP) {
            int i = i0 + lane_id();
            Pair pair = {0, 0, false};
            if (i < x.high) pair = plain_pair(p, g, Line(p, b, h, i, true), j);
            u32 seen = __ballot_sync(ALL, pair.seen);
            for (int n = 0; n < WARP; n++) {
                if (!(seen >> n & 1)) continue;
                keys.add(__shfl_sync(ALL, pair.grad, n), q + (i0 + n) * p.q.n);
                values.add(__shfl_sync(ALL, pair.weight, n), grad + (i0 + n) * g.grad_out.n);
            }
        }
    }
    if (of_k) keys.store(g.grad_k.data + b * g.grad_k.b + hk * g.grad_k.h + j * g.grad_k.n, (float)p.scale);
    if (of_v) values.store(g.grad_v.data + b * g.grad_v.b + hk * g.grad_v.h + j * g.grad_v.n, 1);
}

#define Q_TILE (PARTS * QUERIES * STRIDE(WIDTH))
#define G_TILE (PARTS * QUERIES * STRIDE(VALUES))

// Weights and score gradients of 16 keys and QUERIES queries from `first` on, from the products: `s` becomes the weights
// after dropout but for its factor, `grads` the scores' gradients.
template <bool CUT>
__device__ __forceinline__ void grads_by_key(const Problem &p, const Backward &g, const Column (&keys)[2], int hk, int first_key, const float *lse, const float *delta,
                                             float (&s)[QUERIES / 2], float (&grads)[QUERIES / 2], int first) {
    const E *q = p.q.data + keys[0].b * p.q.b + keys[0].h * p.q.h, *dy = g.grad_out.data + keys[0].b * g.grad_out.b + keys[0].h * g.grad_out.h;
    const E *k = p.k.data + keys[0].b * p.k.b + hk * p.k.h, *v = p.v.data + keys[0].b * p.v.b + hk * p.v.h;
    i64 row = (keys[0].b * p.heads + keys[0].h) * p.queries;
#pragma unroll
    for (int block = 0; block < QUERIES / 8; block++) {
#if HAS_DROPOUT
        u32 dropped = dropped_by_key(p, keys[0].b, keys[0].h, first + 8 * block, first_key);
#else
        u32 dropped = 0;
#endif
#pragma unroll
        for (int n = 0; n < 4; n++) {
            int at = 4 * block + n, column = own_column(at), i = first + column;
            const Column &x = keys[n / 2];
            float product = defined(s[at], q + least(i, p.queries - 1) * p.q.n, k + least(x.j, p.keys - 1) * p.k.n, p.width);
            float score = score_of_column<CUT>(p, x, product, i), weight = 0, grad = 0;
            if (!(score == NEG_INF)) {
                weight = weight_at(score, lse[column]);
                product = defined(grads[at], dy + i * g.grad_out.n, v + x.j * p.v.n, p.value_width);
                grad = score_grad(weight, weight_grad(p, g, product, row + i, x.j, dropped >> n & 1) - delta[column]);
                if (dropped >> n & 1) weight *= 0;
            }
            s[at] = weight, grads[at] = grad;
        }
    }
}

// Tiles of queries that some key of a block is in reach of.
struct QuerySpan {
    int first, last, inside_low, inside_high;
    __device__ __forceinline__ QuerySpan(const Problem &p, i64 b, i64 first_key) {
        i64 last_key = least(first_key + OWN_KEYS, p.keys) - 1, seen = p.lengths ? least(last_key, p.lengths[b] - 1) : last_key;
        first = last = inside_low = inside_high = 0;
        if (seen < first_key) return;
        Reach early = queries_of(p, b, first_key), late = queries_of(p, b, seen);
        int low = (int)least(most(early.low, 0), p.queries), high = (int)least(late.high, p.queries);
        first = low / QUERIES, last = high > low ? (high + QUERIES - 1) / QUERIES : first;
        if (seen == last_key) inside_low = (int)least(most(late.low, 0), p.queries), inside_high = (int)least(early.high, p.queries);
    }
    __device__ __forceinline__ bool inside(int query) const { return query >= inside_low && query + QUERIES <= inside_high; }
};

template <int N> __device__ __forceinline__ void store_keys(const Problem &p, const Result &to, i64 b, i64 hk, const Column (&keys)[2], const float (&x)[N], i64 width, float factor) {
#pragma unroll
    for (int r = 0; r < 2; r++)
        if (keys[r].there)
#pragma unroll
            for (int n = 2 * r; n < N; n += 4) store_two(to.data + b * to.b + hk * to.h + keys[r].j * to.n, own_column(n), width, x[n] * factor, x[n + 1] * factor);
}

template <bool OF_K, bool OF_V> __device__ __forceinline__ void backward_keys(const Problem &p, const Backward &g, i64 blocks) {
    SHARED_MEMORY(memory);
    u16 *k_own = (u16 *)memory, *v_own = k_own + PARTS * OWN_KEYS * STRIDE(WIDTH), *q_tiles = v_own + PARTS * OWN_KEYS * STRIDE(VALUES), *g_tiles = q_tiles + STAGES * Q_TILE;
    float *lses = (float *)(g_tiles + STAGES * G_TILE), *deltas = lses + STAGES * QUERIES;
    i64 head = blockIdx.x / blocks, b = head / p.key_heads, hk = head % p.key_heads, group = p.heads / p.key_heads;
    i64 first_key = blockIdx.x % blocks * OWN_KEYS;
    int warp = threadIdx.x / WARP;
    const E *k = p.k.data + b * p.k.b + hk * p.k.h, *v = p.v.data + b * p.v.b + hk * p.v.h;
    load_tile<OWN_KEYS, WIDTH>(k_own, (int)p.width, p.k.data, [&](int row) { return first_key + row < p.keys ? k + (first_key + row) * p.k.n : nullptr; });
    load_tile<OWN_KEYS, VALUES>(v_own, (int)p.value_width, p.v.data, [&](int row) { return first_key + row < p.keys ? v + (first_key + row) * p.v.n : nullptr; });
    float k_sum[1][OF_K ? WIDTH / 2 : 2], v_sum[1][OF_V ? VALUES / 2 : 2];
#pragma unroll
    for (int n = 0; n < (OF_K ? WIDTH / 2 : 2); n++) k_sum[0][n] = 0;
#pragma unroll
    for (int n = 0; n < (OF_V ? VALUES / 2 : 2); n++) v_sum[0][n] = 0;
    QuerySpan span(p, b, first_key);
    Column keys[2];
    int tiles = span.last - span.first, count = (int)group * tiles;
    auto load = [&](int n) {
        if (n < count) {
            i64 h = hk * group + n / tiles, i0 = (i64)(span.first + n % tiles) * QUERIES;
            int stage = STAGES == 1 ? 0 : n % STAGES;
            const E *q = p.q.data + b * p.q.b + h * p.q.h, *dy = g.grad_out.data + b * g.grad_out.b + h * g.grad_out.h;
            load_tile<QUERIES, WIDTH>(q_tiles + stage * Q_TILE, (int)p.width, p.q.data, [&](int row) { return i0 + row < p.queries ? q + (i0 + row) * p.q.n : nullptr; });
            load_tile<QUERIES, VALUES>(g_tiles + stage * G_TILE, (int)p.value_width, g.grad_out.data, [&](int row) { return i0 + row < p.queries ? dy + (i0 + row) * g.grad_out.n : nullptr; });
            for (int row = threadIdx.x; row < QUERIES; row += THREADS) {
                Deltas x(g, (b * p.heads + h) * p.queries + least(i0 + row, p.queries - 1));
                lses[stage * QUERIES + row] = x.lse, deltas[stage * QUERIES + row] = x.delta;
            }
        }
        copies_commit();
    };
    float key_sum[2] = {0, 0};
    if (STAGES > 1) load(0);
    for (int n = 0; n < count; n++) {
        load(n + STAGES - 1);
        copies_wait<STAGES - 1>();
        __syncthreads();
        int stage = STAGES == 1 ? 0 : n % STAGES, first = (span.first + n % tiles) * QUERIES;
        i64 h = hk * group + n / tiles;
        if (n % tiles == 0)
#pragma unroll
            for (int r = 0; r < 2; r++) keys[r] = Column(p, b, h, first_key + warp * 16 + lane_id() / 4 + 8 * r), key_sum[r] = 0;
        float s[1][QUERIES / 2], grads[1][QUERIES / 2];
        multiply_rows<1, OWN_KEYS, QUERIES, WIDTH>(s, k_own, warp * 16, q_tiles + stage * Q_TILE);
        if constexpr (OF_K) multiply_rows<1, OWN_KEYS, QUERIES, VALUES>(grads, v_own, warp * 16, g_tiles + stage * G_TILE);
        else
#pragma unroll
            for (int c = 0; c < QUERIES / 2; c++) grads[0][c] = 0;
        const float *lse = lses + stage * QUERIES, *delta = deltas + stage * QUERIES;
        if (span.inside(first)) grads_by_key<false>(p, g, keys, (int)hk, (int)first_key + warp * 16, lse, delta, s[0], grads[0], first);
        else grads_by_key<true>(p, g, keys, (int)hk, (int)first_key + warp * 16, lse, delta, s[0], grads[0], first);
        if constexpr (OF_V) multiply_columns<1, QUERIES, VALUES>(v_sum, s, g_tiles + stage * G_TILE);
        if constexpr (OF_K) {
            multiply_columns<1, QUERIES, WIDTH>(k_sum, grads, q_tiles + stage * Q_TILE);
            if (g.key_sums) {
#pragma unroll
                for (int c = 0; c < QUERIES / 2; c++) key_sum[c / 2 % 2] += grads[0][c];
                if (n % tiles == tiles - 1)
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        float sum = quad_sum(key_sum[r]);
                        if (keys[r].there && lane_id() % 4 == 0) g.key_sums[(b * p.heads + h) * p.keys + keys[r].j] = sum;
                    }
            }
        }
        __syncthreads();
    }
    copies_wait<0>();
#pragma unroll
    for (int r = 0; r < 2; r++) keys[r] = Column(p, b, hk * group, first_key + warp * 16 + lane_id() / 4 + 8 * r);
    bool of_k = OF_K && g.grad_k.data, of_v = OF_V && g.grad_v.data;
    if constexpr (OF_K)
        if (of_k) store_keys(p, g.grad_k, b, hk, keys, k_sum[0], p.width, (float)p.scale);
    if constexpr (OF_V)
        if (of_v) store_keys(p, g.grad_v, b, hk, keys, v_sum[0], p.value_width, HAS_DROPOUT ? (float)p.kept : 1.0f);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        bool odd = OF_K && of_k && is_undefined(p, k_sum[0], r);
        if (OF_V && of_v) odd |= is_undefined(p, v_sum[0], r);
        u32 again = __ballot_sync(ALL, keys[r].there && odd && lane_id() % 4 == 0);
        __syncwarp();
        for (; again; again &= again - 1) key_row_again(p, g, b, hk, __shfl_sync(ALL, keys[r].j, __ffs(again) - 1), of_k, of_v);
    }
}

#if TOGETHER
extern "C" __global__ void __launch_bounds__(THREADS) tile_backward_keys(const __grid_constant__ Problem p, const __grid_constant__ Backward g, i64 blocks) {
    backward_keys<true, true>(p, g, blocks);
}
#else
// Registers for one of them.
extern "C" __global__ void __launch_bounds__(THREADS) tile_backward_keys(const __grid_constant__ Problem p, const __grid_constant__ Backward g, i64 blocks) {
    backward_keys<true, false>(p, g, blocks);
}
extern "C" __global__ void __launch_bounds__(THREADS) tile_backward_values(const __grid_constant__ Problem p, const __grid_constant__ Backward g, i64 blocks) {
    backward_keys<false, true>(p, g, blocks);
}
#endif

// ---- Biases ----

__device__ __forceinline__ Queries queries_of_head(const Problem &p, i64 b, i64 h, i64 block) {
    return {b, h / (p.heads / p.key_heads), h, 1, p.queries, block * ROWS};
}

// The gradients of one tile's scores in one head.
__device__ __forceinline__ void score_grads_of_head(const Problem &p, const Backward &g, Walk &walk, int tile, float (&s)[1][KEYS / 2]) {
    __syncthreads();
    walk.load_queries(p);
    walk.load_grads(p, g.grad_out);
    walk.span.first = tile, walk.span.last = (int)least(walk.span.last, tile + 1);
    Deltas rows[2];
#pragma unroll
    for (int r = 0; r < 2; r++) rows[r] = Deltas(g, walk.lines[0][r].row(p));
#pragma unroll
    for (int n = 0; n < KEYS / 2; n++) s[0][n] = 0;
    walk.over_keys(p, true, [&](float(&scores)[1][KEYS / 2], int first, const u16 *, const u16 *v) {
        float grads[1][KEYS / 2];
        multiply_rows<1, ROWS, KEYS, VALUES>(grads, walk.grad, walk.row(0, 0) - lane_id() / 4, v);
        score_grads_of_tile(p, g, walk, rows, scores[0], grads[0], first);
#pragma unroll
        for (int n = 0; n < KEYS / 2; n++) s[0][n] = scores[0][n];
    });
}

#if HAS_FULL_BIAS
// The gradient of a full bias that has a row for each query: a block has ROWS of them, and a tile of keys or, where keys
// share a number, all of them; it walks all batch items and heads that share it.
extern "C" __global__ void __launch_bounds__(THREADS) tile_backward_bias(const __grid_constant__ Problem p, const __grid_constant__ Backward g, i64 blocks, i64 tiles) {
    SHARED_MEMORY(memory);
    i64 batch = g.bias_shape[0], heads = g.bias_shape[1], wide = g.bias_shape[3];
    i64 parts = wide == 1 ? 1 : tiles, block = blockIdx.x / parts % blocks, bias_head = blockIdx.x / parts / blocks, ob = bias_head / heads, oh = bias_head % heads;
    i64 first_tile = wide == 1 ? 0 : blockIdx.x % parts, last_tile = wide == 1 ? tiles : first_tile + 1;
    float sum[KEYS / 2];
#pragma unroll
    for (int n = 0; n < KEYS / 2; n++) sum[n] = 0;
    for (i64 b = batch == 1 ? 0 : ob; b < (batch == 1 ? p.batch : ob + 1); b++)
        for (i64 h = heads == 1 ? 0 : oh; h < (heads == 1 ? p.heads : oh + 1); h++)
            for (i64 tile = first_tile; tile < last_tile; tile++) {
                Walk walk(p, queries_of_head(p, b, h, block), memory);
                if (tile < walk.span.first || tile >= walk.span.last) continue; // the same in all threads
                float s[1][KEYS / 2];
                score_grads_of_head(p, g, walk, (int)tile, s);
#pragma unroll
                for (int n = 0; n < KEYS / 2; n++) sum[n] += s[0][n];
            }
    Walk walk(p, queries_of_head(p, 0, 0, block), memory);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const Line &l = walk.lines[0][r];
        T *to = g.grad_bias + (bias_head * p.queries + l.i) * wide;
        float all = 0;
#pragma unroll
        for (int n = 2 * r; n < KEYS / 2; n += n % 2 ? 3 : 1) {
            i64 j = first_tile * KEYS + own_column(n);
            all += sum[n];
            if (wide > 1 && l.there && j < p.keys) to[j] = sum[n];
        }
        all = quad_sum(all);
        if (wide == 1 && l.there && lane_id() % 4 == 0) to[0] = all;
    }
}
#endif

#if HAS_RELATIVE
// The gradient of a bias by distance: a block sums its tiles along their diagonals, and adds them to a slab of its own.
extern "C" __global__ void __launch_bounds__(THREADS) tile_backward_relative(const __grid_constant__ Problem p, const __grid_constant__ Backward g, i64 blocks) {
    SHARED_MEMORY(memory);
    i64 head = blockIdx.x / blocks, block = blockIdx.x % blocks, table = 2 * p.max_distance + 1;
    Queries queries = queries_of_head(p, head / p.heads, head % p.heads, block);
    float *slab = g.relative_slabs + (i64)blockIdx.x * table;
    Walk whole(p, queries, memory);
    float *tile_grads = (float *)(whole.v + STAGES * V_TILE), *sums = tile_grads + ROWS * (KEYS + 1); // [ROWS, KEYS + 1], [ROWS + KEYS]
    for (int tile = whole.span.first; tile < whole.span.last; tile++) {
        Walk walk = whole;
        float s[1][KEYS / 2];
        score_grads_of_head(p, g, walk, tile, s);
#pragma unroll
        for (int n = 0; n < KEYS / 2; n++) {
            int row = walk.row(0, n / 2 % 2);
            tile_grads[row * (KEYS + 1) + own_column(n)] = walk.lines[0][n / 2 % 2].there ? s[0][n] : 0.0f;
        }
        __syncthreads();
        // Diagonal d: column − row = d − (ROWS − 1).
        i64 nearest = (i64)tile * KEYS - (queries.first + ROWS - 1 + p.offset);
        for (int d = threadIdx.x; d < ROWS + KEYS - 1; d += THREADS) {
            float sum = 0;
            for (int row = (int)most(ROWS - 1 - d, 0); row < least(ROWS, ROWS - 1 - d + KEYS); row++) sum += tile_grads[row * (KEYS + 1) + row + d - (ROWS - 1)];
            sums[d] = sum;
            i64 distance = nearest + d;
            if (distance > -p.max_distance && distance < p.max_distance) slab[distance + p.max_distance] += sum;
        }
        __syncthreads();
        // What is as far as the table reaches, or further, has one number on each side.
        bool one = p.max_distance == 0;
        for (int side = threadIdx.x / WARP; side < (one ? 1 : 2); side += WARPS) {
            float sum = 0;
            for (int d = lane_id(); d < ROWS + KEYS - 1; d += WARP) {
                i64 distance = nearest + d;
                if (one || (side == 0 ? distance <= -p.max_distance : distance >= p.max_distance)) sum += sums[d];
            }
            sum = warp_sum(sum);
            if (lane_id() == 0) slab[side == 0 ? 0 : table - 1] += sum;
        }
        __syncthreads();
    }
}
#endif

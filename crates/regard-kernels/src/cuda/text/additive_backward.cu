// The backward of additive.cu, by tiles of 64 keys and 64 queries. With r = 1 / D the slope of tanh is
// 4 r (1 − r), so from the gradient of a score, ds,
//     dq_id = 4 w_d Σ_j ds_ij r (1 − r)      dk_jd = 4 w_d Σ_i ds_ij r (1 − r)      dw_d = Σ_ij ds_ij (1 − 2 r).
// A block has 64 keys and walks the queries: a thread that has 4 × 4 pairs computes their scores and ds;
// then it has one feature of some of the keys, whose sums stay in its registers, while q's go to
// slabs that are summed in order.

#define GROUPS (THREADS / WIDTH_PADDED)  // threads that share a feature
#define OWN_KEYS (COLUMNS / GROUPS)      // keys of each of them
#define VALUE_SIDE (VALUE_PADDED / 16)
#define PAIRED_REACH 21.0f // two keys share a reciprocal of e^(4 reach) at most

struct BackShared {
    union {
        struct {
            T a[STAGES][DEPTH][ROWS];
            T b[STAGES][DEPTH][COLUMNS];
        };
        T grads[ROWS][VALUE_PADDED]; // the output's gradient, when its products are done with
    };
    T weights[ROWS][COLUMNS + 4];
    T ds[ROWS][COLUMNS + 4];
    Features features;
    T ds_sums[THREADS];
};

// The transposed gradients of the output, and values.
extern "C" __global__ void __launch_bounds__(THREADS) additive_prepare_backward(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Tiles t) {
    u32 q_blocks = t.q_padded / ROWS, all = q_blocks + t.k_padded / ROWS, block = blockIdx.x % all, head = blockIdx.x / all;
    bool of_keys = block >= q_blocks;
    i64 heads = of_keys ? p.key_heads : p.heads;
    if (head >= p.batch * heads) return;
    i64 b = head / heads, h = head % heads;
    if (of_keys) prepare<TURN_ROWS>(p, p.v, b, h, heads, block - q_blocks, p.keys, t.k_padded, p.value_width, VALUE_PADDED, t.values, nullptr, nullptr);
    else prepare<TURN_ROWS>(p, g.grad_out, b, h, heads, block, p.queries, t.q_padded, p.value_width, VALUE_PADDED, t.grads, nullptr, nullptr);
}

// Σ grad · out − what arrives at the log-sum-exp, of every row.
extern "C" __global__ void __launch_bounds__(128) additive_deltas(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Tiles t) {
    int lane = lane_id();
    for (i64 row = warp_id(); row < p.batch * p.heads * p.queries; row += warps()) {
        i64 b = row / p.queries / p.heads, h = row / p.queries % p.heads, i = row % p.queries;
        const T *grad = g.grad_out.data + b * g.grad_out.b + h * g.grad_out.h + i * g.grad_out.n;
        const T *out = g.out.data + b * g.out.b + h * g.out.h + i * g.out.n;
        T sum = 0;
        for (i64 d = lane; d < p.value_width; d += WARP) sum += grad[d] * out[d];
        sum = warp_sum(sum);
        if (lane == 0) t.deltas[row] = sum - (g.grad_lse ? g.grad_lse[row] : (T)0);
    }
}

// Hands every chunk of 32 features of both sides to `add`.
template <int WIDE, typename Add>
__device__ __forceinline__ void each_chunk(BackShared &s, const T *a, i64 a_row, const T *b, i64 b_row, Add add) {
    Shared &tiles = *(Shared *)&s; // its a and b lie where Shared's do
    load_chunk(tiles, 0, a, a_row, b, b_row, 0);
    copies_commit();
#pragma unroll 1
    for (int chunk = 0; chunk < WIDE / DEPTH; chunk++) {
        copies_wait<0>();
        __syncthreads();
        if ((chunk + 1) * DEPTH < WIDE) load_chunk(tiles, (chunk + 1) % STAGES, a, a_row, b, b_row, (chunk + 1) * DEPTH);
        copies_commit();
        add(chunk, s.a[chunk % STAGES], s.b[chunk % STAGES]);
    }
    __syncthreads();
}

// One query against this thread's keys: adds to the keys' sums and gives the query's. MODE 0: two keys share
// a reciprocal; 1: each has its own; 2: from q and k themselves. HIDES: pairs with ds = 0 are not looked at.
template <int MODE, bool HIDES>
__device__ __forceinline__ T feature_sums(const T *ds, T a, const T (&b)[OWN_KEYS], T (&gk)[OWN_KEYS], T &gw) {
    T gq = 0;
#pragma unroll
    for (int j = 0; j < OWN_KEYS; j += 4) {
        T x[4], r[4];
        load_side(x, ds + j);
        if (MODE == 0) {
#pragma unroll
            for (int u = 0; u < 4; u += 2) {
                T d1 = fmaf(a, b[j + u], 1.0f), d2 = fmaf(a, b[j + u + 1], 1.0f), shared = reciprocal(d1 * d2);
                r[u] = shared * d2, r[u + 1] = shared * d1;
            }
        } else {
#pragma unroll
            for (int u = 0; u < 4; u++) r[u] = reciprocal(1 + (MODE == 1 ? a * b[j + u] : expf(2 * (a + b[j + u]))));
        }
#pragma unroll
        for (int u = 0; u < 4; u++) {
            T slope = fmaf(-r[u], r[u], r[u]);
            if (HIDES && x[u] == 0) slope = 0, r[u] = 0;
            gq = fmaf(x[u], slope, gq);
            gk[j + u] = fmaf(x[u], slope, gk[j + u]);
            gw = fmaf(x[u], r[u], gw);
        }
    }
    return gq;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) additive_backward(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Tiles t) {
    extern __shared__ __align__(16) unsigned char raw[];
    BackShared &s = *(BackShared *)raw;
    int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
    int feature = threadIdx.x % WIDTH_PADDED, group = threadIdx.x / WIDTH_PADDED;
    u32 own_slab = blockIdx.x % (u32)t.slabs;
    i64 head = blockIdx.x / (u32)t.slabs, b = head / p.heads, h = head % p.heads;
    i64 blocks = t.k_padded / COLUMNS, q_blocks = t.q_padded / ROWS;
    Limits limits = load_features(p, h, s.features);
    T gw = 0, ds_sum = 0;
    T *slab = t.q_slabs + ((head * t.slabs + own_slab) * GROUPS + group) * t.q_padded * WIDTH_PADDED + feature;
    for (i64 block = own_slab; block < blocks; block += t.slabs) {
        bool first_block = block == own_slab;
        i64 j0 = block * COLUMNS, end = least(j0 + COLUMNS, p.keys);
        if (p.lengths) end = least(end, p.lengths[b]);
        const T *bk = t.k + head * WIDTH_PADDED * t.k_padded + j0;
        T k_reach = whole_reach(t.k_reach + (head * blocks + block) * (WIDTH_PADDED / DEPTH));
        T keys[OWN_KEYS], gk[OWN_KEYS], gv[SIDE][VALUE_SIDE];
#pragma unroll
        for (int j = 0; j < OWN_KEYS; j++) {
            keys[j] = t.k_rows[(head * t.k_padded + j0 + group * OWN_KEYS + j) * WIDTH_PADDED + feature];
            gk[j] = 0;
        }
#pragma unroll
        for (int r = 0; r < SIDE; r++) {
#pragma unroll
            for (int c = 0; c < VALUE_SIDE; c++) gv[r][c] = 0;
        }
        // Queries that see a key of this block; those of a length are seen by all or by none.
        i64 from = 0, until = 0;
        if (j0 < end) {
            from = queries_of(p, b, j0).low / ROWS;
            until = (most(queries_of(p, b, end - 1).high, 0) + ROWS - 1) / ROWS;
        }
        for (i64 tile = 0; tile < q_blocks; tile++) {
            i64 i0 = tile * ROWS;
            if (tile < from || tile >= until) {
                if (first_block) for (int i = 0; i < ROWS; i++) slab[(i0 + i) * WIDTH_PADDED] = 0;
                continue;
            }
            T q_reach = whole_reach(t.q_reach + (head * q_blocks + tile) * (WIDTH_PADDED / DEPTH));
            Way way = way_of(limits, q_reach, k_reach);
            T score[SIDE][SIDE], dp[SIDE][SIDE];
            EACH_PAIR(r, c) score[r][c] = 0, dp[r][c] = 0;
            if (way == DIRECTLY) {
                EACH_PAIR(r, c) score[r][c] = direct_score(p, b, h, h, least(i0 + ty * SIDE + r, p.queries - 1), least(j0 + tx * SIDE + c, p.keys - 1));
            } else {
                each_chunk<WIDTH_PADDED>(s, t.q + head * WIDTH_PADDED * t.q_padded + i0, t.q_padded, bk, t.k_padded, [&](int chunk, const T(*x)[ROWS], const T(*y)[COLUMNS]) {
                    EACH_PAIR(r, c) score[r][c] -= s.features.sums[chunk]; // as forward does
                    add_terms(way, x, y, s.features.c + chunk * DEPTH, ty, tx, score);
                });
                EACH_PAIR(r, c) score[r][c] *= -2 * limits.unit;
            }
            each_chunk<VALUE_PADDED>(s, t.grads + head * VALUE_PADDED * t.q_padded + i0, t.q_padded, t.values + head * VALUE_PADDED * t.k_padded + j0, t.k_padded, [&](int, const T(*x)[ROWS], const T(*y)[COLUMNS]) {
#pragma unroll 4
                for (int d = 0; d < DEPTH; d++) {
                    T grad[SIDE], value[SIDE];
                    load_side(grad, &x[d][ty * SIDE]);
                    load_side(value, &y[d][tx * SIDE]);
                    EACH_PAIR(r, c) dp[r][c] = fmaf(grad[r], value[c], dp[r][c]);
                }
            });
            // The output's gradient as it is comes where its parts were.
            for (int n = threadIdx.x; n < ROWS * VALUE_PADDED / 4; n += THREADS) {
                int i = n / (VALUE_PADDED / 4), d = n % (VALUE_PADDED / 4) * 4;
                bool there = i0 + i < p.queries && d < p.value_width;
                copy_async(&s.grads[i][d], there ? g.grad_out.data + b * g.grad_out.b + h * g.grad_out.h + (i0 + i) * g.grad_out.n + d : g.grad_out.data, there);
            }
            copies_commit();
            bool hides = false;
#pragma unroll
            for (int r = 0; r < SIDE; r++) {
                i64 i = i0 + ty * SIDE + r, row = head * p.queries + i;
                bool there = i < p.queries;
                T lse = there ? g.lse[row] : NEG_INF, delta = there ? t.deltas[row] : (T)0;
                Reach reach = keys_of(p, b, least(i, p.queries - 1));
#pragma unroll
                for (int c = 0; c < SIDE; c++) {
                    i64 j = j0 + tx * SIDE + c;
                    bool seen = lse != NEG_INF && j >= reach.low && j < reach.high;
                    hides |= !seen;
                    T weight = seen ? expf(score[r][c] - lse) : (T)0;
                    score[r][c] = weight;
                    dp[r][c] = seen ? weight * (dp[r][c] - delta) : (T)0;
                    ds_sum += dp[r][c];
                }
                *(float4 *)&s.weights[ty * SIDE + r][tx * SIDE] = make_float4(score[r][0], score[r][1], score[r][2], score[r][3]);
                *(float4 *)&s.ds[ty * SIDE + r][tx * SIDE] = make_float4(dp[r][0], dp[r][1], dp[r][2], dp[r][3]);
            }
            copies_wait<0>();
            hides = __syncthreads_or(hides);
            // v's gradient: this thread has keys ty · 4 … and values tx · 4 … of every 64.
#pragma unroll 2
            for (int i = 0; i < ROWS; i++) {
                T weight[SIDE];
                load_side(weight, &s.weights[i][ty * SIDE]);
#pragma unroll
                for (int part = 0; part < VALUE_PARTS; part++) {
                    T x[4];
                    load_side(x, &s.grads[i][part * COLUMNS + tx * 4]);
#pragma unroll
                    for (int r = 0; r < SIDE; r++) {
                        if (hides && weight[r] == 0) continue; // 0 times NaN is NaN
#pragma unroll
                        for (int c = 0; c < 4; c++) gv[r][part * 4 + c] = fmaf(weight[r], x[c], gv[r][part * 4 + c]);
                    }
                }
            }
            // k's and q's, feature by feature.
            const T *rows = t.q_rows + (head * t.q_padded + i0) * WIDTH_PADDED + feature;
            if (way == DIRECTLY) {
                for (int i = 0; i < ROWS; i++) {
                    i64 query = least(i0 + i, p.queries - 1);
                    T a = feature < p.width ? p.q.data[b * p.q.b + h * p.q.h + query * p.q.n + feature] : (T)0, plain[OWN_KEYS];
#pragma unroll
                    for (int j = 0; j < OWN_KEYS; j++) {
                        i64 key = least(j0 + group * OWN_KEYS + j, p.keys - 1);
                        plain[j] = feature < p.width ? p.k.data[b * p.k.b + h * p.k.h + key * p.k.n + feature] : (T)0;
                    }
                    T gq = feature_sums<2, true>(&s.ds[i][group * OWN_KEYS], a, plain, gk, gw);
                    T *to = slab + (i0 + i) * WIDTH_PADDED;
                    *to = first_block ? gq : *to + gq;
                }
            } else {
                bool paired = q_reach + k_reach < PAIRED_REACH;
                T a = rows[0];
                for (int i = 0; i < ROWS; i++) {
                    T next = i + 1 < ROWS ? rows[(i + 1) * WIDTH_PADDED] : (T)0, gq;
                    const T *ds = &s.ds[i][group * OWN_KEYS];
                    if (!paired) gq = feature_sums<1, true>(ds, a, keys, gk, gw);
                    else if (hides) gq = feature_sums<0, true>(ds, a, keys, gk, gw);
                    else gq = feature_sums<0, false>(ds, a, keys, gk, gw);
                    T *to = slab + (i0 + i) * WIDTH_PADDED;
                    *to = first_block ? gq : *to + gq;
                    a = next;
                }
            }
            __syncthreads();
        }
        T scale = feature < p.width ? 4 * p.parameters[0].data[h * p.parameters[0].head + feature] : (T)0;
#pragma unroll
        for (int j = 0; j < OWN_KEYS; j++) {
            i64 key = j0 + group * OWN_KEYS + j;
            if (g.grad_k.data && key < p.keys && feature < p.width)
                g.grad_k.data[b * g.grad_k.b + h * g.grad_k.h + key * g.grad_k.n + feature] = scale * gk[j];
        }
#pragma unroll
        for (int r = 0; r < SIDE; r++) {
            i64 key = j0 + ty * SIDE + r;
            if (!g.grad_v.data || key >= p.keys) continue;
            T *to = g.grad_v.data + b * g.grad_v.b + h * g.grad_v.h + key * g.grad_v.n;
#pragma unroll
            for (int part = 0; part < VALUE_PARTS; part++) {
                int d = part * COLUMNS + tx * 4;
                if (d < p.value_width) *(float4 *)(to + d) = make_float4(gv[r][part * 4], gv[r][part * 4 + 1], gv[r][part * 4 + 2], gv[r][part * 4 + 3]);
            }
        }
    }
    // dw = Σ ds − 2 Σ ds r, of this group's keys.
    s.ds_sums[threadIdx.x] = ds_sum;
    __syncthreads();
    if (g.own_slabs && feature < p.width) {
        T sum = 0;
        for (int y = 0; y < THREADS / ACROSS; y++) {
            for (int x = group * OWN_KEYS / SIDE; x < (group + 1) * OWN_KEYS / SIDE; x++) sum += s.ds_sums[y * ACROSS + x];
        }
        g.own_slabs[((head * g.chunks) + own_slab * GROUPS + group) * p.width + feature] = fmaf(-2.0f, gw, sum);
    }
}

// q's gradient from its slabs, in order; a thread has a number.
extern "C" __global__ void __launch_bounds__(THREADS) additive_sum_queries(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Tiles t) {
    i64 count = p.batch * p.heads * p.queries * WIDTH_PADDED;
    for (i64 at = (i64)blockIdx.x * THREADS + threadIdx.x; at < count; at += (i64)gridDim.x * THREADS) {
        i64 d = at % WIDTH_PADDED, i = at / WIDTH_PADDED % p.queries, head = at / WIDTH_PADDED / p.queries;
        if (d >= p.width) continue;
        i64 b = head / p.heads, h = head % p.heads;
        const T *from = t.q_slabs + (head * t.slabs * GROUPS * t.q_padded + i) * WIDTH_PADDED + d;
        T sum = 0;
#pragma unroll 4
        for (i64 n = 0; n < t.slabs * GROUPS; n++) sum += from[n * t.q_padded * WIDTH_PADDED];
        T w = p.parameters[0].data[h * p.parameters[0].head + d];
        g.grad_q.data[b * g.grad_q.b + h * g.grad_q.h + i * g.grad_q.n + d] = 4 * w * sum;
    }
}

// Backward in two passes that add nothing in an order of chance: by key, each block walking the queries
// that see its keys, and by query. Scores are computed again in both; `lse2` and `deltas` come first.

#define CONSUMERS 2
#define THREADS (WARPGROUP * (CONSUMERS + 1))

// By key: 64 keys of a warpgroup, scores turned round, so that weights are the left side of v's gradient.
#define BY_KEY_STAGES 3
#define BY_KEY_K_BYTES (BY_KEY_KEYS * WIDTH * 2)
#define BY_KEY_V_BYTES (BY_KEY_KEYS * VALUES * 2)
#define BY_KEY_Q_BYTES (BY_KEY_QUERIES * WIDTH * 2)
#define BY_KEY_G_BYTES (BY_KEY_QUERIES * VALUES * 2)
#define BY_KEY_ROW_BYTES (BY_KEY_QUERIES * 4)

// By query: 64 queries of a warpgroup.
#define BY_QUERY_QUERIES (SIDE * CONSUMERS)
#define BY_QUERY_STAGES 2
#define BY_QUERY_Q_BYTES (BY_QUERY_QUERIES * WIDTH * 2)
#define BY_QUERY_G_BYTES (BY_QUERY_QUERIES * VALUES * 2)
#define BY_QUERY_K_BYTES (BY_QUERY_KEYS * WIDTH * 2)
#define BY_QUERY_V_BYTES (BY_QUERY_KEYS * VALUES * 2)

// Σ g · out of each row, less what arrives at its log-sum-exp, and that in powers of two; or its threshold.
// A warp has a row.
extern "C" __global__ void __launch_bounds__(128) dot_deltas(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Dot t) {
    int lane = lane_id();
    for (i64 at = warp_id(); at < p.batch * p.heads * t.padded; at += warps()) {
        i64 head = at / t.padded, i = at % t.padded, row = head * p.queries + i, b = head / p.heads, h = head % p.heads;
        float sum = 0, lse = NEG_INF;
#if NORMALIZER != SOFTMAX
        // The keys' pass gets its deltas from the queries'; rows that there are not have no weights.
        if (lane == 0) t.deltas[at] = 0, t.lse2[at] = i < p.queries ? g.threshold[row] : -NEG_INF;
        continue;
#endif
        if (i < p.queries) {
            const E *grad = g.grad_out.data + b * g.grad_out.b + h * g.grad_out.h + i * g.grad_out.n;
            const E *out = g.out.data + b * g.out.b + h * g.out.h + i * g.out.n;
            for (int d = 2 * lane; d < p.value_width; d += 2 * WARP) {
                u32 x = *(const u32 *)(grad + d), y = *(const u32 *)(out + d);
                sum += widen((E)x) * widen((E)y) + widen((E)(x >> 16)) * widen((E)(y >> 16));
            }
            lse = g.lse[row];
        }
        sum = warp_sum(sum);
        // A row with nothing to look at has weights 0: e^(s − ∞).
        bool empty = lse == NEG_INF;
        if (lane == 0) {
            t.deltas[at] = empty ? 0.0f : sum - (g.grad_lse ? g.grad_lse[row] : 0.0f);
            t.lse2[at] = empty ? -NEG_INF : lse * LOG2_E;
        }
    }
}

struct ByKeyBarriers {
    u64 k_full, k_empty, full[BY_KEY_STAGES], empty[BY_KEY_STAGES];
};

struct ByKey {
    u8 *k, *v, *q, *g;
    float *lse2, *deltas; // of each stage's queries
    ByKeyBarriers *bars;
    __device__ ByKey(u8 *memory) {
        k = memory + (0 - shared_address(memory)) % GROUP_BYTES;
        v = k + BY_KEY_K_BYTES, q = v + BY_KEY_V_BYTES, g = q + BY_KEY_STAGES * BY_KEY_Q_BYTES;
        lse2 = (float *)(g + BY_KEY_STAGES * BY_KEY_G_BYTES), deltas = lse2 + BY_KEY_STAGES * BY_KEY_QUERIES;
        bars = (ByKeyBarriers *)(deltas + BY_KEY_STAGES * BY_KEY_QUERIES);
    }
};

__device__ __forceinline__ void copy_by_key(const Problem &p, const Dot &t, const TensorMap &q_map, const TensorMap &g_map, const TensorMap &k_map,
                                            const TensorMap &v_map, const ByKey &m) {
    u32 loaded = 0, blocks = 0;
    for (int n = blockIdx.x; n < key_pieces(p); n += gridDim.x) {
        KeyPiece x = key_piece_of(p, t, n);
        Step s = before_steps(p, x);
        if (!next_step(p, t, x, s)) continue;
        barrier_wait(&m.bars->k_empty, blocks % 2 ^ 1);
        barrier_expect(&m.bars->k_full, BY_KEY_K_BYTES + BY_KEY_V_BYTES);
        copy_tile<WIDTH>(m.k, BY_KEY_KEYS, k_map, &m.bars->k_full, x.j0, x.at.h, x.at.b);
        copy_tile<VALUES>(m.v, BY_KEY_KEYS, v_map, &m.bars->k_full, x.j0, x.at.h, x.at.b);
        blocks++;
        do {
            int stage = loaded % BY_KEY_STAGES, first = s.tile * BY_KEY_QUERIES;
            u64 *full = &m.bars->full[stage];
            barrier_wait(&m.bars->empty[stage], loaded / BY_KEY_STAGES % 2 ^ 1);
            barrier_expect(full, BY_KEY_Q_BYTES + BY_KEY_G_BYTES + 2 * BY_KEY_ROW_BYTES);
            copy_tile<WIDTH>(m.q + stage * BY_KEY_Q_BYTES, BY_KEY_QUERIES, q_map, full, first, s.h, x.at.b);
            copy_tile<VALUES>(m.g + stage * BY_KEY_G_BYTES, BY_KEY_QUERIES, g_map, full, first, s.h, x.at.b);
            i64 row = (x.at.b * p.heads + s.h) * t.padded + first;
            copy_bytes(m.lse2 + stage * BY_KEY_QUERIES, t.lse2 + row, full, BY_KEY_ROW_BYTES);
            copy_bytes(m.deltas + stage * BY_KEY_QUERIES, t.deltas + row, full, BY_KEY_ROW_BYTES);
            loaded++;
        } while (next_step(p, t, x, s));
    }
}

__device__ __forceinline__ void compute_by_key(const Problem &p, const Backward &g, const Dot &t, const ByKey &m) {
    int group = threadIdx.x / WARPGROUP - 1;
    bool leads = threadIdx.x % WARP == 0;
    float scale2 = SCALE2(p);
#if RELATIVE
    float *table = (float *)(m.bars + 1) + group * TABLE, to_powers = (float)(p.scale * (double)LOG2_E);
    int head = -1;
#endif
    u64 k_at = matrix(shared_address(m.k) + group * SIDE * ROW_BYTES, 0), v_at = matrix(shared_address(m.v) + group * SIDE * ROW_BYTES, 0);
    u64 q_at = matrix(shared_address(m.q), BY_KEY_QUERIES * ROW_BYTES), g_at = matrix(shared_address(m.g), BY_KEY_QUERIES * ROW_BYTES);
    u32 used = 0, blocks = 0;
    for (int n = blockIdx.x; n < key_pieces(p); n += gridDim.x) {
        KeyPiece x = key_piece_of(p, t, n);
        int first = x.j0 + group * SIDE;
        float grad_k[WIDTH / 2], grad_v[VALUES / 2];
#pragma unroll
        for (int d = 0; d < WIDTH / 2; d++) grad_k[d] = 0;
#pragma unroll
        for (int d = 0; d < VALUES / 2; d++) grad_v[d] = 0;
        Step s = before_steps(p, x);
        if (next_step(p, t, x, s)) {
            Seen seen = seen_of(p, x, first);
            barrier_wait(&m.bars->k_full, blocks % 2);
            blocks++;
            float w[BY_KEY_QUERIES / 2], dw[BY_KEY_QUERIES / 2];
            u32 weights[BY_KEY_QUERIES / 16][4], grads[BY_KEY_QUERIES / 16][4];
            do {
                int stage = used % BY_KEY_STAGES;
                const float *lse2 = m.lse2 + stage * BY_KEY_QUERIES, *deltas = m.deltas + stage * BY_KEY_QUERIES;
                u64 q_now = q_at + further(stage * BY_KEY_Q_BYTES), g_now = g_at + further(stage * BY_KEY_G_BYTES);
                barrier_wait(&m.bars->full[stage], used / BY_KEY_STAGES % 2);
                products_begin();
                product_by_rows<WIDTH, BY_KEY_KEYS, BY_KEY_QUERIES>(w, k_at, q_now);
                products_commit();
                product_by_rows<VALUES, BY_KEY_KEYS, BY_KEY_QUERIES>(dw, v_at, g_now);
                products_commit();
                products_wait<1>();
                settled(w);
#if RELATIVE
                if (s.h != head) load_table(p, head = s.h, table, 1 + group);
                add_bias_by_key(w, table, to_powers, first, standing(p, s.tile * BY_KEY_QUERIES));
#endif
#pragma unroll
                for (int c = 0; c < BY_KEY_QUERIES / 2; c += 4) {
                    float2 lse = of_columns(lse2, c);
                    w[c] = w[c] * scale2 - lse.x, w[c + 1] = w[c + 1] * scale2 - lse.y;
                    w[c + 2] = w[c + 2] * scale2 - lse.x, w[c + 3] = w[c + 3] * scale2 - lse.y;
                }
                if (s.sees == SOME) apply_mask(w, seen, s.tile * BY_KEY_QUERIES);
#pragma unroll
                for (int c = 0; c < BY_KEY_QUERIES / 2; c++) w[c] = above(w[c]);
#pragma unroll
                for (int c = 0; c < BY_KEY_QUERIES / 4; c++) weights[c / 4][c % 4] = pack(weight_of(w[2 * c]), weight_of(w[2 * c + 1]));
                products_begin();
                product_across<BY_KEY_QUERIES>(grad_v, weights, g_now);
                products_commit();
                products_wait<1>();
                settled(dw);
#pragma unroll
                for (int c = 0; c < BY_KEY_QUERIES / 2; c += 4) {
                    float2 delta = of_columns(deltas, c);
                    dw[c] = slope_of(w[c]) * (dw[c] - delta.x), dw[c + 1] = slope_of(w[c + 1]) * (dw[c + 1] - delta.y);
                    dw[c + 2] = slope_of(w[c + 2]) * (dw[c + 2] - delta.x), dw[c + 3] = slope_of(w[c + 3]) * (dw[c + 3] - delta.y);
                }
                as_left(dw, grads);
                products_begin();
                product_across<BY_KEY_QUERIES>(grad_k, grads, q_now);
                products_commit();
                // Registers for the next scores beside these products there are none: the other warpgroup
                // has the tensor cores in the meantime.
                products_wait<0>();
                settled(grad_k), settled(grad_v);
                barrier_arrive(&m.bars->empty[stage]); // every lane, since every lane has read its statistics
                used++;
            } while (next_step(p, t, x, s));
            if (leads) barrier_arrive(&m.bars->k_empty);
        }
        note_undefined_keys(p, t, x.at.b, x.at.h, first, grad_k, grad_v);
        float scale[2] = {(float)p.scale, (float)p.scale}, one[2] = {1, 1};
        i64 rows = p.keys - first;
        if (g.grad_k.data) store_rows(grad_k, scale, g.grad_k.data + x.at.b * g.grad_k.b + x.at.h * g.grad_k.h + first * g.grad_k.n, g.grad_k.n, rows, p.width);
        if (g.grad_v.data) store_rows(grad_v, one, g.grad_v.data + x.at.b * g.grad_v.b + x.at.h * g.grad_v.h + first * g.grad_v.n, g.grad_v.n, rows, p.value_width);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    dot_backward_keys(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Dot t, const __grid_constant__ TensorMap q_map,
                      const __grid_constant__ TensorMap g_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
    SHARED_MEMORY(memory);
    ByKey m(memory);
    if (threadIdx.x == 0) {
        barrier_init(&m.bars->k_full, 1), barrier_init(&m.bars->k_empty, 4 * CONSUMERS);
        for (int n = 0; n < BY_KEY_STAGES; n++) barrier_init(&m.bars->full[n], 1), barrier_init(&m.bars->empty[n], WARPGROUP * CONSUMERS);
        barriers_ready();
    }
    __syncthreads();
    if (threadIdx.x < WARPGROUP) {
        fewer_registers<24>();
        if (threadIdx.x == 0) copy_by_key(p, t, q_map, g_map, k_map, v_map, m);
    } else {
        more_registers<240>();
        compute_by_key(p, g, t, m);
    }
}

struct ByQueryBarriers {
    u64 q_full, q_empty, k_full[BY_QUERY_STAGES], k_empty[BY_QUERY_STAGES], v_full[BY_QUERY_STAGES], v_empty[BY_QUERY_STAGES];
};

struct ByQuery {
    u8 *q, *g, *k, *v;
    ByQueryBarriers *bars;
    __device__ ByQuery(u8 *memory) {
        q = memory + (0 - shared_address(memory)) % GROUP_BYTES;
        g = q + BY_QUERY_Q_BYTES, k = g + BY_QUERY_G_BYTES, v = k + BY_QUERY_STAGES * BY_QUERY_K_BYTES;
        bars = (ByQueryBarriers *)(v + BY_QUERY_STAGES * BY_QUERY_V_BYTES);
    }
};

__device__ __forceinline__ void copy_by_query(const Problem &p, const Dot &t, const TensorMap &q_map, const TensorMap &g_map, const TensorMap &k_map,
                                              const TensorMap &v_map, const ByQuery &m) {
    u32 loaded = 0, blocks = 0;
    ByQueryBarriers &bars = *m.bars;
    for (int n = blockIdx.x; n < pieces<BY_QUERY_QUERIES>(p); n += gridDim.x) {
        Piece x = piece_of<BY_QUERY_QUERIES, BY_QUERY_KEYS>(p, t, n);
        Sight seen;
        int tile = tile_before<BY_QUERY_KEYS>(t, x, x.span.last, seen);
        if (tile < 0) continue;
        barrier_wait(&bars.q_empty, blocks % 2 ^ 1);
        barrier_expect(&bars.q_full, BY_QUERY_Q_BYTES + BY_QUERY_G_BYTES);
        copy_tile<WIDTH>(m.q, BY_QUERY_QUERIES, q_map, &bars.q_full, x.i0, x.at.h, x.at.b);
        copy_tile<VALUES>(m.g, BY_QUERY_QUERIES, g_map, &bars.q_full, x.i0, x.at.h, x.at.b);
        blocks++;
        // Normalizers with a threshold have their deltas from a pass of its own.
        for (int pass = NORMALIZER == SOFTMAX; pass < 2; pass++)
        for (int at = tile; at >= 0; at = tile_before<BY_QUERY_KEYS>(t, x, at, seen), loaded++) {
            int stage = loaded % BY_QUERY_STAGES;
            u32 parity = loaded / BY_QUERY_STAGES % 2 ^ 1;
            barrier_wait(&bars.k_empty[stage], parity);
            barrier_expect(&bars.k_full[stage], BY_QUERY_K_BYTES);
            copy_tile<WIDTH>(m.k + stage * BY_QUERY_K_BYTES, BY_QUERY_KEYS, k_map, &bars.k_full[stage], at * BY_QUERY_KEYS, x.hk, x.at.b);
            barrier_wait(&bars.v_empty[stage], parity);
            barrier_expect(&bars.v_full[stage], BY_QUERY_V_BYTES);
            copy_tile<VALUES>(m.v + stage * BY_QUERY_V_BYTES, BY_QUERY_KEYS, v_map, &bars.v_full[stage], at * BY_QUERY_KEYS, x.hk, x.at.b);
        }
    }
}

#if RELATIVE
// The gradient of a bias by distance: a warpgroup sums along the diagonals of each tile, in the order of
// its rows; what lies beyond the table's ends each thread keeps for itself until the piece is done.
struct Distances {
    enum { STRIDE = BY_QUERY_KEYS + 4 };
    float *rows, *table, *sums;
    float low, high;
    int turn, own;

    __device__ Distances(void *memory, int group) : low(0), high(0), turn(1 + group), own(threadIdx.x % WARPGROUP) {
        float *all = (float *)memory;
        rows = all + group * SIDE * STRIDE;
        table = all + CONSUMERS * SIDE * STRIDE + group * TABLE, sums = table + CONSUMERS * TABLE;
        for (int n = own; n < TABLE; n += WARPGROUP) sums[n] = 0;
    }

    __device__ __forceinline__ void add(const float (&ds)[BY_QUERY_KEYS / 2], int j0, int i0) {
        int shared = shared_bias(j0, j0 + BY_QUERY_KEYS - 1, i0, i0 + SIDE - 1);
        if (shared >= 0) {
            float sum = 0;
#pragma unroll
            for (int n = 0; n < BY_QUERY_KEYS / 2; n++) sum += ds[n];
            if (shared == 0) low += sum;
            else high += sum;
            return;
        }
        // The diagonals of the tile before were read.
        turn_wait(turn, WARPGROUP);
#pragma unroll
        for (int n = 0; n < BY_QUERY_KEYS / 2; n += 2) {
            float *to = rows + (own_row() + 8 * (n / 2 % 2)) * STRIDE + 8 * (n / 4) + own_column();
            to[0] = ds[n], to[1] = ds[n + 1];
        }
        turn_wait(turn, WARPGROUP);
        for (int d = own; d < BY_QUERY_KEYS + SIDE - 1; d += WARPGROUP) {
            int ahead = d - (SIDE - 1), distance = j0 - i0 + ahead;
            float sum = 0;
            for (int r = 0; r < SIDE; r++)
                if (r + ahead >= 0 && r + ahead < BY_QUERY_KEYS) sum += rows[r * STRIDE + r + ahead];
            if (distance <= -DISTANCE) low += sum;
            else if (distance >= DISTANCE) high += sum;
            else sums[distance + DISTANCE] += sum;
        }
    }

    // A piece's sums, and none from here on.
    __device__ __forceinline__ void store(float *slab) {
        float below = warp_sum(low), above = warp_sum(high);
        low = high = 0;
        turn_wait(turn, WARPGROUP);
        if (own % WARP == 0) rows[own / WARP] = below, rows[WARPGROUP / WARP + own / WARP] = above;
        turn_wait(turn, WARPGROUP);
        for (int n = own; n < TABLE; n += WARPGROUP) {
            const float *ends = rows + (n == 0 ? 0 : WARPGROUP / WARP);
            bool end = n == 0 || n == TABLE - 1;
            float sum = end ? (ends[0] + ends[1]) + (ends[2] + ends[3]) : sums[n];
            // Nothing is seen at a bias of −∞, though it may be no number.
            slab[n] = table[n] == NEG_INF ? 0.0f : sum;
            sums[n] = 0;
        }
    }
};
#endif

__device__ __forceinline__ void compute_by_query(const Problem &p, const Backward &g, const Dot &t, const ByQuery &m) {
    int group = threadIdx.x / WARPGROUP - 1;
    bool leads = threadIdx.x % WARP == 0;
    float scale2 = SCALE2(p);
    ByQueryBarriers &bars = *m.bars;
#if RELATIVE
    Distances distances(m.bars + 1, group);
    float to_powers = (float)(p.scale * (double)LOG2_E);
#endif
    u64 q_at = matrix(shared_address(m.q) + group * SIDE * ROW_BYTES, 0), g_at = matrix(shared_address(m.g) + group * SIDE * ROW_BYTES, 0);
    u64 k_at = matrix(shared_address(m.k), BY_QUERY_KEYS * ROW_BYTES), v_at = matrix(shared_address(m.v), 0);
    u32 used = 0, blocks = 0;
    for (int n = blockIdx.x; n < pieces<BY_QUERY_QUERIES>(p); n += gridDim.x) {
        Piece x = piece_of<BY_QUERY_QUERIES, BY_QUERY_KEYS>(p, t, n);
        int first = x.i0 + group * SIDE;
        float grad_q[WIDTH / 2], lse2[2] = {0, 0};
#pragma unroll
        for (int d = 0; d < WIDTH / 2; d++) grad_q[d] = 0;
        Sight sees;
        int tile = tile_before<BY_QUERY_KEYS>(t, x, x.span.last, sees);
        if (tile >= 0) {
            Seen seen = seen_by(p, x, first);
#if RELATIVE
            load_table(p, x.at.h, distances.table, distances.turn);
            int i0 = standing(p, first), standings[2] = {i0 + own_row(), i0 + own_row() + 8};
#endif
            i64 row = (x.at.b * p.heads + x.at.h) * t.padded + first + own_row();
            float delta[2] = {t.deltas[row], t.deltas[row + 8]};
            lse2[0] = t.lse2[row], lse2[1] = t.lse2[row + 8];
            barrier_wait(&bars.q_full, blocks % 2);
            blocks++;
            float w[BY_QUERY_KEYS / 2], dw[BY_QUERY_KEYS / 2];
            u32 grads[BY_QUERY_KEYS / 16][4];
#if NORMALIZER != SOFTMAX
            float slopes[2] = {0, 0}, weighted[2] = {0, 0};
            Sight first_sees = sees;
            for (int at = tile; at >= 0; at = tile_before<BY_QUERY_KEYS>(t, x, at, sees), used++) {
                int stage = used % BY_QUERY_STAGES;
                u32 parity = used / BY_QUERY_STAGES % 2;
                barrier_wait(&bars.k_full[stage], parity);
                barrier_wait(&bars.v_full[stage], parity);
                products_begin();
                product_by_rows<WIDTH, BY_QUERY_QUERIES, BY_QUERY_KEYS>(w, q_at, k_at + further(stage * BY_QUERY_K_BYTES));
                product_by_rows<VALUES, BY_QUERY_QUERIES, BY_QUERY_KEYS>(dw, g_at, v_at + further(stage * BY_QUERY_V_BYTES));
                products_commit();
                products_wait<0>();
                settled(w), settled(dw);
                if (leads) barrier_arrive(&bars.k_empty[stage]), barrier_arrive(&bars.v_empty[stage]);
#pragma unroll
                for (int c = 0; c < BY_QUERY_KEYS / 2; c++) w[c] = w[c] * scale2 - lse2[c / 2 % 2];
                if (sees == SOME) apply_mask(w, seen, at * BY_QUERY_KEYS), apply_mask(dw, seen, at * BY_QUERY_KEYS, 0);
#pragma unroll
                for (int c = 0; c < BY_QUERY_KEYS / 2; c++) {
                    float slope = slope_of(above(w[c]));
                    slopes[c / 2 % 2] += slope, weighted[c / 2 % 2] += slope * dw[c];
                }
            }
            sees = first_sees;
#pragma unroll
            for (int r = 0; r < 2; r++) {
#pragma unroll
                for (int step = 1; step < 4; step *= 2) {
                    slopes[r] += __shfl_xor_sync(ALL, slopes[r], step);
                    weighted[r] += __shfl_xor_sync(ALL, weighted[r], step);
                }
                delta[r] = slopes[r] == 0 ? 0.0f : weighted[r] / slopes[r];
                if (threadIdx.x % 4 == 0) t.deltas[row + 8 * r] = delta[r];
            }
#endif
            for (; tile >= 0; tile = tile_before<BY_QUERY_KEYS>(t, x, tile, sees), used++) {
                int stage = used % BY_QUERY_STAGES;
                u32 parity = used / BY_QUERY_STAGES % 2;
                u64 k_now = k_at + further(stage * BY_QUERY_K_BYTES);
                barrier_wait(&bars.k_full[stage], parity);
                products_begin();
                product_by_rows<WIDTH, BY_QUERY_QUERIES, BY_QUERY_KEYS>(w, q_at, k_now);
                products_commit();
                barrier_wait(&bars.v_full[stage], parity);
                product_by_rows<VALUES, BY_QUERY_QUERIES, BY_QUERY_KEYS>(dw, g_at, v_at + further(stage * BY_QUERY_V_BYTES));
                products_commit();
                products_wait<1>();
                settled(w);
#if RELATIVE
                add_bias(w, distances.table, to_powers, tile * BY_QUERY_KEYS, i0, standings);
#endif
#pragma unroll
                for (int c = 0; c < BY_QUERY_KEYS / 2; c++) w[c] = w[c] * scale2 - lse2[c / 2 % 2];
                if (sees == SOME) apply_mask(w, seen, tile * BY_QUERY_KEYS);
#pragma unroll
                for (int c = 0; c < BY_QUERY_KEYS / 2; c++) w[c] = above(w[c]);
                products_wait<0>();
                settled(dw);
                if (leads) barrier_arrive(&bars.v_empty[stage]);
#pragma unroll
                for (int c = 0; c < BY_QUERY_KEYS / 2; c++) w[c] = slope_of(w[c]) * (dw[c] - delta[c / 2 % 2]);
#if RELATIVE
                if (sees == SOME) apply_mask(w, seen, tile * BY_QUERY_KEYS, 0);
#endif
                as_left(w, grads);
                products_begin();
                product_across<BY_QUERY_KEYS>(grad_q, grads, k_now);
                products_commit();
#if RELATIVE
                if (g.relative_slabs) distances.add(w, tile * BY_QUERY_KEYS, i0);
#endif
                products_wait<0>();
                settled(grad_q);
                if (leads) barrier_arrive(&bars.k_empty[stage]);
            }
            if (leads) barrier_arrive(&bars.q_empty);
        }
#if RELATIVE
        i64 task = (x.at.b * p.heads + x.at.h) * g.chunks + x.at.block * CONSUMERS + group;
        if (g.relative_slabs) distances.store(g.relative_slabs + task * TABLE);
#endif
        if (!g.grad_q.data) continue;
        note_undefined(p, t, x.at.b, x.at.h, first, grad_q, lse2);
        float scale[2] = {(float)p.scale, (float)p.scale};
        E *to = g.grad_q.data + x.at.b * g.grad_q.b + x.at.h * g.grad_q.h + first * g.grad_q.n;
        store_rows(grad_q, scale, to, g.grad_q.n, p.queries - first, p.width);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    dot_backward_queries(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Dot t, const __grid_constant__ TensorMap q_map,
                         const __grid_constant__ TensorMap g_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
    SHARED_MEMORY(memory);
    ByQuery m(memory);
    ByQueryBarriers &bars = *m.bars;
    if (threadIdx.x == 0) {
        barrier_init(&bars.q_full, 1), barrier_init(&bars.q_empty, 4 * CONSUMERS);
        for (int n = 0; n < BY_QUERY_STAGES; n++) {
            barrier_init(&bars.k_full[n], 1), barrier_init(&bars.k_empty[n], 4 * CONSUMERS);
            barrier_init(&bars.v_full[n], 1), barrier_init(&bars.v_empty[n], 4 * CONSUMERS);
        }
        barriers_ready();
    }
    __syncthreads();
    if (threadIdx.x < WARPGROUP) {
        fewer_registers<24>();
        if (threadIdx.x == 0) copy_by_query(p, t, q_map, g_map, k_map, v_map, m);
    } else {
        more_registers<240>();
        compute_by_query(p, g, t, m);
    }
}

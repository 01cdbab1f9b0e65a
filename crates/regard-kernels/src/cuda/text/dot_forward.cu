// Forward: a block has QUERIES = 64 CONSUMERS rows, a warpgroup 64 of them; the softmax of one tile of
// KEYS keys is computed while the products of the next are under way, and warpgroups take turns at the
// tensor cores.

#define QUERIES (SIDE * CONSUMERS)
#define THREADS (WARPGROUP * (CONSUMERS + 1))
#define STAGES 2
#define Q_BYTES (QUERIES * WIDTH * 2)
#define K_BYTES (KEYS * WIDTH * 2)
#define V_BYTES (KEYS * VALUES * 2)

struct Barriers {
    u64 q_full, q_empty, k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
};

__device__ __forceinline__ void copy_forward(const Problem &p, const Dot &t, const TensorMap &q_map, const TensorMap &k_map, const TensorMap &v_map,
                                             u8 *q, u8 *k, u8 *v, Barriers &bars) {
    u32 loaded = 0, blocks = 0;
    for (int n = blockIdx.x; n < pieces<QUERIES>(p); n += gridDim.x) {
        Piece x = piece_of<QUERIES, KEYS>(p, t, n);
        Sight seen;
        int tile = tile_before<KEYS>(t, x, x.span.last, seen);
        if (tile < 0) continue;
        barrier_wait(&bars.q_empty, blocks % 2 ^ 1);
        barrier_expect(&bars.q_full, Q_BYTES);
        copy_tile<WIDTH>(q, QUERIES, q_map, &bars.q_full, x.i0, x.at.h, x.at.b);
        blocks++;
        for (; tile >= 0; tile = tile_before<KEYS>(t, x, tile, seen), loaded++) {
            int stage = loaded % STAGES;
            u32 parity = loaded / STAGES % 2 ^ 1;
            barrier_wait(&bars.k_empty[stage], parity);
            barrier_expect(&bars.k_full[stage], K_BYTES);
            copy_tile<WIDTH>(k + stage * K_BYTES, KEYS, k_map, &bars.k_full[stage], tile * KEYS, x.hk, x.at.b);
            barrier_wait(&bars.v_empty[stage], parity);
            barrier_expect(&bars.v_full[stage], V_BYTES);
            copy_tile<VALUES>(v + stage * V_BYTES, KEYS, v_map, &bars.v_full[stage], tile * KEYS, x.hk, x.at.b);
        }
    }
}

// A warpgroup's turn at the tensor cores: it waits for its own, and passes on to the next.
#if TURNS
__device__ __forceinline__ void take_turn(int group) { turn_wait(1 + group, 2 * WARPGROUP); }
__device__ __forceinline__ void pass_turn(int group) { turn_pass(1 + (group + 1) % CONSUMERS, 2 * WARPGROUP); }
#else
__device__ __forceinline__ void take_turn(int group) {}
__device__ __forceinline__ void pass_turn(int group) {}
#endif

__device__ __forceinline__ void write_forward(const Problem &p, const Forward &o, const Dot &t, const Piece &x, int first, float (&out)[VALUES / 2], Running &rows) {
    rows.join();
    float factor[2], statistic[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        factor[r] = rows.total[r] == 0 ? 0.0f : 1 / rows.total[r];
        // Under a bias whatever came out NaN is computed again, also its log-sum-exp.
        statistic[r] = RELATIVE ? 0.0f : rows.top[r] * SCALE2(p) + log2f(rows.total[r]);
    }
    E *to = o.out.data + x.at.b * o.out.b + x.at.h * o.out.h + first * o.out.n;
    store_rows(out, factor, to, o.out.n, p.queries - first, p.value_width);
    if (o.lse && threadIdx.x % 4 == 0) {
        float *lse = o.lse + ((i64)x.at.b * p.heads + x.at.h) * p.queries + first;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            int row = own_row() + 8 * r;
            float log_sum = rows.top[r] * NATURAL(p) + logf(rows.total[r]);
            if (first + row < p.queries) lse[row] = rows.total[r] == 0 ? NEG_INF : log_sum;
        }
    }
    note_undefined(p, t, x.at.b, x.at.h, first, out, statistic);
}

__device__ __forceinline__ void compute_forward(const Problem &p, const Forward &o, const Dot &t, u8 *q, u8 *k, u8 *v, Barriers &bars) {
    int group = threadIdx.x / WARPGROUP - 1;
    bool leads = threadIdx.x % WARP == 0;
    float scale2 = SCALE2(p);
#if RELATIVE
    float *table = (float *)(&bars + 1) + group * TABLE, to_powers = (float)(p.scale * (double)LOG2_E);
#endif
    u64 q_at = matrix(shared_address(q) + group * SIDE * ROW_BYTES, 0);
    u64 k_at = matrix(shared_address(k), 0), v_at = matrix(shared_address(v), KEYS * ROW_BYTES);
    // The first turn is the first warpgroup's.
    if (group == CONSUMERS - 1) pass_turn(group);
    u32 used = 0, blocks = 0;
    for (int n = blockIdx.x; n < pieces<QUERIES>(p); n += gridDim.x) {
        Piece x = piece_of<QUERIES, KEYS>(p, t, n);
        int first = x.i0 + group * SIDE;
        float s[KEYS / 2], out[VALUES / 2], factor[2];
        u32 weights[KEYS / 16][4];
        Running rows;
        rows.clear();
#pragma unroll
        for (int d = 0; d < VALUES / 2; d++) out[d] = 0;
        Sight sees;
        int tile = tile_before<KEYS>(t, x, x.span.last, sees);
        if (tile >= 0) {
            Seen seen = seen_by(p, x, first);
#if RELATIVE
            load_table(p, x.at.h, table, 1 + CONSUMERS + group);
            int i0 = standing(p, first), standings[2] = {i0 + own_row(), i0 + own_row() + 8};
#endif
            barrier_wait(&bars.q_full, blocks % 2);
            blocks++;
            barrier_wait(&bars.k_full[used % STAGES], used / STAGES % 2);
            products_begin();
            product_by_rows<WIDTH, QUERIES, KEYS>(s, q_at, k_at + further(used % STAGES * K_BYTES));
            products_commit();
            products_wait<0>();
            settled(s);
            if (leads) barrier_arrive(&bars.k_empty[used % STAGES]);
#if RELATIVE
            add_bias(s, table, to_powers, tile * KEYS, i0, standings);
#endif
            if (sees == SOME) apply_mask(s, seen, tile * KEYS);
            rows.take(s, scale2, factor);
            as_left(s, weights);
            for (tile = tile_before<KEYS>(t, x, tile, sees); tile >= 0; tile = tile_before<KEYS>(t, x, tile, sees), used++) {
                int next = (used + 1) % STAGES, now = used % STAGES;
                barrier_wait(&bars.k_full[next], (used + 1) / STAGES % 2);
                take_turn(group);
                products_begin();
                product_by_rows<WIDTH, QUERIES, KEYS>(s, q_at, k_at + further(next * K_BYTES));
                products_commit();
                barrier_wait(&bars.v_full[now], used / STAGES % 2);
                product_across<KEYS>(out, weights, v_at + further(now * V_BYTES));
                products_commit();
                pass_turn(group);
                products_wait<1>();
                settled(s);
                if (leads) barrier_arrive(&bars.k_empty[next]);
#if RELATIVE
                add_bias(s, table, to_powers, tile * KEYS, i0, standings);
#endif
                if (sees == SOME) apply_mask(s, seen, tile * KEYS);
                rows.take(s, scale2, factor);
                products_wait<0>();
                settled(out);
                if (leads) barrier_arrive(&bars.v_empty[now]);
                as_left(s, weights);
#pragma unroll
                for (int d = 0; d < VALUES / 2; d++) out[d] *= factor[d / 2 % 2];
            }
            if (leads) barrier_arrive(&bars.q_empty);
            barrier_wait(&bars.v_full[used % STAGES], used / STAGES % 2);
            products_begin();
            product_across<KEYS>(out, weights, v_at + further(used % STAGES * V_BYTES));
            products_commit();
            products_wait<0>();
            settled(out);
            if (leads) barrier_arrive(&bars.v_empty[used % STAGES]);
            used++;
        }
        write_forward(p, o, t, x, first, out, rows);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    dot_forward(const __grid_constant__ Problem p, const __grid_constant__ Forward o, const __grid_constant__ Dot t, const __grid_constant__ TensorMap q_map,
                const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
    SHARED_MEMORY(memory);
    u8 *q = memory + (0 - shared_address(memory)) % GROUP_BYTES, *k = q + Q_BYTES, *v = k + STAGES * K_BYTES;
    Barriers &bars = *(Barriers *)(v + STAGES * V_BYTES);
    if (threadIdx.x == 0) {
        barrier_init(&bars.q_full, 1), barrier_init(&bars.q_empty, 4 * CONSUMERS);
        for (int n = 0; n < STAGES; n++) {
            barrier_init(&bars.k_full[n], 1), barrier_init(&bars.k_empty[n], 4 * CONSUMERS);
            barrier_init(&bars.v_full[n], 1), barrier_init(&bars.v_empty[n], 4 * CONSUMERS);
        }
        barriers_ready();
    }
    __syncthreads();
    if (threadIdx.x < WARPGROUP) {
        fewer_registers<CONSUMERS == 2 ? 24 : 32>();
        if (threadIdx.x == 0) copy_forward(p, t, q_map, k_map, v_map, q, k, v, bars);
    } else {
        more_registers<CONSUMERS == 2 ? 240 : 160>();
        compute_forward(p, o, t, q, k, v, bars);
    }
}

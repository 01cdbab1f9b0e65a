// Dot products of f32 numbers under softmax on tensor cores: a number is the sum of three of bf16, and six
// products of those are as exact as one of f32. Tensor cores cut off what they add, so each tile has sums of
// its own, which are then added as f32 numbers are. Widths are 64 at most.

#define PARTS 3
#define CONSUMERS 2
#define THREADS (WARPGROUP * (CONSUMERS + 1))
#define BLOCK (SIDE * CONSUMERS) // rows of a block
#define TILE 64                  // rows of a tile
#define STAGES 2
#define BLOCK_PART (BLOCK * ROW_BYTES)
#define TILE_PART (TILE * ROW_BYTES)
#define BLOCK_BYTES (PARTS * BLOCK_PART)
#define TILE_BYTES (PARTS * TILE_PART)
#define HALF (TILE / 2) // numbers of a thread

// Products of parts, small ones first: left part, right part.
__device__ constexpr int LEFT[6] = {0, 1, 2, 0, 1, 0}, RIGHT[6] = {2, 1, 0, 1, 0, 0};

// Two numbers' parts; what is left of them.
__device__ __forceinline__ u32 take_part(float &a, float &b) {
    u32 both = pack(a, b);
    a -= __uint_as_float(both << 16), b -= __uint_as_float(both & 0xffff0000u);
    return both;
}

// Rows of f32 as three arrays [B, H, N, padded] of bf16, one after another.
extern "C" __global__ void __launch_bounds__(256) split_rows(Array from, i64 batch, i64 heads, i64 rows, i64 width, i64 padded, u32 *to) {
    i64 words = batch * heads * rows * padded / 2;
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < words; at += (i64)gridDim.x * blockDim.x) {
        i64 d = at * 2 % padded, row = at * 2 / padded;
        const E *x = from.data + row / rows / heads * from.b + row / rows % heads * from.h + row % rows * from.n + d;
        float a = d < width ? x[0] : 0.0f, b = d + 1 < width ? x[1] : 0.0f;
#pragma unroll
        for (int part = 0; part < PARTS; part++) to[part * words + at] = take_part(a, b);
    }
}

// A tile of so many rows, part after part; the parts lie where more batch items would.
__device__ __forceinline__ void copy_parts(u8 *to, int rows, const TensorMap &map, u64 *barrier, i64 batch, int n, int h, int b) {
#pragma unroll
    for (int part = 0; part < PARTS; part++) copy_box(to + part * rows * ROW_BYTES, map, barrier, 0, n, h, part * (int)batch + b);
}

// d = a bᵀ
__device__ __forceinline__ void split_by_rows(float (&d)[HALF], u64 a, u64 b) {
#pragma unroll
    for (int n = 0; n < 6; n++)
#pragma unroll
        for (int k = 0; k < 4; k++)
            product<0, 0>(d, a + further(LEFT[n] * BLOCK_PART + k * 32), b + further(RIGHT[n] * TILE_PART + k * 32), n + k > 0);
}

// d = a b
__device__ __forceinline__ void split_across(float (&d)[HALF], const u32 (&a)[PARTS][TILE / 16][4], u64 b) {
#pragma unroll
    for (int n = 0; n < 6; n++)
#pragma unroll
        for (int k = 0; k < TILE / 16; k++) product<1>(d, a[LEFT[n]][k], b + further(RIGHT[n] * TILE_PART + k * 16 * ROW_BYTES), n + k > 0);
}

__device__ __forceinline__ void as_parts(const float (&x)[HALF], u32 (&to)[PARTS][TILE / 16][4]) {
#pragma unroll
    for (int n = 0; n < HALF / 2; n++) {
        float a = x[2 * n], b = x[2 * n + 1];
#pragma unroll
        for (int part = 0; part < PARTS; part++) to[part][n / 4][n % 4] = take_part(a, b);
    }
}

__device__ __forceinline__ void store_floats(const float (&x)[HALF], const float (&factor)[2], E *to, i64 n, i64 rows, i64 width) {
#pragma unroll
    for (int c = 0; c < HALF; c++) {
        int row = own_row() + c / 2 % 2 * 8, column = 8 * (c / 4) + own_column() + c % 2;
        if (row < rows && column < width) to[row * n + column] = x[c] * factor[c / 2 % 2];
    }
}

struct SplitBarriers {
    u64 block_full, block_empty, full[2][STAGES], empty[2][STAGES];
};

// Shared memory: two arrays' rows of a block, two arrays' tiles, numbers of a tile's rows.
struct Split {
    u8 *a, *b, *x, *y;
    float *lse2, *deltas;
    SplitBarriers *bars;
    __device__ Split(u8 *memory) {
        a = memory + (0 - shared_address(memory)) % GROUP_BYTES;
        b = a + BLOCK_BYTES, x = b + (BACKWARD ? BLOCK_BYTES : 0), y = x + STAGES * TILE_BYTES;
        lse2 = (float *)(y + STAGES * TILE_BYTES), deltas = lse2 + STAGES * TILE;
        bars = (SplitBarriers *)(deltas + STAGES * TILE);
    }
    __device__ void begin() {
        if (threadIdx.x == 0) {
            barrier_init(&bars->block_full, 1), barrier_init(&bars->block_empty, 4 * CONSUMERS);
            for (int n = 0; n < 2 * STAGES; n++) barrier_init(&bars->full[n / STAGES][n % STAGES], 1), barrier_init(&bars->empty[n / STAGES][n % STAGES], WARPGROUP * CONSUMERS);
            barriers_ready();
        }
        __syncthreads();
    }
};

// One side of the ring of tiles: 0 is x, 1 is y.
__device__ __forceinline__ u64 *tile_free(Split &m, int side, u32 count) {
    barrier_wait(&m.bars->empty[side][count % STAGES], count / STAGES % 2 ^ 1);
    return &m.bars->full[side][count % STAGES];
}
__device__ __forceinline__ void tile_wait(Split &m, int side, u32 count) { barrier_wait(&m.bars->full[side][count % STAGES], count / STAGES % 2); }
// Every lane says so, since every lane may have read the tile's statistics.
__device__ __forceinline__ void tile_done(Split &m, int side, u32 count) { barrier_arrive(&m.bars->empty[side][count % STAGES]); }

// Queries' blocks over tiles of keys: forward, and backward by query, which has the output's gradient too.
__device__ __forceinline__ void copy_over_keys(const Problem &p, const Dot &t, const TensorMap &q_map, const TensorMap *g_map, const TensorMap &k_map,
                                               const TensorMap &v_map, Split &m) {
    u32 count = 0, blocks = 0;
    for (int n = blockIdx.x; n < pieces<BLOCK>(p); n += gridDim.x) {
        Piece x = piece_of<BLOCK, TILE>(p, t, n);
        Sight sees;
        int tile = tile_before<TILE>(t, x, x.span.last, sees);
        if (tile < 0) continue;
        barrier_wait(&m.bars->block_empty, blocks++ % 2 ^ 1);
        barrier_expect(&m.bars->block_full, (g_map ? 2 : 1) * BLOCK_BYTES);
        copy_parts(m.a, BLOCK, q_map, &m.bars->block_full, p.batch, x.i0, x.at.h, x.at.b);
        if (g_map) copy_parts(m.b, BLOCK, *g_map, &m.bars->block_full, p.batch, x.i0, x.at.h, x.at.b);
        for (; tile >= 0; tile = tile_before<TILE>(t, x, tile, sees), count++) {
            u64 *full = tile_free(m, 0, count);
            barrier_expect(full, TILE_BYTES);
            copy_parts(m.x + count % STAGES * TILE_BYTES, TILE, k_map, full, p.batch, tile * TILE, x.hk, x.at.b);
            full = tile_free(m, 1, count);
            barrier_expect(full, TILE_BYTES);
            copy_parts(m.y + count % STAGES * TILE_BYTES, TILE, v_map, full, p.batch, tile * TILE, x.hk, x.at.b);
        }
    }
}

#if !BACKWARD

__device__ __forceinline__ void compute_split(const Problem &p, const Forward &o, const Dot &t, Split &m) {
    int group = threadIdx.x / WARPGROUP - 1;
    float scale2 = SCALE2(p);
    u64 q_at = matrix(shared_address(m.a) + group * SIDE * ROW_BYTES, 0), k_at = matrix(shared_address(m.x), 0), v_at = matrix(shared_address(m.y), 0);
    u32 count = 0, blocks = 0;
    for (int n = blockIdx.x; n < pieces<BLOCK>(p); n += gridDim.x) {
        Piece x = piece_of<BLOCK, TILE>(p, t, n);
        int first = x.i0 + group * SIDE;
        float s[HALF], out[HALF], sums[HALF], factor[2];
        u32 weights[PARTS][TILE / 16][4];
        Running rows;
        rows.clear();
#pragma unroll
        for (int d = 0; d < HALF; d++) out[d] = 0;
        Sight sees;
        int tile = tile_before<TILE>(t, x, x.span.last, sees);
        if (tile >= 0) {
            Seen seen = seen_by(p, x, first);
            barrier_wait(&m.bars->block_full, blocks++ % 2);
            for (; tile >= 0; tile = tile_before<TILE>(t, x, tile, sees), count++) {
                u64 at = further(count % STAGES * TILE_BYTES);
                tile_wait(m, 0, count);
                products_begin();
                split_by_rows(s, q_at, k_at + at);
                products_commit();
                products_wait<0>();
                settled(s);
                tile_done(m, 0, count);
                if (sees == SOME) apply_mask(s, seen, tile * TILE);
                rows.take(s, scale2, factor);
                as_parts(s, weights);
                tile_wait(m, 1, count);
                products_begin();
                split_across(sums, weights, v_at + at);
                products_commit();
                products_wait<0>();
                settled(sums);
                tile_done(m, 1, count);
#pragma unroll
                for (int d = 0; d < HALF; d++) out[d] = out[d] * factor[d / 2 % 2] + sums[d];
            }
            if (threadIdx.x % WARP == 0) barrier_arrive(&m.bars->block_empty);
        }
        rows.join();
        // Whatever came out NaN is computed again, also its log-sum-exp.
        float statistic[2] = {0, 0};
#pragma unroll
        for (int r = 0; r < 2; r++) factor[r] = rows.total[r] == 0 ? 0.0f : 1 / rows.total[r];
        store_floats(out, factor, o.out.data + x.at.b * o.out.b + x.at.h * o.out.h + first * o.out.n, o.out.n, p.queries - first, p.value_width);
        note_undefined(p, t, x.at.b, x.at.h, first, out, statistic);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            int row = first + own_row() + 8 * r;
            float log_sum = rows.top[r] * NATURAL(p) + logf(rows.total[r]);
            if (o.lse && threadIdx.x % 4 == 0 && row < p.queries) o.lse[((i64)x.at.b * p.heads + x.at.h) * p.queries + row] = rows.total[r] == 0 ? NEG_INF : log_sum;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    split_forward(const __grid_constant__ Problem p, const __grid_constant__ Forward o, const __grid_constant__ Dot t, const __grid_constant__ TensorMap q_map,
                  const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
    SHARED_MEMORY(memory);
    Split m(memory);
    m.begin();
    if (threadIdx.x < WARPGROUP) {
        fewer_registers<24>();
        if (threadIdx.x == 0) copy_over_keys(p, t, q_map, nullptr, k_map, v_map, m);
    } else {
        more_registers<240>();
        compute_split(p, o, t, m);
    }
}

#else

// Σ g · out of each row, less what arrives at its log-sum-exp, and that in powers of two. A warp has a row.
extern "C" __global__ void __launch_bounds__(128) split_deltas(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Dot t) {
    int lane = lane_id();
    for (i64 at = warp_id(); at < p.batch * p.heads * t.padded; at += warps()) {
        i64 head = at / t.padded, i = at % t.padded, row = head * p.queries + i, b = head / p.heads, h = head % p.heads;
        float sum = 0, lse = NEG_INF;
        if (i < p.queries) {
            const E *grad = g.grad_out.data + b * g.grad_out.b + h * g.grad_out.h + i * g.grad_out.n;
            const E *out = g.out.data + b * g.out.b + h * g.out.h + i * g.out.n;
            for (int d = lane; d < p.value_width; d += WARP) sum += grad[d] * out[d];
            lse = g.lse[row];
        }
        sum = warp_sum(sum);
        bool empty = lse == NEG_INF;
        if (lane == 0) {
            t.deltas[at] = empty ? 0.0f : sum - (g.grad_lse ? g.grad_lse[row] : 0.0f);
            t.lse2[at] = empty ? -NEG_INF : lse * LOG2_E;
        }
    }
}

__device__ __forceinline__ void split_by_query(const Problem &p, const Backward &g, const Dot &t, Split &m) {
    int group = threadIdx.x / WARPGROUP - 1;
    float scale2 = SCALE2(p);
    u64 q_at = matrix(shared_address(m.a) + group * SIDE * ROW_BYTES, 0), g_at = matrix(shared_address(m.b) + group * SIDE * ROW_BYTES, 0);
    u64 k_at = matrix(shared_address(m.x), 0), v_at = matrix(shared_address(m.y), 0);
    u32 count = 0, blocks = 0;
    for (int n = blockIdx.x; n < pieces<BLOCK>(p); n += gridDim.x) {
        Piece x = piece_of<BLOCK, TILE>(p, t, n);
        int first = x.i0 + group * SIDE;
        float w[HALF], dw[HALF], grad_q[HALF], lse2[2] = {0, 0};
        u32 grads[PARTS][TILE / 16][4];
#pragma unroll
        for (int d = 0; d < HALF; d++) grad_q[d] = 0;
        Sight sees;
        int tile = tile_before<TILE>(t, x, x.span.last, sees);
        if (tile >= 0) {
            Seen seen = seen_by(p, x, first);
            i64 row = (x.at.b * p.heads + x.at.h) * t.padded + first + own_row();
            float delta[2] = {t.deltas[row], t.deltas[row + 8]};
            lse2[0] = t.lse2[row], lse2[1] = t.lse2[row + 8];
            barrier_wait(&m.bars->block_full, blocks++ % 2);
            for (; tile >= 0; tile = tile_before<TILE>(t, x, tile, sees), count++) {
                u64 at = further(count % STAGES * TILE_BYTES);
                tile_wait(m, 0, count), tile_wait(m, 1, count);
                products_begin();
                split_by_rows(w, q_at, k_at + at);
                split_by_rows(dw, g_at, v_at + at);
                products_commit();
                products_wait<0>();
                settled(w), settled(dw);
                tile_done(m, 1, count);
#pragma unroll
                for (int c = 0; c < HALF; c++) w[c] = w[c] * scale2 - lse2[c / 2 % 2];
                if (sees == SOME) apply_mask(w, seen, tile * TILE);
#pragma unroll
                for (int c = 0; c < HALF; c++) w[c] = exp2_fast(w[c]) * (dw[c] - delta[c / 2 % 2]);
                as_parts(w, grads);
                products_begin();
                split_across(dw, grads, k_at + at);
                products_commit();
                products_wait<0>();
                settled(dw);
                tile_done(m, 0, count);
#pragma unroll
                for (int d = 0; d < HALF; d++) grad_q[d] += dw[d];
            }
            if (threadIdx.x % WARP == 0) barrier_arrive(&m.bars->block_empty);
        }
        note_undefined(p, t, x.at.b, x.at.h, first, grad_q, lse2);
        float scale[2] = {(float)p.scale, (float)p.scale};
        store_floats(grad_q, scale, g.grad_q.data + x.at.b * g.grad_q.b + x.at.h * g.grad_q.h + first * g.grad_q.n, g.grad_q.n, p.queries - first, p.width);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    split_backward_queries(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Dot t, const __grid_constant__ TensorMap q_map,
                           const __grid_constant__ TensorMap g_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
    SHARED_MEMORY(memory);
    Split m(memory);
    m.begin();
    if (threadIdx.x < WARPGROUP) {
        fewer_registers<24>();
        if (threadIdx.x == 0) copy_over_keys(p, t, q_map, &g_map, k_map, v_map, m);
    } else {
        more_registers<240>();
        split_by_query(p, g, t, m);
    }
}

__device__ __forceinline__ void copy_over_queries(const Problem &p, const Dot &t, const TensorMap &q_map, const TensorMap &g_map, const TensorMap &k_map,
                                                  const TensorMap &v_map, Split &m) {
    u32 count = 0, blocks = 0;
    for (int n = blockIdx.x; n < key_pieces(p); n += gridDim.x) {
        KeyPiece x = key_piece_of(p, t, n);
        Step s = before_steps(p, x);
        if (!next_step(p, t, x, s)) continue;
        barrier_wait(&m.bars->block_empty, blocks++ % 2 ^ 1);
        barrier_expect(&m.bars->block_full, 2 * BLOCK_BYTES);
        copy_parts(m.a, BLOCK, k_map, &m.bars->block_full, p.batch, x.j0, x.at.h, x.at.b);
        copy_parts(m.b, BLOCK, v_map, &m.bars->block_full, p.batch, x.j0, x.at.h, x.at.b);
        do {
            int stage = count % STAGES;
            i64 row = (x.at.b * p.heads + s.h) * t.padded + s.tile * TILE;
            u64 *full = tile_free(m, 0, count);
            barrier_expect(full, TILE_BYTES + 2 * TILE * 4);
            copy_parts(m.x + stage * TILE_BYTES, TILE, q_map, full, p.batch, s.tile * TILE, s.h, x.at.b);
            copy_bytes(m.lse2 + stage * TILE, t.lse2 + row, full, TILE * 4);
            copy_bytes(m.deltas + stage * TILE, t.deltas + row, full, TILE * 4);
            full = tile_free(m, 1, count);
            barrier_expect(full, TILE_BYTES);
            copy_parts(m.y + stage * TILE_BYTES, TILE, g_map, full, p.batch, s.tile * TILE, s.h, x.at.b);
            count++;
        } while (next_step(p, t, x, s));
    }
}

__device__ __forceinline__ void split_by_key(const Problem &p, const Backward &g, const Dot &t, Split &m) {
    int group = threadIdx.x / WARPGROUP - 1;
    float scale2 = SCALE2(p);
    u64 k_at = matrix(shared_address(m.a) + group * SIDE * ROW_BYTES, 0), v_at = matrix(shared_address(m.b) + group * SIDE * ROW_BYTES, 0);
    u64 q_at = matrix(shared_address(m.x), 0), g_at = matrix(shared_address(m.y), 0);
    u32 count = 0, blocks = 0;
    for (int n = blockIdx.x; n < key_pieces(p); n += gridDim.x) {
        KeyPiece x = key_piece_of(p, t, n);
        int first = x.j0 + group * SIDE;
        float w[HALF], dw[HALF], sums[HALF], grad_k[HALF], grad_v[HALF];
        u32 left[PARTS][TILE / 16][4];
#pragma unroll
        for (int d = 0; d < HALF; d++) grad_k[d] = grad_v[d] = 0;
        Step s = before_steps(p, x);
        if (next_step(p, t, x, s)) {
            Seen seen = seen_of(p, x, first);
            barrier_wait(&m.bars->block_full, blocks++ % 2);
            do {
                const float *lse2 = m.lse2 + count % STAGES * TILE, *deltas = m.deltas + count % STAGES * TILE;
                u64 at = further(count % STAGES * TILE_BYTES);
                tile_wait(m, 0, count), tile_wait(m, 1, count);
                products_begin();
                split_by_rows(w, k_at, q_at + at);
                split_by_rows(dw, v_at, g_at + at);
                products_commit();
                products_wait<0>();
                settled(w), settled(dw);
#pragma unroll
                for (int c = 0; c < HALF; c++) {
                    float2 lse = of_columns(lse2, c);
                    w[c] = w[c] * scale2 - (c % 2 ? lse.y : lse.x);
                }
                if (s.sees == SOME) apply_mask(w, seen, s.tile * TILE);
#pragma unroll
                for (int c = 0; c < HALF; c++) w[c] = exp2_fast(w[c]);
                as_parts(w, left);
                products_begin();
                split_across(sums, left, g_at + at);
                products_commit();
                products_wait<0>();
                settled(sums);
                tile_done(m, 1, count);
#pragma unroll
                for (int c = 0; c < HALF; c++) {
                    float2 delta = of_columns(deltas, c);
                    grad_v[c] += sums[c];
                    w[c] *= dw[c] - (c % 2 ? delta.y : delta.x);
                }
                as_parts(w, left);
                products_begin();
                split_across(sums, left, q_at + at);
                products_commit();
                products_wait<0>();
                settled(sums);
                tile_done(m, 0, count);
#pragma unroll
                for (int c = 0; c < HALF; c++) grad_k[c] += sums[c];
                count++;
            } while (next_step(p, t, x, s));
            if (threadIdx.x % WARP == 0) barrier_arrive(&m.bars->block_empty);
        }
        note_undefined_keys(p, t, x.at.b, x.at.h, first, grad_k, grad_v);
        float scale[2] = {(float)p.scale, (float)p.scale}, one[2] = {1, 1};
        i64 rows = p.keys - first;
        if (g.grad_k.data) store_floats(grad_k, scale, g.grad_k.data + x.at.b * g.grad_k.b + x.at.h * g.grad_k.h + first * g.grad_k.n, g.grad_k.n, rows, p.width);
        if (g.grad_v.data) store_floats(grad_v, one, g.grad_v.data + x.at.b * g.grad_v.b + x.at.h * g.grad_v.h + first * g.grad_v.n, g.grad_v.n, rows, p.value_width);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    split_backward_keys(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Dot t, const __grid_constant__ TensorMap q_map,
                        const __grid_constant__ TensorMap g_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
    SHARED_MEMORY(memory);
    Split m(memory);
    m.begin();
    if (threadIdx.x < WARPGROUP) {
        fewer_registers<24>();
        if (threadIdx.x == 0) copy_over_queries(p, t, q_map, g_map, k_map, v_map, m);
    } else {
        more_registers<240>();
        split_by_key(p, g, t, m);
    }
}

#endif

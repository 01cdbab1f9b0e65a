// Few queries over many keys: the queries of all heads that share keys are the rows of one product of 16
// rows, so that keys are read once. Keys are cut into splits that the shape fixes; in a block each warp has
// every fourth 16 keys of a split, its own copies under way and its own softmax; warps, then splits, are
// merged in order.

#define WARPS_EACH 4
#define ROWS 16
#define KEYS 16 // of a warp's tile
#define STAGES 3
#define TILE_BYTES (KEYS * (WIDTH + VALUES) * 2)

struct Decode {
    i64 splits, chunk; // keys of a split
    float *outs;       // [B, Hq, Nq, splits, VALUES]
    float *tops, *totals; // [B, Hq, Nq, splits]; tops in powers of two
};

// The query that a row of the product is, of the heads that share keys.
struct Query {
    i64 h, i;
    bool there;
    __device__ Query(const Problem &p, i64 hk, int row) {
        i64 group = p.heads / p.key_heads;
        h = hk * group + row % group, i = row / group;
        there = row < group * p.queries;
    }
};

// Sixteen rows of an array to shared memory, zeros for those that no query sees: a cache holds anything behind its
// length, and 0 times NaN is NaN. Their 16-byte pieces change places by row, so that eight rows
// at the same piece lie in different banks.
template <int COLUMNS> __device__ __forceinline__ void copy_rows(u8 *to, const Array &from, i64 b, i64 h, i64 first, i64 low, i64 high, i64 width) {
#pragma unroll
    for (int n = lane_id(); n < KEYS * COLUMNS / 8; n += WARP) {
        int row = n / (COLUMNS / 8), piece = n % (COLUMNS / 8);
        bool there = first + row >= low && first + row < high && piece * 8 < width;
        const E *at = there ? from.data + b * from.b + h * from.h + (first + row) * from.n + piece * 8 : from.data;
        copy_sixteen(to + row * COLUMNS * 2 + (piece ^ row % 8) * 16, at, there);
    }
}

template <int COLUMNS> __device__ __forceinline__ const u8 *piece_at(const u8 *tile, int row, int piece) {
    return tile + row * COLUMNS * 2 + (piece ^ row % 8) * 16;
}

// Scores of 16 rows and 16 keys.
__device__ __forceinline__ void decode_scores(float (&s)[8], const u32 (&q)[WIDTH / 16][4], const u8 *k) {
    int lane = lane_id();
#pragma unroll
    for (int n = 0; n < 8; n++) s[n] = 0;
#pragma unroll
    for (int d = 0; d < WIDTH / 16; d++) {
        // Keys 0–7 and 8–15, each with the two halves of 16 features.
        u32 b[4];
        load_matrices(b, piece_at<WIDTH>(k, lane / 16 * 8 + lane % 8, 2 * d + lane / 8 % 2));
        warp_product(s, q[d], b[0], b[1]);
        warp_product(s + 4, q[d], b[2], b[3]);
    }
}

__device__ __forceinline__ void decode_values(float (&out)[VALUES / 2], const u32 (&weights)[4], const u8 *v) {
    int lane = lane_id();
#pragma unroll
    for (int d = 0; d < VALUES / 16; d++) {
        // Sixteen keys, turned, of eight features and the next eight.
        u32 b[4];
        load_matrices_turned(b, piece_at<VALUES>(v, lane / 8 % 2 * 8 + lane % 8, 2 * d + lane / 16));
        warp_product(out + 8 * d, weights, b[0], b[1]);
        warp_product(out + 8 * d + 4, weights, b[2], b[3]);
    }
}

extern "C" __global__ void __launch_bounds__(WARP * WARPS_EACH) decode_forward(const __grid_constant__ Problem p, const __grid_constant__ Decode t) {
    SHARED_MEMORY(memory);
    int lane = lane_id(), warp = threadIdx.x / WARP, column = lane % 4 * 2;
    i64 split = blockIdx.x % (u32)t.splits, head = blockIdx.x / (u32)t.splits, b = head / p.key_heads, hk = head % p.key_heads;
    u8 *tiles = memory + warp * STAGES * TILE_BYTES;
    float scale2 = (float)(p.scale * (double)LOG2_E);
    u32 q[WIDTH / 16][4];
    int low[2], high[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        Query x(p, hk, lane / 4 + 8 * r);
        const E *row = p.q.data + b * p.q.b + x.h * p.q.h + x.i * p.q.n;
#pragma unroll
        for (int d = 0; d < WIDTH / 8; d++) {
            bool there = x.there && 8 * d < p.width;
            q[d / 2][r + d % 2 * 2] = there ? *(const u32 *)(row + 8 * d + column) : 0u;
        }
        Reach reach = keys_of(p, b, x.there ? x.i : 0);
        low[r] = (int)most(reach.low, 0), high[r] = x.there ? (int)most(reach.high, 0) : 0;
    }
    i64 first = split * t.chunk, last = least(first + t.chunk, p.keys);
    // Tiles that some row sees.
    Reach begin = keys_of(p, b, 0), end = keys_of(p, b, p.queries - 1);
    i64 step = KEYS * WARPS_EACH, lowest = begin.low, highest = least(end.high, p.keys);
    if (begin.low > first) first += (begin.low - first) / step * step;
    last = least(last, end.high);
    int count = last > first ? (int)((last - first + step - 1) / step) : 0;
    auto load = [&](int n) {
        i64 key = first + n * step + warp * KEYS;
        u8 *to = tiles + n % STAGES * TILE_BYTES;
        if (n < count) {
            copy_rows<WIDTH>(to, p.k, b, hk, key, lowest, highest, p.width);
            copy_rows<VALUES>(to + KEYS * WIDTH * 2, p.v, b, hk, key, lowest, highest, p.value_width);
        }
        copies_commit();
    };
    float out[VALUES / 2];
#pragma unroll
    for (int d = 0; d < VALUES / 2; d++) out[d] = 0;
    Running rows;
    rows.clear();
#pragma unroll
    for (int n = 0; n < STAGES - 1; n++) load(n);
    for (int n = 0; n < count; n++) {
        load(n + STAGES - 1);
        copies_wait<STAGES - 1>();
        __syncwarp();
        const u8 *tile = tiles + n % STAGES * TILE_BYTES;
        float s[8], factor[2];
        decode_scores(s, q, tile);
        int key = (int)(first + n * step) + warp * KEYS;
#pragma unroll
        for (int c = 0; c < 8; c++) {
            int j = key + c / 4 * 8 + column + c % 2, r = c / 2 % 2;
            if (j < low[r] || j >= high[r]) s[c] = NEG_INF;
        }
        rows.take(s, scale2, factor);
        u32 weights[1][4];
        as_left(s, weights);
#pragma unroll
        for (int d = 0; d < VALUES / 2; d++) out[d] *= factor[d / 2 % 2];
        decode_values(out, weights[0], tile + KEYS * WIDTH * 2);
        __syncwarp();
    }
    copies_wait<0>();
    rows.join();
    __syncthreads();
    // Each warp's rows, then all of them in order.
    float *outs = (float *)memory, *tops = outs + WARPS_EACH * ROWS * VALUES, *totals = tops + WARPS_EACH * ROWS;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int row = warp * ROWS + lane / 4 + 8 * r;
#pragma unroll
        for (int d = 0; d < VALUES / 8; d++) {
            float *to = outs + row * VALUES + 8 * d + column;
            to[0] = out[4 * d + 2 * r], to[1] = out[4 * d + 2 * r + 1];
        }
        if (lane % 4 == 0) tops[row] = rows.top[r] * scale2, totals[row] = rows.total[r];
    }
    __syncthreads();
    for (int n = threadIdx.x; n < ROWS * VALUES; n += WARP * WARPS_EACH) {
        int row = n / VALUES, d = n % VALUES;
        Query x(p, hk, row);
        if (!x.there) continue;
        float top = NEG_INF, total = 0, sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS_EACH; w++) top = fmaxf(top, tops[w * ROWS + row]);
#pragma unroll
        for (int w = 0; w < WARPS_EACH; w++) {
            float factor = tops[w * ROWS + row] == NEG_INF ? 0.0f : exp2_fast(tops[w * ROWS + row] - top);
            total += factor * totals[w * ROWS + row], sum += factor * outs[(w * ROWS + row) * VALUES + d];
        }
        i64 at = ((b * p.heads + x.h) * p.queries + x.i) * t.splits + split;
        t.outs[at * VALUES + d] = sum;
        if (d == 0) t.tops[at] = top, t.totals[at] = total;
    }
}

// All splits of a row, in order; a warp has a row.
extern "C" __global__ void __launch_bounds__(128) decode_merge(const __grid_constant__ Problem p, const __grid_constant__ Forward o, const __grid_constant__ Decode t) {
    int lane = lane_id();
    for (i64 at = warp_id(); at < p.batch * p.heads * p.queries; at += warps()) {
        const float *tops = t.tops + at * t.splits, *totals = t.totals + at * t.splits;
        float top = NEG_INF, total = 0, out[VALUES / WARP];
        for (i64 n = 0; n < t.splits; n++) top = fmaxf(top, tops[n]);
#pragma unroll
        for (int c = 0; c < VALUES / WARP; c++) out[c] = 0;
        for (i64 n = 0; n < t.splits; n++) {
            float factor = tops[n] == NEG_INF ? 0.0f : exp2_fast(tops[n] - top);
            total += factor * totals[n];
#pragma unroll
            for (int c = 0; c < VALUES / WARP; c++) out[c] += factor * t.outs[(at * t.splits + n) * VALUES + lane + WARP * c];
        }
        i64 b = at / p.queries / p.heads, h = at / p.queries % p.heads, i = at % p.queries;
        E *to = o.out.data + b * o.out.b + h * o.out.h + i * o.out.n;
        float factor = total == 0 ? 0.0f : 1 / total;
#pragma unroll
        for (int c = 0; c < VALUES / WARP; c++)
            if (lane + WARP * c < p.value_width) to[lane + WARP * c] = narrow(out[c] * factor);
        bool undefined = false;
#pragma unroll
        for (int c = 0; c < VALUES / WARP; c++) undefined |= out[c] != out[c];
        if (hides(p) && total == total && __any_sync(ALL, undefined)) output_again(p, o, b, h, i, top + log2f(total));
        if (lane == 0 && o.lse) o.lse[at] = total == 0 ? NEG_INF : top * LN2 + logf(total);
    }
}

// Scaled dot products under softmax, sparsemax or entmax on Hopper's tensor cores, numbers stored in 16 bits. One warp
// copies tiles, warpgroups of 64 rows each compute. WIDTH and VALUES are 64 or 128: what is narrower is
// filled up with zeros by the copies.

#define PANEL 64 // numbers of a panel's row
#define SIDE 64  // rows of a warpgroup
#define WARPGROUP 128

struct Dot {
    i64 sections;      // heads that work beside each other, so that their keys stay in the cache
    i64 padded;        // queries, rounded up
    float *lse2;       // [B, Hq, padded]: the log-sum-exp in powers of two, infinite where a row has nothing; or the threshold
    float *deltas;     // [B, Hq, padded]
    const i64 *q_span; // [B, blocks of 64 queries, 2]: the least and the largest segment
    const i64 *k_span; // the same of keys
    i64 q_blocks, k_blocks;
    float *statistics; // [B, Hq, Nq], or none: of rows that came out NaN the log-sum-exp in powers of two or the threshold; of others NaN
    float *undefined_keys; // [B, Hk, Nk], or none: NaN, but of keys whose gradients came out NaN 0
};

// Which rows and columns of scores a block looks at, in tiles of COLUMNS.
struct Span {
    int first, last;     // tiles
    int inner_low, inner_high; // columns that every row sees, segments aside
    i64 segment_low, segment_high;
};

enum Sight { NONE, SOME, EVERY };

__device__ __forceinline__ int clamped(i64 x, i64 high) { return (int)most(least(x, high), 0); }

// From the reaches of a block's first and last row: both ends move on with the row.
template <int COLUMNS> __device__ __forceinline__ Span span_of(const Reach &first, const Reach &last, i64 columns) {
    Span s;
    int low = clamped(first.low, columns), high = clamped(last.high, columns);
    s.first = low / COLUMNS;
    s.last = low < high ? (high + COLUMNS - 1) / COLUMNS : s.first;
    s.inner_low = clamped(last.low, columns), s.inner_high = clamped(first.high, columns);
    s.segment_low = s.segment_high = 0;
    return s;
}

// The least and largest segment of some blocks of 64.
__device__ __forceinline__ void segments_of(const i64 *span, i64 blocks, i64 b, i64 first, int count, i64 &low, i64 &high) {
    const i64 *at = span + 2 * (b * blocks + first);
    low = at[0], high = at[1];
    for (int n = 1; n < count && first + n < blocks; n++) {
        low = least(low, at[2 * n]);
        high = most(high, at[2 * n + 1]);
    }
}

// How much of a tile is seen; `span` is that of the columns' segments.
template <int COLUMNS> __device__ __forceinline__ Sight sight(const Span &s, int tile, const i64 *span, i64 blocks, i64 b) {
    bool every = tile * COLUMNS >= s.inner_low && (tile + 1) * COLUMNS <= s.inner_high;
#if SEGMENTS
    i64 low, high;
    segments_of(span, blocks, b, (i64)tile * COLUMNS / SIDE, COLUMNS / SIDE, low, high);
    if (high < s.segment_low || low > s.segment_high) return NONE;
    every = every && low == high && s.segment_low == low && s.segment_high == low;
#endif
    return every ? EVERY : SOME;
}

// A warpgroup's product has 64 rows; a thread has two of them, 8 apart, and two columns of each eight:
// number 4 j + 2 r + c is row (thread / 4 % 8) + 16 warp + 8 r, column 8 j + 2 (thread % 4) + c.
__device__ __forceinline__ int own_row() { return threadIdx.x % WARPGROUP / WARP * 16 + threadIdx.x % WARP / 4; }
__device__ __forceinline__ int own_column() { return threadIdx.x % 4 * 2; }

// Which columns a thread's two rows see.
struct Seen {
    int low[2], high[2];
#if SEGMENTS
    const i64 *columns; // their segments
    i64 segment[2];
#endif
};

// Scores of a tile that is seen in part, or their gradients.
template <int N> __device__ __forceinline__ void apply_mask(float (&s)[N], const Seen &seen, int first, float hidden = NEG_INF) {
#pragma unroll
    for (int n = 0; n < N; n++) {
        int column = first + 8 * (n / 4) + own_column() + n % 2, r = n / 2 % 2;
        bool visible = column >= seen.low[r] && column < seen.high[r];
#if SEGMENTS
        visible = visible && seen.columns[column] == seen.segment[r];
#endif
        if (!visible) s[n] = hidden;
    }
}

// d = a bᵀ over 64 or 128 features: both lie row by row, in panels of so many rows.
template <int DEPTH, int A_ROWS, int B_ROWS, int N> __device__ __forceinline__ void product_by_rows(float (&d)[N], u64 a, u64 b) {
#pragma unroll
    for (int n = 0; n < DEPTH / 16; n++) {
        int panel = n / 4, step = n % 4 * 32;
        product<0, 0>(d, a + further(panel * A_ROWS * ROW_BYTES + step), b + further(panel * B_ROWS * ROW_BYTES + step), n > 0);
    }
}

// d += a b: b's rows are what is summed over.
template <int ROWS, int N> __device__ __forceinline__ void product_across(float (&d)[N], const u32 (&a)[ROWS / 16][4], u64 b) {
#pragma unroll
    for (int n = 0; n < ROWS / 16; n++) product<1>(d, a[n], b + further(n * 16 * ROW_BYTES), 1);
}

// A tile of so many rows from a map, panel by panel.
template <int COLUMNS> __device__ __forceinline__ void copy_tile(u8 *to, int rows, const TensorMap &map, u64 *barrier, int n, int h, int b) {
#pragma unroll
    for (int panel = 0; panel < COLUMNS / PANEL; panel++) copy_box(to + panel * rows * ROW_BYTES, map, barrier, panel * PANEL, n, h, b);
}

// Four words of each of four lanes, turned: a lane gets its word of all four.
__device__ __forceinline__ void turn(u32 (&w)[4]) {
    int lane = threadIdx.x;
    bool odd = lane & 1, upper = lane & 2;
    u32 a = __shfl_xor_sync(ALL, odd ? w[0] : w[1], 1), b = __shfl_xor_sync(ALL, odd ? w[2] : w[3], 1);
    if (odd) w[0] = a, w[2] = b;
    else w[1] = a, w[3] = b;
    a = __shfl_xor_sync(ALL, upper ? w[0] : w[2], 2), b = __shfl_xor_sync(ALL, upper ? w[1] : w[3], 2);
    if (upper) w[0] = a, w[1] = b;
    else w[2] = a, w[3] = b;
}

// A warpgroup's rows to where they belong; rows are `n` apart, so many of them and so wide.
template <int N> __device__ __forceinline__ void store_rows(const float (&x)[N], const float (&factor)[2], E *to, i64 n, i64 rows, i64 width) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int row = own_row() + 8 * r;
#pragma unroll
        for (int j = 0; j < N / 4; j += 4) {
            u32 words[4];
#pragma unroll
            for (int w = 0; w < 4; w++) {
                int at = 4 * (j + w) + 2 * r;
                words[w] = pack(x[at] * factor[r], x[at + 1] * factor[r]);
            }
            turn(words);
            int column = 8 * (j + threadIdx.x % 4);
            if (row < rows && column < width) *(uint4 *)(to + row * n + column) = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
}

// The place of a piece of work: rows of a block, head by head in sections, the last rows first: they have
// the most keys where none after a query is seen.
struct Place {
    int block, h, b;
};

// The host sees to it that there are fewer than 2^31 of them.
__device__ __forceinline__ Place place_of(u32 at, u32 blocks, u32 heads, u32 batch, u32 sections, bool last_first) {
    u32 section = at / (sections * blocks), first = section * sections, left = heads * batch - first;
    u32 within = sections < left ? sections : left, rest = at - section * sections * blocks;
    u32 head = first + rest % within, block = rest / within;
    return {(int)(last_first ? blocks - 1 - block : block), (int)(head % heads), (int)(head / heads)};
}

// A block's queries, and the keys they see.
struct Piece {
    Place at;
    int hk, i0;
    Span span;
};

template <int ROWS> __device__ __forceinline__ int pieces(const Problem &p) {
    return ((int)p.queries + ROWS - 1) / ROWS * (int)(p.heads * p.batch);
}

template <int ROWS, int COLUMNS> __device__ __forceinline__ Piece piece_of(const Problem &p, const Dot &t, int n) {
    Piece x;
    x.at = place_of(n, ((u32)p.queries + ROWS - 1) / ROWS, p.heads, p.batch, t.sections, true);
    x.hk = x.at.h / ((int)p.heads / (int)p.key_heads);
    x.i0 = x.at.block * ROWS;
    i64 last = least(x.i0 + ROWS, p.queries) - 1;
    x.span = span_of<COLUMNS>(keys_of(p, x.at.b, x.i0), keys_of(p, x.at.b, last), p.keys);
#if SEGMENTS
    segments_of(t.q_span, t.q_blocks, x.at.b, x.i0 / SIDE, ROWS / SIDE, x.span.segment_low, x.span.segment_high);
#endif
    return x;
}

// The next tile of keys before this one that is seen, or -1.
template <int COLUMNS> __device__ __forceinline__ int tile_before(const Dot &t, const Piece &x, int tile, Sight &sees) {
    for (tile--; tile >= x.span.first; tile--) {
        sees = sight<COLUMNS>(x.span, tile, t.k_span, t.k_blocks, x.at.b);
        if (sees != NONE) return tile;
    }
    return -1;
}

// Which keys a thread's two queries see.
__device__ __forceinline__ Seen seen_by(const Problem &p, const Piece &x, int first) {
    Seen seen;
#if SEGMENTS
    seen.columns = p.k_segments + x.at.b * p.keys;
#endif
#pragma unroll
    for (int r = 0; r < 2; r++) {
        i64 i = first + own_row() + 8 * r;
        Reach reach = keys_of(p, x.at.b, i);
        seen.low[r] = clamped(reach.low, p.keys), seen.high[r] = clamped(reach.high, p.keys);
#if SEGMENTS
        seen.segment[r] = i < p.queries ? p.q_segments[x.at.b * p.queries + i] : 0;
#endif
    }
    return seen;
}

#if RELATIVE
// A bias by distance, times log2 e, in shared memory: a warpgroup has its own, of the head it works on.
#define TABLE (2 * DISTANCE + 1)

// Loads a head's; all of the warpgroup must be here.
__device__ __forceinline__ void load_table(const Problem &p, int h, float *table, int turn) {
    turn_wait(turn, WARPGROUP);
    for (int n = threadIdx.x % WARPGROUP; n < TABLE; n += WARPGROUP) table[n] = p.relative[h * p.relative_head + n] * LOG2_E;
    turn_wait(turn, WARPGROUP);
}

// Where a query stands among the keys, as far as 32 bits go: sequences are shorter than 2^30.
__device__ __forceinline__ int standing(const Problem &p, i64 i) { return (int)most(least(i + p.offset, 1 << 30), -(1 << 30)); }

// All pairs of a tile are so far apart that they share a bias: its index, or -1.
__device__ __forceinline__ int shared_bias(int j_first, int j_last, int i_first, int i_last) {
    if (j_last - i_first <= -DISTANCE) return 0;
    return j_first - i_last >= DISTANCE ? 2 * DISTANCE : -1;
}

// Where in the table the bias of a key is to a query that stands there.
__device__ __forceinline__ int bias_index(int key, int query) {
    int distance = key - query;
    return (distance < -DISTANCE ? -DISTANCE : distance > DISTANCE ? DISTANCE : distance) + DISTANCE;
}

// A warpgroup's scores with their bias, in powers of two: rows are queries that stand there, columns keys.
template <int N> __device__ __forceinline__ void add_bias(float (&s)[N], const float *table, float scale2, int j0, int i0, const int (&rows)[2]) {
    int shared = shared_bias(j0, j0 + 2 * N - 1, i0, i0 + SIDE - 1);
    if (shared < 0) {
#pragma unroll
        for (int n = 0; n < N; n++) s[n] = s[n] * scale2 + table[bias_index(j0 + 8 * (n / 4) + own_column() + n % 2, rows[n / 2 % 2])];
    } else {
        float far = table[shared];
#pragma unroll
        for (int n = 0; n < N; n++) s[n] = s[n] * scale2 + far;
    }
}

// The same where rows are keys and columns queries.
template <int N> __device__ __forceinline__ void add_bias_by_key(float (&s)[N], const float *table, float scale2, int j0, int i0) {
    int shared = shared_bias(j0, j0 + SIDE - 1, i0, i0 + 2 * N - 1);
#pragma unroll
    for (int n = 0; n < N; n++) {
        int at = shared < 0 ? bias_index(j0 + own_row() + 8 * (n / 2 % 2), i0 + 8 * (n / 4) + own_column() + n % 2) : shared;
        s[n] = s[n] * scale2 + table[at];
    }
}
#endif

// Whether the thread's row `r` of a product, of which four threads have a part, has a NaN.
template <int N> __device__ __forceinline__ int is_undefined(const float (&x)[N], int r) {
    int undefined = 0;
#pragma unroll
    for (int n = 2 * r; n < N; n += 4) undefined |= x[n] != x[n] || x[n + 1] != x[n + 1];
    undefined |= __shfl_xor_sync(ALL, undefined, 1);
    return undefined | __shfl_xor_sync(ALL, undefined, 2);
}

// Which of a warpgroup's rows from `first` on came out NaN though their statistic did not.
template <int N> __device__ __forceinline__ void note_undefined(const Problem &p, const Dot &t, int b, int h, int first, const float (&x)[N], const float (&statistic)[2]) {
    if (!t.statistics) return;
    float *to = t.statistics + ((i64)b * p.heads + h) * p.queries + first;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int row = own_row() + 8 * r, undefined = is_undefined(x, r);
        if (threadIdx.x % 4 == 0 && first + row < p.queries) to[row] = undefined ? statistic[r] : NOT_A_NUMBER;
    }
}

// Hands the rows that came out NaN to `call`, one after another; a warp has 32 rows.
template <typename Call> __device__ __forceinline__ void each_undefined(const float *statistics, i64 rows, Call call) {
    for (i64 first = warp_id() * WARP; first < rows; first += warps() * WARP) {
        float statistic = first + lane_id() < rows ? statistics[first + lane_id()] : NOT_A_NUMBER;
        u32 undefined = __ballot_sync(ALL, statistic == statistic);
        for (int n = 0; undefined && n < WARP; n++)
            if (undefined >> n & 1) call(first + n, __shfl_sync(ALL, statistic, n));
    }
}

#if !BACKWARD
extern "C" __global__ void __launch_bounds__(128, 1) undefined_outputs(const __grid_constant__ Problem p, const __grid_constant__ Forward o, const __grid_constant__ Dot t) {
    each_undefined(t.statistics, p.batch * p.heads * p.queries, [&](i64 row, float statistic) {
        i64 head = row / p.queries;
#if defined(SPLIT) || RELATIVE
        row_again(p, o, (int)(head / p.heads), (int)(head % p.heads), (int)(row % p.queries));
#else
        output_again(p, o, (int)(head / p.heads), (int)(head % p.heads), (int)(row % p.queries), statistic);
#endif
    });
}
#endif

// The least and the largest segment of each 64 rows; queries' blocks first. A warp has a block.
extern "C" __global__ void __launch_bounds__(128) dot_segments(const __grid_constant__ Problem p, i64 *q_span, i64 *k_span, i64 q_blocks, i64 k_blocks) {
    int lane = lane_id();
    for (i64 at = warp_id(); at < p.batch * (q_blocks + k_blocks); at += warps()) {
        bool of_keys = at >= p.batch * q_blocks;
        i64 block = of_keys ? at - p.batch * q_blocks : at, blocks = of_keys ? k_blocks : q_blocks;
        i64 length = of_keys ? p.keys : p.queries, b = block / blocks, first = block % blocks * SIDE;
        const i64 *from = (of_keys ? p.k_segments : p.q_segments) + b * length;
        i64 low = from[first], high = low;
        for (i64 n = first + lane; n < least(first + SIDE, length); n += WARP) low = least(low, from[n]), high = most(high, from[n]);
        for (int step = WARP / 2; step > 0; step /= 2) {
            low = least(low, __shfl_xor_sync(ALL, low, step));
            high = most(high, __shfl_xor_sync(ALL, high, step));
        }
        i64 *to = (of_keys ? k_span : q_span) + 2 * block;
        if (lane == 0) to[0] = low, to[1] = high;
    }
}

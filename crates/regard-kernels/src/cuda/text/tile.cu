// The general tile form: dot products by `mma.sync`, which every GPU since Ampere has, and every elementwise choice
// pasted in: masks, biases, dropout, a normalizer that needs no threshold. What a problem does not have costs it
// nothing: the HAS_ defines are fixed in the text.
//
// A tile in shared memory is rows of 16-bit numbers, each row PAD numbers longer than its width, so that eight
// rows at the same column lie in different banks. An f32 number is the sum of three of bf16 (PARTS), one plane
// after another, and six products of those are as exact as one of f32. Tensor cores cut off what they add, so there
// each step of 16 has a sum of its own, which is then added as f32 numbers are.

typedef unsigned short u16;

#define PAD 8
#define STRIDE(columns) ((columns) + PAD)
#define THREADS (WARP * WARPS)

// Scores are in powers of two where a rounding of the factor is below what the numbers are rounded to.
#if NORMALIZER == SOFTMAX && PARTS == 1
#define UNIT LOG2_E
#else
#define UNIT 1.0f
#endif
#define EXP(x) exp2_fast((x) * (LOG2_E / UNIT))

#define HAS_BIAS (HAS_KEY_BIAS || HAS_FULL_BIAS || HAS_ALIBI || HAS_RELATIVE)

// ---- Tiles ----

// Two numbers' largest parts, and what is left of them. An infinity, or NaN, is its first part alone.
__device__ __forceinline__ u32 take_part(float &a, float &b) {
    u32 both = pack(a, b);
    a = (both & 0x7f80u) == 0x7f80u ? 0.0f : a - __uint_as_float(both << 16);
    b = (both & 0x7f800000u) == 0x7f800000u ? 0.0f : b - __uint_as_float(both & 0xffff0000u);
    return both;
}

// ROWS rows of `width` numbers, zeros beyond; `row_at` gives a row's address, or null where there is none.
template <int ROWS, int COLUMNS, class RowAt>
__device__ __forceinline__ void load_tile(u16 *to, int width, const E *anywhere, RowAt row_at) {
#if PARTS == 1
#pragma unroll 4
    for (int n = threadIdx.x; n < ROWS * (COLUMNS / 8); n += THREADS) {
        int row = n / (COLUMNS / 8), column = n % (COLUMNS / 8) * 8;
        const E *from = row_at(row);
        u16 *at = to + row * STRIDE(COLUMNS) + column;
#if ALIGNED
        bool there = from && column < width;
        copy_sixteen(at, there ? from + column : anywhere, there);
#else
        u32 words[4];
#pragma unroll
        for (int c = 0; c < 4; c++) {
            u32 low = from && column + 2 * c < width ? from[column + 2 * c] : 0, high = from && column + 2 * c + 1 < width ? from[column + 2 * c + 1] : 0;
            words[c] = low | high << 16;
        }
        *(uint4 *)at = make_uint4(words[0], words[1], words[2], words[3]);
#endif
    }
#else
#pragma unroll 4
    for (int n = threadIdx.x; n < ROWS * (COLUMNS / 4); n += THREADS) {
        int row = n / (COLUMNS / 4), column = n % (COLUMNS / 4) * 4;
        const E *from = row_at(row);
        float x[4];
#if ALIGNED
        uint4 bits = from && column < width ? *(const uint4 *)(from + column) : make_uint4(0, 0, 0, 0);
        x[0] = __uint_as_float(bits.x), x[1] = __uint_as_float(bits.y), x[2] = __uint_as_float(bits.z), x[3] = __uint_as_float(bits.w);
#else
#pragma unroll
        for (int c = 0; c < 4; c++) x[c] = from && column + c < width ? from[column + c] : 0.0f;
#endif
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            u32 *at = (u32 *)(to + (part * ROWS + row) * STRIDE(COLUMNS) + column);
            at[0] = take_part(x[0], x[1]), at[1] = take_part(x[2], x[3]);
        }
    }
#endif
}

// 16 × 16 numbers of every part, from `row` and `column` on: as the left side of a product; as the right side where rows
// are the product's columns; as the right side where rows are what is summed over.
template <int ROWS, int COLUMNS> __device__ __forceinline__ void load_left(u32 (&to)[PARTS][4], const u16 *tile, int row, int column) {
    int lane = lane_id();
    const u16 *at = tile + (row + lane % 16) * STRIDE(COLUMNS) + column + lane / 16 * 8;
#pragma unroll
    for (int part = 0; part < PARTS; part++) load_matrices(to[part], at + part * ROWS * STRIDE(COLUMNS));
}
template <int ROWS, int COLUMNS> __device__ __forceinline__ void load_right(u32 (&to)[PARTS][4], const u16 *tile, int row, int column) {
    int lane = lane_id();
    const u16 *at = tile + (row + lane / 16 * 8 + lane % 8) * STRIDE(COLUMNS) + column + lane / 8 % 2 * 8;
#pragma unroll
    for (int part = 0; part < PARTS; part++) load_matrices(to[part], at + part * ROWS * STRIDE(COLUMNS));
}
template <int ROWS, int COLUMNS> __device__ __forceinline__ void load_right_turned(u32 (&to)[PARTS][4], const u16 *tile, int row, int column) {
    int lane = lane_id();
    const u16 *at = tile + (row + lane % 16) * STRIDE(COLUMNS) + column + lane / 16 * 8;
#pragma unroll
    for (int part = 0; part < PARTS; part++) load_matrices_turned(to[part], at + part * ROWS * STRIDE(COLUMNS));
}

// d += a b: 16 rows, 16 columns, 16 deep.
__device__ __forceinline__ void multiply(float *d, const u32 (&a)[PARTS][4], const u32 (&b)[PARTS][4]) {
#if PARTS == 1
    warp_product(d, a[0], b[0][0], b[0][1]);
    warp_product(d + 4, a[0], b[0][2], b[0][3]);
#else
    // Small ones first: left part, right part.
    const int left[6] = {0, 1, 2, 0, 1, 0}, right[6] = {2, 1, 0, 1, 0, 0};
    float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll
    for (int n = 0; n < 6; n++) {
        warp_product(sum, a[left[n]], b[right[n]][0], b[right[n]][1]);
        warp_product(sum + 4, a[left[n]], b[right[n]][2], b[right[n]][3]);
    }
#pragma unroll
    for (int n = 0; n < 8; n++) d[n] += sum[n];
#endif
}

// d = a bᵀ, of M × 16 rows of a from `row` on and all N rows of b.
template <int M, int A_ROWS, int N, int DEPTH> __device__ __forceinline__ void multiply_rows(float (&d)[M][N / 2], const u16 *a, int row, const u16 *b) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N / 2; n++) d[m][n] = 0;
#pragma unroll PARTS == 1 ? DEPTH / 16 : 2
    for (int k = 0; k < DEPTH / 16; k++) {
        u32 left[M][PARTS][4];
#pragma unroll
        for (int m = 0; m < M; m++) load_left<A_ROWS, DEPTH>(left[m], a, row + 16 * m, 16 * k);
#pragma unroll
        for (int n = 0; n < N / 16; n++) {
            u32 right[PARTS][4];
            load_right<N, DEPTH>(right, b, 16 * n, 16 * k);
#pragma unroll
            for (int m = 0; m < M; m++) multiply(d[m] + 8 * n, left[m], right);
        }
    }
}

// d += x b, x as a product left it: K columns, which are the K rows of b.
template <int M, int K, int COLUMNS> __device__ __forceinline__ void multiply_columns(float (&d)[M][COLUMNS / 2], const float (&x)[M][K / 2], const u16 *b) {
#pragma unroll
    for (int k = 0; k < K / 16; k++) {
        u32 left[M][PARTS][4];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < 4; n++) {
                float low = x[m][8 * k + 2 * n], high = x[m][8 * k + 2 * n + 1];
#pragma unroll
                for (int part = 0; part < PARTS; part++) left[m][part][n] = PARTS == 1 ? pack(low, high) : take_part(low, high);
            }
#pragma unroll
        for (int n = 0; n < COLUMNS / 16; n++) {
            u32 right[PARTS][4];
            load_right_turned<K, COLUMNS>(right, b, 16 * k, 16 * n);
#pragma unroll
            for (int m = 0; m < M; m++) multiply(d[m] + 8 * n, left[m], right);
        }
    }
}

// Which number of a thread's is where: number n of a product's tile of 16 rows.
__device__ __forceinline__ int own_row(int n) { return lane_id() / 4 + n / 2 % 2 * 8; }
__device__ __forceinline__ int own_column(int n) { return n / 4 * 8 + lane_id() % 4 * 2 + n % 2; }

__device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(ALL, x, 1);
    return x + __shfl_xor_sync(ALL, x, 2);
}

// ---- Pairs ----

// What one query's scores need besides the product.
struct Line {
    int b, h, i;
    int low, high; // the keys in its reach
    bool there;
#if HAS_SEGMENTS
    i64 segment;
#endif
#if HAS_DENSE
    const u8 *dense;
#endif
#if HAS_KEY_BIAS
    const T *key_bias;
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

    __device__ __forceinline__ Line() {}
    __device__ __forceinline__ Line(const Problem &p, i64 b, i64 h, i64 i, bool there) : b((int)b), h((int)h), i((int)i), there(there) {
        Reach reach = keys_of(p, b, i);
        low = (int)least(most(reach.low, 0), p.keys), high = there ? (int)most(reach.high, 0) : 0;
#if HAS_SEGMENTS
        segment = p.q_segments[b * p.queries + i];
#endif
#if HAS_DENSE
        dense = (const u8 *)p.dense.data + b * p.dense.b + h * p.dense.h + i * p.dense.q;
#endif
#if HAS_KEY_BIAS
        key_bias = (const T *)p.key_bias.data + b * p.key_bias.b + h * p.key_bias.h;
#endif
#if HAS_FULL_BIAS
        full_bias = (const T *)p.full_bias.data + b * p.full_bias.b + h * p.full_bias.h + i * p.full_bias.q;
#endif
#if HAS_ALIBI
        slope = p.alibi[h];
#endif
#if HAS_RELATIVE
        relative = p.relative + h * p.relative_head + p.max_distance;
#endif
    }

    __device__ __forceinline__ i64 row(const Problem &p) const { return (b * p.heads + h) * p.queries + i; }
    __device__ __forceinline__ const E *row_of(const Array &x) const { return x.data + b * x.b + h * x.h + i * x.n; }
};

// A pair's score in UNITs, or −∞ where the query does not see the key. Where the whole tile is in reach, CUT is false.
// A bias of −∞ hides its key, whatever the product is.
template <bool CUT> __device__ __forceinline__ float score_at(const Problem &p, const Line &l, float product, int j) {
    if (CUT && (j < l.low || j >= l.high)) return NEG_INF;
#if HAS_SEGMENTS
    if (p.k_segments[l.b * p.keys + j] != l.segment) return NEG_INF;
#endif
#if HAS_DENSE
    if (!l.dense[j * p.dense.k]) return NEG_INF;
#endif
    float score = product * (float)(p.scale * (double)UNIT);
#if HAS_BIAS
    float bias = 0;
#if HAS_KEY_BIAS
    bias += l.key_bias[j * p.key_bias.k];
#endif
#if HAS_FULL_BIAS
    bias += l.full_bias[j * p.full_bias.k];
#endif
#if HAS_ALIBI || HAS_RELATIVE
    int distance = j - (int)(l.i + p.offset);
#endif
#if HAS_ALIBI
    bias -= l.slope * (float)(distance < 0 ? -distance : distance);
#endif
#if HAS_RELATIVE
    bias += l.relative[most(least(distance, p.max_distance), -p.max_distance)];
#endif
    if (bias == NEG_INF) return NEG_INF;
    score += bias * UNIT;
#endif
    return score;
}

// From a score to its weight before dropout; `statistic` is the row's log-sum-exp in UNITs.
__device__ __forceinline__ float weight_at(float score, float statistic) {
    if (score == NEG_INF) return 0;
#if NORMALIZER == SOFTMAX
    return EXP(score - statistic);
#elif NORMALIZER == SIGMOID
    return 1 / (1 + EXP(-score));
#else
    return score;
#endif
}

// From the gradient of a weight, less its row's `delta`, to that of its score.
__device__ __forceinline__ float score_grad(float weight, float grad) {
#if NORMALIZER == SOFTMAX
    return weight * grad;
#elif NORMALIZER == SIGMOID
    return weight * (1 - weight) * grad;
#else
    return grad;
#endif
}

// Where a part of an infinity met a zero, or the parts of one each other: once more, as the formula has it.
__device__ __forceinline__ float defined(float product, const E *x, const E *y, i64 width) {
#if PARTS > 1
    if (product - product != 0) return product_of(x, y, width);
#endif
    return product;
}

// ---- Dropout ----

#if HAS_DROPOUT

// The words of four keys in a row, of which `key` is the first.
__device__ __forceinline__ void random_words(u32 (&to)[4], const Problem &p, u32 head, u32 query, u32 key) {
    random_four(to, p.dropout_seed, 0, head, query, key / 4);
}

// Which of the numbers of a row's 16 keys from `key` on are dropped: numbers 0 and 1 of the first eight keys, 2 and
// 3 of the others. Four keys share a draw: neighbors draw for both, each for other eight keys.
__device__ __forceinline__ u32 dropped_by_query(const Problem &p, const Line &l, int key) {
    int lane = lane_id(), odd = lane % 2;
    u32 words[4];
    random_words(words, p, (u32)(l.b * p.heads + l.h), (u32)l.i, key + 8 * odd + lane % 4 / 2 * 4);
    u32 other[2];
#pragma unroll
    for (int n = 0; n < 2; n++) other[n] = __shfl_xor_sync(ALL, odd ? words[n] : words[2 + n], 1);
    u32 below = (u32)p.dropped_below, bits = 0;
#pragma unroll
    for (int n = 0; n < 2; n++) {
        u32 first = odd ? other[n] : words[n], second = odd ? words[2 + n] : other[n];
        bits |= (u32)(first < below) << n | (u32)(second < below) << (2 + n);
    }
    return bits;
}

// The same where a key is a row and eight queries from `query` on are columns: bit 2 r + c is key lane / 4 + 8 r, query
// 2 (lane % 4) + c. Four lanes share four draws: each makes one, and they are exchanged.
__device__ __forceinline__ u32 dropped_by_key(const Problem &p, i64 b, i64 h, int query, int key) {
    int lane = lane_id(), own = lane / 4 % 4;
    u32 words[4];
    random_words(words, p, (u32)(b * p.heads + h), query + lane % 4 * 2 + own % 2, key + own / 2 * 8 + lane / 16 * 4);
    u32 below = (u32)p.dropped_below, bits = 0;
#pragma unroll
    for (int step = 0; step < 4; step++) {
        int theirs = own ^ step;
        u32 low = theirs & 1 ? words[1] : words[0], high = theirs & 1 ? words[3] : words[2];
        u32 word = __shfl_xor_sync(ALL, theirs & 2 ? high : low, 4 * step);
        // What came is draw `theirs`, for this lane's key.
        bits |= (u32)(word < below) << theirs;
    }
    return bits;
}

#endif

// ---- A block's queries ----

// Rows of queries: those of all heads that share keys, or of one head; row r is query r / group of head r % group.
struct Queries {
    i64 b, hk, head, group, count, first; // head: the first; first: the block's first row
    __device__ __forceinline__ i64 query(i64 row) const { return row / group; }
    __device__ __forceinline__ Line line(const Problem &p, int row) const {
        i64 at = first + row;
        bool there = at < count;
        if (!there) at = count - 1;
        return Line(p, b, head + at % group, at / group, there);
    }
    __device__ __forceinline__ const E *row_of(const Array &x, int row) const {
        i64 at = first + row;
        return at < count ? x.data + b * x.b + (head + at % group) * x.h + at / group * x.n : nullptr;
    }
};

// The tiles of keys that some of a block's queries see, and those that all of them do.
struct Span {
    int first, last;           // of tiles
    int high;                  // of keys: none from there on is seen
    int inside_low, inside_high; // of keys
    __device__ __forceinline__ Span(const Problem &p, const Queries &q, int rows, int keys) {
        i64 begin = q.query(q.first), end = q.query(least(q.first + rows, q.count) - 1);
        Reach early = keys_of(p, q.b, begin), late = keys_of(p, q.b, end);
        int low = (int)least(most(early.low, 0), p.keys);
        high = (int)least(late.high, p.keys);
        first = low / keys, last = high > low ? (high + keys - 1) / keys : first;
        inside_low = (int)least(most(late.low, 0), p.keys), inside_high = (int)early.high;
    }
    __device__ __forceinline__ bool inside(int key, int keys) const { return key >= inside_low && key + keys <= inside_high; }
};

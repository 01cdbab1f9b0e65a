// How a block of the general tiles walks keys: ROWS queries of its own, a warp 16 or 32 of them, tile after tile of keys.
// Backward it has the gradient of the output beside the queries.

#define ROWS (16 * TILES_EACH * WARPS)
#define K_TILE (PARTS * KEYS * STRIDE(WIDTH))
#define V_TILE (PARTS * KEYS * STRIDE(VALUES))

struct Tile {
    i64 blocks;            // of queries that share keys
    float *tops, *totals;  // [B, Hq, Nq]: what the weights are made of, where they are asked for
};

__device__ __forceinline__ Queries queries_of_block(const Problem &p, const Tile &t) {
    i64 head = blockIdx.x / t.blocks, group = p.heads / p.key_heads;
    // The last queries see most of a causal mask's keys: they begin first.
    i64 block = t.blocks - 1 - blockIdx.x % t.blocks;
    return {head / p.key_heads, head % p.key_heads, head % p.key_heads * group, group, group * p.queries, block * ROWS};
}

// Scores of a tile, from the products of queries and keys.
template <bool CUT> __device__ __forceinline__ void scores_of_tile(const Problem &p, const Queries &q, const Line (&lines)[TILES_EACH][2], float (&s)[TILES_EACH][KEYS / 2], int first) {
    const E *k = p.k.data + q.b * p.k.b + q.hk * p.k.h;
#pragma unroll
    for (int m = 0; m < TILES_EACH; m++)
#pragma unroll
        for (int n = 0; n < KEYS / 2; n++) {
            const Line &l = lines[m][n / 2 % 2];
            int j = first + own_column(n);
            // A query that is not finite has such a product with the zeros behind the last key too.
            float product = defined(s[m][n], l.row_of(p.q), k + least(j, p.keys - 1) * p.k.n, p.width);
            s[m][n] = score_at<CUT>(p, l, product, j);
        }
}

struct Walk {
    u16 *q, *grad, *k, *v;
    Queries queries;
    Span span;
    Line lines[TILES_EACH][2];

    __device__ __forceinline__ Walk(const Problem &p, const Queries &queries, u8 *memory)
        : q((u16 *)memory), grad(q + PARTS * ROWS * STRIDE(WIDTH)), k(grad + (BACKWARD ? PARTS * ROWS * STRIDE(VALUES) : 0)), v(k + STAGES * K_TILE),
          queries(queries), span(p, queries, ROWS, KEYS) {
#pragma unroll
        for (int m = 0; m < TILES_EACH; m++)
#pragma unroll
            for (int r = 0; r < 2; r++) lines[m][r] = queries.line(p, row(m, r));
    }
    __device__ __forceinline__ int row(int m, int r) const { return ((int)threadIdx.x / WARP * TILES_EACH + m) * 16 + lane_id() / 4 + 8 * r; }

    __device__ __forceinline__ void load_queries(const Problem &p) {
        load_tile<ROWS, WIDTH>(q, (int)p.width, p.q.data, [&](int row) { return queries.row_of(p.q, row); });
    }
#if BACKWARD
    __device__ __forceinline__ void load_grads(const Problem &p, const Array &from) {
        load_tile<ROWS, VALUES>(grad, (int)p.value_width, from.data, [&](int row) { return queries.row_of(from, row); });
    }
#endif
    __device__ __forceinline__ void load_keys(const Problem &p, int tile, bool values) {
        int stage = STAGES == 1 ? 0 : tile % STAGES;
        if (tile < span.last) {
            const E *from = p.k.data + queries.b * p.k.b + queries.hk * p.k.h;
            load_tile<KEYS, WIDTH>(k + stage * K_TILE, (int)p.width, p.k.data, [&](int row) {
                i64 j = (i64)tile * KEYS + row;
                return j < p.keys && j < span.high ? from + j * p.k.n : nullptr;
            });
            const E *from_v = p.v.data + queries.b * p.v.b + queries.hk * p.v.h;
            if (values) load_tile<KEYS, VALUES>(v + stage * V_TILE, (int)p.value_width, p.v.data, [&](int row) {
                i64 j = (i64)tile * KEYS + row;
                return j < p.keys && j < span.high ? from_v + j * p.v.n : nullptr;
            });
        }
        copies_commit();
    }

    // Every tile's scores, in order: `use` takes them and where the tile's keys and values lie. The queries were loaded.
    template <class Use> __device__ __forceinline__ void over_keys(const Problem &p, bool values, Use use) {
        if (STAGES > 1) load_keys(p, span.first, values);
        for (int tile = span.first; tile < span.last; tile++) {
            load_keys(p, tile + STAGES - 1, values);
            copies_wait<STAGES - 1>();
            __syncthreads();
            int stage = STAGES == 1 ? 0 : tile % STAGES;
            float s[TILES_EACH][KEYS / 2];
            multiply_rows<TILES_EACH, ROWS, KEYS, WIDTH>(s, q, row(0, 0) - lane_id() / 4, k + stage * K_TILE);
            int first = tile * KEYS;
            if (span.inside(first, KEYS)) scores_of_tile<false>(p, queries, lines, s, first);
            else scores_of_tile<true>(p, queries, lines, s, first);
            use(s, first, k + stage * K_TILE, v + stage * V_TILE);
            __syncthreads();
        }
        copies_wait<0>();
    }
};

// Every pair of a warp's 16 queries and the tile of keys from `first` on: `use` is told which number it is, which row of the
// thread's two, which key, and whether dropout takes it.
template <class Use> __device__ __forceinline__ void each_pair(const Problem &p, const Line (&lines)[2], int first, Use use) {
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
#if HAS_DROPOUT
            u32 dropped = dropped_by_query(p, lines[r], first + 16 * n);
#else
            u32 dropped = 0;
#endif
#pragma unroll
            for (int c = 0; c < 4; c++) {
                int at = 8 * n + c / 2 * 4 + 2 * r + c % 2;
                use(at, r, first + own_column(at), (bool)(dropped >> c & 1));
            }
        }
}

// A pair's score as the formula has it, −∞ where the query does not see the key; for rows that are computed again.
__device__ __forceinline__ float plain_score(const Problem &p, const Line &l, i64 j) {
    const E *k = p.k.data + l.b * p.k.b + l.h / (p.heads / p.key_heads) * p.k.h + j * p.k.n;
    return score_at<true>(p, l, product_of(l.row_of(p.q), k, p.width), (int)j);
}

// Whether a row is to be computed again, in the four lanes that share it. What is NaN by right stays.
template <int N> __device__ __forceinline__ bool is_undefined(const Problem &p, const float (&x)[N], int r) {
    float sum = 0;
#pragma unroll
    for (int n = 2 * r; n < N; n += 4) sum += (x[n] - x[n]) + (x[n + 1] - x[n + 1]);
    // A bias of −∞ hides as a mask does.
    return quad_sum(sum) != 0 && (PARTS > 1 || HAS_DENSE || HAS_BIAS || hides(p));
}

// Two numbers of a row, side by side.
__device__ __forceinline__ void store_two(E *row, int column, i64 width, float low, float high) {
#if ALIGNED && PARTS == 1
    if (column < width) *(u32 *)(row + column) = pack(low, high);
#else
    if (column < width) row[column] = narrow(low);
    if (column + 1 < width) row[column + 1] = narrow(high);
#endif
}


// Backward by key: a block has BY_KEY_KEYS keys and walks tiles of BY_KEY_QUERIES queries that see them, of
// all heads that share the keys.

#define BY_KEY_KEYS (2 * SIDE)

// A block's keys, and the queries that see them.
struct KeyPiece {
    Place at;
    int j0;
    Span span;
};

__device__ __forceinline__ KeyPiece key_piece_of(const Problem &p, const Dot &t, int n) {
    KeyPiece x;
    u32 blocks = ((u32)p.keys + BY_KEY_KEYS - 1) / BY_KEY_KEYS;
    // The first keys are seen by the most queries.
    x.at = place_of(n, blocks, p.key_heads, p.batch, t.sections, false);
    x.j0 = x.at.block * BY_KEY_KEYS;
    i64 last = least(x.j0 + BY_KEY_KEYS, p.keys) - 1;
    Reach first = queries_of(p, x.at.b, x.j0), end = queries_of(p, x.at.b, last);
    // A length leaves keys beyond it without queries: the reach of the last key is then no bound.
    Reach unbounded = end;
    if (p.lengths && last >= p.lengths[x.at.b]) {
        i64 length = p.lengths[x.at.b];
        if (length > x.j0) unbounded = queries_of(p, x.at.b, length - 1);
        end.low = p.queries;
    }
    x.span = span_of<BY_KEY_QUERIES>(first, unbounded, p.queries);
    x.span.inner_low = clamped(end.low, p.queries);
#if SEGMENTS
    segments_of(t.k_span, t.k_blocks, x.at.b, x.j0 / SIDE, BY_KEY_KEYS / SIDE, x.span.segment_low, x.span.segment_high);
#endif
    return x;
}

__device__ __forceinline__ int key_pieces(const Problem &p) { return ((int)p.keys + BY_KEY_KEYS - 1) / BY_KEY_KEYS * (int)(p.key_heads * p.batch); }

// A step of a block: a tile of queries of one of the heads that share its keys.
struct Step {
    int h, tile;
    Sight sees;
};

__device__ __forceinline__ bool next_step(const Problem &p, const Dot &t, const KeyPiece &x, Step &s) {
    int group = (int)p.heads / (int)p.key_heads;
    for (s.tile++;; s.tile++) {
        if (s.tile >= x.span.last) {
            s.h++, s.tile = x.span.first;
            if (s.h >= (x.at.h + 1) * group || x.span.first >= x.span.last) return false;
        }
        s.sees = sight<BY_KEY_QUERIES>(x.span, s.tile, t.q_span, t.q_blocks, x.at.b);
        if (s.sees != NONE) return true;
    }
}

__device__ __forceinline__ Step before_steps(const Problem &p, const KeyPiece &x) {
    int group = (int)p.heads / (int)p.key_heads;
    return {x.at.h * group - 1, x.span.last, NONE};
}

// Which queries see a thread's two keys.
__device__ __forceinline__ Seen seen_of(const Problem &p, const KeyPiece &x, int first) {
    Seen seen;
#if SEGMENTS
    seen.columns = p.q_segments + x.at.b * p.queries;
#endif
#pragma unroll
    for (int r = 0; r < 2; r++) {
        i64 j = first + own_row() + 8 * r;
        Reach reach = queries_of(p, x.at.b, j);
        seen.low[r] = clamped(reach.low, p.queries), seen.high[r] = j < p.keys ? clamped(reach.high, p.queries) : 0;
#if SEGMENTS
        seen.segment[r] = j < p.keys ? p.k_segments[x.at.b * p.keys + j] : 0;
#endif
    }
    return seen;
}

// Two numbers for each of a thread's columns.
__device__ __forceinline__ float2 of_columns(const float *row, int n) { return *(const float2 *)(row + 8 * (n / 4) + own_column()); }

// One attention problem, as the host describes it: numbers of eight bytes only, in the order of
// `Problem` in problem.rs.

struct Array {
    const E *data;
    i64 b, h, n; // strides
};

struct Result {
    E *data;
    i64 b, h, n;
};

struct Spread { // an array broadcast to [B, Hq, Nq, Nk]; a broadcast axis has a stride of 0
    const void *data;
    i64 b, h, q, k;
};

struct Parameter {
    const T *data;
    i64 head; // stride
};

#define PARAMETERS 16

struct Problem {
    i64 batch, heads, key_heads, queries, keys, width, value_width;
    Array q, k, v;
    double scale;
    i64 offset;
    // The mask.
    i64 causal, windowed, left, right;
    const i64 *lengths, *q_segments, *k_segments;
    Spread dense;
    const u64 *row_start;
    const u32 *row_keys;
    const u64 *column_start;
    const u32 *column_queries, *column_edges;
    const u32 *row_draws; // what dropout draws by, where that is not the key
    i64 edges;
    // The bias.
    Spread key_bias, full_bias;
    const T *alibi, *relative;
    i64 relative_head, max_distance;
    // From scores to weights.
    i64 normalizer;
    u64 sample_seed;
    i64 dropped;
    u64 dropout_seed, dropped_below;
    double kept;
    Parameter parameters[PARAMETERS];
};

#define SOFTMAX 0
#define SPARSEMAX 1
#define ENTMAX15 2
#define SIGMOID 3
#define PLAIN 4
#define ARGMAX 5
#define SAMPLE 6

__device__ __forceinline__ bool is_hard(const Problem &p) { return p.normalizer >= ARGMAX; }

// The keys one query may look at, or the queries one key is seen by: a range, or a list whose
// entries must lie in that range.
struct Reach {
    i64 low, high; // of positions
    const u32 *list;
    u64 first; // of the list's entries among all edges
    i64 count;
};

__device__ __forceinline__ i64 most(i64 a, i64 b) { return a > b ? a : b; }
__device__ __forceinline__ i64 least(i64 a, i64 b) { return a < b ? a : b; }

__device__ __forceinline__ Reach keys_of(const Problem &p, i64 b, i64 i) {
    i64 at = i + p.offset;
    Reach r = {0, p.keys, nullptr, 0, 0};
    if (p.causal) r.high = least(r.high, at + 1);
    if (p.windowed) {
        r.low = most(r.low, at - p.left);
        r.high = least(r.high, at + p.right + 1);
    }
    if (p.lengths) r.high = least(r.high, p.lengths[b]);
    r.count = most(r.high - r.low, 0);
    if (p.row_start) {
        r.first = p.row_start[i];
        r.list = p.row_keys + r.first;
        r.count = (i64)(p.row_start[i + 1] - r.first);
    }
    return r;
}

__device__ __forceinline__ Reach queries_of(const Problem &p, i64 b, i64 j) {
    i64 at = j - p.offset;
    Reach r = {0, p.queries, nullptr, 0, 0};
    if (p.causal) r.low = most(r.low, at);
    if (p.windowed) {
        r.low = most(r.low, at - p.right);
        r.high = least(r.high, at + p.left + 1);
    }
    if (p.lengths && j >= p.lengths[b]) r.high = 0;
    r.count = most(r.high - r.low, 0);
    if (p.row_start) {
        r.first = p.column_start[j];
        r.list = p.column_queries + r.first;
        r.count = (i64)(p.column_start[j + 1] - r.first);
    }
    return r;
}

__device__ __forceinline__ i64 position(const Reach &r, i64 t) {
    return r.list ? (i64)r.list[t] : r.low + t;
}

// Whether query i may look at key j, which `at`, the position of either in its reach, is left to say.
__device__ __forceinline__ bool visible(const Problem &p, const Reach &r, i64 at, i64 b, i64 h, i64 i, i64 j) {
    if (at < r.low || at >= r.high) return false;
    if (p.q_segments && p.q_segments[b * p.queries + i] != p.k_segments[b * p.keys + j]) return false;
    const u8 *dense = (const u8 *)p.dense.data;
    return !dense || dense[b * p.dense.b + h * p.dense.h + i * p.dense.q + j * p.dense.k];
}

__device__ __forceinline__ i64 relative_index(const Problem &p, i64 h, i64 distance) {
    i64 clamped = most(least(distance, p.max_distance), -p.max_distance);
    return h * p.relative_head + clamped + p.max_distance;
}

__device__ __forceinline__ T bias_at(const Problem &p, i64 b, i64 h, i64 i, i64 j) {
    i64 distance = j - (i + p.offset);
    T sum = 0;
    if (p.key_bias.data) {
        const Spread &s = p.key_bias;
        sum += ((const T *)s.data)[b * s.b + h * s.h + j * s.k];
    }
    if (p.full_bias.data) {
        const Spread &s = p.full_bias;
        sum += ((const T *)s.data)[b * s.b + h * s.h + i * s.q + j * s.k];
    }
    if (p.alibi) sum -= p.alibi[h] * (T)(distance < 0 ? -distance : distance);
    if (p.relative) sum += p.relative[relative_index(p, h, distance)];
    return sum;
}

// What dropout multiplies a weight by; `head` counts batch items times heads.
__device__ __forceinline__ T keep_factor(const Problem &p, i64 head, i64 i, i64 j) {
    if (!p.dropped) return (T)1;
    u32 word = random_word(p.dropout_seed, 0, (u32)head, (u32)i, (u32)j);
    return word < (u32)p.dropped_below ? (T)0 : (T)p.kept;
}

// What dropout draws by at an edge, or at a key where there are no edges.
__device__ __forceinline__ i64 draw_of(const Problem &p, u64 edge, i64 j) {
    return p.row_draws ? (i64)p.row_draws[edge] : j;
}

// Gumbel's noise, by which the largest of score + noise is a draw from the softmax.
__device__ __forceinline__ T gumbel(const Problem &p, i64 head, i64 i, i64 j) {
    T u = (T)uniform(random_word(p.sample_seed, 1, (u32)head, (u32)i, (u32)j));
    return -log(-log(u));
}

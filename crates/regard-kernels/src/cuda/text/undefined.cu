// Rows that came out NaN, again and number by number: tensor cores multiply what a row does not see by 0,
// and 0 times NaN or an infinity is NaN.

#ifndef MOST_CHUNKS
#define MOST_CHUNKS 4 // of 32 features
#endif

__device__ __forceinline__ float product_of(const E *x, const E *y, i64 width) {
    float sum = 0;
#pragma unroll 1
    for (i64 d = 0; d < width; d++) sum += widen(x[d]) * widen(y[d]);
    return sum;
}

// A pair's score in powers of two, or what a threshold is taken from.
__device__ __forceinline__ float score_of(const Problem &p, i64 b, i64 h, i64 i, i64 j) {
    i64 hk = h / (p.heads / p.key_heads);
    float score = product_of(p.q.data + b * p.q.b + h * p.q.h + i * p.q.n, p.k.data + b * p.k.b + hk * p.k.h + j * p.k.n, p.width);
#if RELATIVE
    float bias = bias_at(p, b, h, i, j);
    if (bias == NEG_INF) return NEG_INF; // hides its key, whatever that is
    score = (score * (float)p.scale + bias) * LOG2_E;
#endif
    return score * SCALE2(p);
}

// A warp's sums of a row's numbers: a lane has every 32nd.
struct Sums {
    float of[MOST_CHUNKS] = {};
    i64 width;
    __device__ __forceinline__ Sums(i64 width) : width(width) {}

    __device__ __forceinline__ void add(float factor, const E *row) {
#pragma unroll
        for (int c = 0; c < MOST_CHUNKS; c++)
            if (lane_id() + WARP * c < width) of[c] += factor * widen(row[lane_id() + WARP * c]);
    }

    // Whether nothing that is added can change anything.
    __device__ __forceinline__ bool undefined() const {
        bool all = true;
#pragma unroll
        for (int c = 0; c < MOST_CHUNKS; c++) all = all && (lane_id() + WARP * c >= width || of[c] != of[c]);
        return __all_sync(ALL, all);
    }

    __device__ __forceinline__ void store(E *row, float factor) const {
#pragma unroll
        for (int c = 0; c < MOST_CHUNKS; c++)
            if (lane_id() + WARP * c < width) row[lane_id() + WARP * c] = narrow(of[c] * factor);
    }
};

// An output's row again, by a warp: `statistic` is the row's log-sum-exp in powers of two, or its threshold.
__device__ __forceinline__ void output_again(const Problem &p, const Forward &o, int b, int h, int i, float statistic) {
    Reach reach = keys_of(p, b, i);
    const E *v = p.v.data + b * p.v.b + h / (int)(p.heads / p.key_heads) * p.v.h;
    Sums sums(p.value_width);
#pragma unroll 1
    for (i64 j0 = reach.low; j0 < reach.high && !sums.undefined(); j0 += WARP) {
        i64 j = j0 + lane_id();
        float score = j < reach.high && visible(p, reach, j, b, h, i, j) ? score_of(p, b, h, i, j) : NEG_INF;
        bool sees = score != NEG_INF; // a score of −∞ hides its key
        float weight = sees ? weight_of(above(score - statistic)) : 0.0f;
        u32 seen = __ballot_sync(ALL, sees);
#pragma unroll 1
        for (int n = 0; n < WARP; n++)
            if (seen >> n & 1) sums.add(__shfl_sync(ALL, weight, n), v + (j0 + n) * p.v.n);
    }
    sums.store(o.out.data + b * o.out.b + h * o.out.h + i * o.out.n, 1);
}

#if defined(SPLIT) || RELATIVE
// A row again from its scores on, by a warp: of an infinity, or of a number that bf16 rounds to one, the parts
// make NaN whatever the formula gives; and so does a key that is no number where a bias of −∞ hides it.
__device__ __forceinline__ void row_again(const Problem &p, const Forward &o, int b, int h, int i) {
    Reach reach = keys_of(p, b, i);
    const E *v = p.v.data + b * p.v.b + h / (int)(p.heads / p.key_heads) * p.v.h;
    i64 row = ((i64)b * p.heads + h) * p.queries + i;
    E *out = o.out.data + b * o.out.b + h * o.out.h + i * o.out.n;
    auto score_at = [&](i64 j) { return j < reach.high && visible(p, reach, j, b, h, i, j) ? score_of(p, b, h, i, j) : NEG_INF; };
    float top = NEG_INF;
    bool undefined = false;
#pragma unroll 1
    for (i64 j0 = reach.low; j0 < reach.high && !undefined; j0 += WARP) {
        float score = score_at(j0 + lane_id());
        top = fmaxf(top, score);
        // +∞ less itself is NaN too.
        undefined = __any_sync(ALL, score != score || score == -NEG_INF);
    }
    top = warp_max(top);
    float total = undefined ? NOT_A_NUMBER : 0.0f;
    Sums sums(p.value_width);
#pragma unroll 1
    for (i64 j0 = reach.low; j0 < reach.high && !undefined; j0 += WARP) {
        float score = score_at(j0 + lane_id()), weight = score == NEG_INF ? 0.0f : exp2_fast(score - top);
        total += weight;
        u32 seen = __ballot_sync(ALL, score != NEG_INF);
#pragma unroll 1
        for (int n = 0; n < WARP; n++)
            if (seen >> n & 1) sums.add(__shfl_sync(ALL, weight, n), v + (j0 + n) * p.v.n);
    }
    total = warp_sum(total);
    if (undefined) {
        for (int d = lane_id(); d < p.value_width; d += WARP) out[d] = NOT_A_NUMBER;
    } else {
        sums.store(out, total == 0 ? 0.0f : 1 / total);
    }
    if (o.lse && lane_id() == 0) o.lse[row] = total == 0 ? NEG_INF : top * LN2 + logf(total);
}
#endif

// Whether a row can have keys that it does not see.
__device__ __forceinline__ bool hides(const Problem &p) { return p.causal || p.windowed || p.lengths || p.q_segments; }

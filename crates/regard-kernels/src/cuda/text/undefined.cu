// Rows that came out NaN, again and number by number: tensor cores multiply what a row does not see by 0,
// and 0 times NaN or an infinity is NaN.

#define MOST_CHUNKS 4 // of 32 features

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
    score = (score * (float)p.scale + bias_at(p, b, h, i, j)) * LOG2_E;
#endif
    return score * SCALE2(p);
}

// A warp's sums of a row's numbers: a lane has every 32nd.
struct Sums {
    float of[MOST_CHUNKS] = {0, 0, 0, 0};
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
        bool sees = j < reach.high && visible(p, reach, j, b, h, i, j);
        float weight = sees ? weight_of(above(score_of(p, b, h, i, j) - statistic)) : 0.0f;
        u32 seen = __ballot_sync(ALL, sees);
#pragma unroll 1
        for (int n = 0; n < WARP; n++)
            if (seen >> n & 1) sums.add(__shfl_sync(ALL, weight, n), v + (j0 + n) * p.v.n);
    }
    sums.store(o.out.data + b * o.out.b + h * o.out.h + i * o.out.n, 1);
}

// Whether a row can have keys that it does not see.
__device__ __forceinline__ bool hides(const Problem &p) { return p.causal || p.windowed || p.lengths || p.q_segments; }

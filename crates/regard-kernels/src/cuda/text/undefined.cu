// Rows that came out NaN, again and number by number: tensor cores multiply what a row does not see by 0,
// and 0 times NaN or an infinity is NaN.

#define MOST_CHUNKS 4 // of 32 features

// A row again, by a warp: `statistic` is the row's log-sum-exp in powers of two, or its threshold.
__device__ __forceinline__ void compute_again(const Problem &p, const Forward &o, int b, int h, int i, float statistic) {
    int lane = lane_id(), hk = h / (int)(p.heads / p.key_heads);
    Reach reach = keys_of(p, b, i);
    const E *q = p.q.data + b * p.q.b + h * p.q.h + i * p.q.n;
    const E *k = p.k.data + b * p.k.b + hk * p.k.h, *v = p.v.data + b * p.v.b + hk * p.v.h + lane;
    float sums[MOST_CHUNKS] = {0, 0, 0, 0};
#pragma unroll 1
    for (i64 j0 = reach.low; j0 < reach.high; j0 += WARP) {
        i64 j = j0 + lane;
        float weight = NEG_INF; // not seen
        if (j < reach.high && visible(p, reach, j, b, h, i, j)) {
            float score = 0;
#pragma unroll 1
            for (i64 d = 0; d < p.width; d++) score += widen(q[d]) * widen(k[j * p.k.n + d]);
#if RELATIVE
            score = (score * (float)p.scale + bias_at(p, b, h, i, j)) * LOG2_E;
#endif
            weight = weight_of(above(score * SCALE2(p) - statistic));
        }
#pragma unroll 1
        for (int n = 0; n < WARP && j0 + n < reach.high; n++) {
            float w = __shfl_sync(ALL, weight, n);
#pragma unroll
            for (int c = 0; c < MOST_CHUNKS; c++)
                if (w != NEG_INF && lane + WARP * c < p.value_width) sums[c] += w * widen(v[(j0 + n) * p.v.n + WARP * c]);
        }
    }
    E *to = o.out.data + b * o.out.b + h * o.out.h + i * o.out.n + lane;
#pragma unroll
    for (int c = 0; c < MOST_CHUNKS; c++)
        if (lane + WARP * c < p.value_width) to[WARP * c] = narrow(sums[c]);
}

// Whether a row can have keys that it does not see.
__device__ __forceinline__ bool hides(const Problem &p) { return p.causal || p.windowed || p.lengths || p.q_segments; }

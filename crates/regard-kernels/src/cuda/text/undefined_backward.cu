// Rows of gradients that came out NaN, again and number by number: see undefined.cu.

// A pair's weight, and the gradient of its score; a score of −∞ hides its key.
struct Pair {
    float weight, grad;
    bool there;
};

__device__ __forceinline__ Pair pair_of(const Problem &p, const Backward &g, const Dot &t, i64 b, i64 h, i64 i, i64 j) {
    i64 hk = h / (p.heads / p.key_heads), row = (b * p.heads + h) * t.padded + i;
    float score = score_of(p, b, h, i, j), x = above(score - t.lse2[row]);
    float grad = product_of(g.grad_out.data + b * g.grad_out.b + h * g.grad_out.h + i * g.grad_out.n, p.v.data + b * p.v.b + hk * p.v.h + j * p.v.n, p.value_width);
    return {weight_of(x), slope_of(x) * (grad - t.deltas[row]), score != NEG_INF};
}

__device__ __forceinline__ void query_again(const Problem &p, const Backward &g, const Dot &t, i64 b, i64 h, i64 i) {
    Reach reach = keys_of(p, b, i);
    const E *k = p.k.data + b * p.k.b + h / (p.heads / p.key_heads) * p.k.h;
    Sums sums(p.width);
#pragma unroll 1
    for (i64 j0 = reach.low; j0 < reach.high && !sums.undefined(); j0 += WARP) {
        i64 j = j0 + lane_id();
        bool sees = j < reach.high && visible(p, reach, j, b, h, i, j);
        Pair pair = {0, 0, false};
        if (sees) pair = pair_of(p, g, t, b, h, i, j);
        u32 seen = __ballot_sync(ALL, pair.there);
#pragma unroll 1
        for (int n = 0; n < WARP; n++)
            if (seen >> n & 1) sums.add(__shfl_sync(ALL, pair.grad, n), k + (j0 + n) * p.k.n);
    }
    sums.store(g.grad_q.data + b * g.grad_q.b + h * g.grad_q.h + i * g.grad_q.n, (float)p.scale);
}

__device__ __forceinline__ void key_again(const Problem &p, const Backward &g, const Dot &t, i64 b, i64 hk, i64 j) {
    Reach reach = queries_of(p, b, j);
    i64 group = p.heads / p.key_heads;
    Sums of_key(p.width), of_value(p.value_width);
#pragma unroll 1
    for (i64 h = hk * group; h < (hk + 1) * group; h++) {
        const E *q = p.q.data + b * p.q.b + h * p.q.h, *grad = g.grad_out.data + b * g.grad_out.b + h * g.grad_out.h;
#pragma unroll 1
        for (i64 i0 = reach.low; i0 < reach.high && !(of_key.undefined() && of_value.undefined()); i0 += WARP) {
            i64 i = i0 + lane_id();
            bool sees = i < reach.high && visible(p, reach, i, b, h, i, j);
            Pair pair = {0, 0, false};
            if (sees) pair = pair_of(p, g, t, b, h, i, j);
            u32 seen = __ballot_sync(ALL, pair.there);
#pragma unroll 1
            for (int n = 0; n < WARP; n++) {
                if (!(seen >> n & 1)) continue;
                of_key.add(__shfl_sync(ALL, pair.grad, n), q + (i0 + n) * p.q.n);
                of_value.add(__shfl_sync(ALL, pair.weight, n), grad + (i0 + n) * g.grad_out.n);
            }
        }
    }
    if (g.grad_k.data) of_key.store(g.grad_k.data + b * g.grad_k.b + hk * g.grad_k.h + j * g.grad_k.n, (float)p.scale);
    if (g.grad_v.data) of_value.store(g.grad_v.data + b * g.grad_v.b + hk * g.grad_v.h + j * g.grad_v.n, 1);
}

// Which of a warpgroup's keys from `first` on have gradients that came out NaN.
template <int N, int M> __device__ __forceinline__ void note_undefined_keys(const Problem &p, const Dot &t, int b, int hk, int first, const float (&of_key)[N], const float (&of_value)[M]) {
    if (!t.undefined_keys) return;
    float *to = t.undefined_keys + ((i64)b * p.key_heads + hk) * p.keys + first;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int row = own_row() + 8 * r, undefined = is_undefined(of_key, r) | is_undefined(of_value, r); // never one alone: a warp's threads ask each other
        if (threadIdx.x % 4 == 0 && first + row < p.keys) to[row] = undefined ? 0.0f : NOT_A_NUMBER;
    }
}

extern "C" __global__ void __launch_bounds__(128, 1) undefined_gradients(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ Dot t) {
    if (g.grad_q.data) each_undefined(t.statistics, p.batch * p.heads * p.queries, [&](i64 row, float) {
        i64 head = row / p.queries;
        query_again(p, g, t, head / p.heads, head % p.heads, row % p.queries);
    });
    if (g.grad_k.data || g.grad_v.data) each_undefined(t.undefined_keys, p.batch * p.key_heads * p.keys, [&](i64 row, float) {
        i64 head = row / p.keys;
        key_again(p, g, t, head / p.key_heads, head % p.key_heads, row % p.keys);
    });
}

// Forward in general tiles: a running softmax, or weights as they come; a second walk writes the weights where they are
// asked for.

#if NORMALIZER == SOFTMAX
// The running softmax of one row: weights up to a factor, and by how much what was summed before is to be multiplied.
__device__ __forceinline__ float take_row(float (&s)[KEYS / 2], int r, float &top, float &total) {
    float high = top;
#pragma unroll
    for (int n = 2 * r; n < KEYS / 2; n += 4) high = fmaxf(high, fmaxf(s[n], s[n + 1]));
    high = fmaxf(high, __shfl_xor_sync(ALL, high, 1));
    high = fmaxf(high, __shfl_xor_sync(ALL, high, 2));
    // A row that has seen nothing yet: its weights are 0 whatever is subtracted.
    float from = high == NEG_INF ? 0.0f : high, factor = EXP(top - from), sum = 0;
#pragma unroll
    for (int n = 2 * r; n < KEYS / 2; n += 4) {
        s[n] = EXP(s[n] - from), s[n + 1] = EXP(s[n + 1] - from);
        sum += s[n] + s[n + 1];
    }
    total = total * factor + sum;
    top = high;
    return factor;
}
#endif

#if HAS_DROPOUT
__device__ __forceinline__ void drop_weights(const Problem &p, const Line (&lines)[2], float (&s)[KEYS / 2], int first) {
    each_pair(p, lines, first, [&](int at, int, int, bool dropped) {
        if (dropped) s[at] *= 0; // NaN stays
    });
}
#endif

// A row whose output came out NaN, again by a warp: tensor cores multiply what a row does not see by 0, and parts of
// infinities by zeros.
__device__ void output_row_again(const Problem &p, const Forward &o, const Line &l) {
    float top = NEG_INF, total = 0;
#if NORMALIZER == SOFTMAX
    bool undefined = false;
    for (int j = l.low + lane_id(); j < l.high; j += WARP) {
        float score = plain_score(p, l, j);
        undefined |= score != score;
        top = larger(top, score);
    }
    top = warp_max(top);
    undefined = __any_sync(ALL, undefined) || top == -NEG_INF;
    float from = top == NEG_INF ? 0.0f : top;
    for (int j = l.low + lane_id(); j < l.high && !undefined; j += WARP) total += EXP(plain_score(p, l, j) - from);
    total = undefined ? NOT_A_NUMBER : warp_sum(total);
    float factor = total == 0 ? 0.0f : 1 / total;
    if (lane_id() == 0 && o.lse) o.lse[l.row(p)] = total == 0 ? NEG_INF : top * (1 / UNIT) + logf(total);
#else
    float from = 0, factor = 1;
    bool undefined = false;
#endif
    Sums sums(p.value_width);
    const E *v = p.v.data + l.b * p.v.b + l.h / (p.heads / p.key_heads) * p.v.h;
    for (int j0 = l.low; j0 < l.high && !sums.undefined(); j0 += WARP) {
        int j = j0 + lane_id();
        float score = j < l.high ? plain_score(p, l, j) : NEG_INF;
        float weight = undefined ? NOT_A_NUMBER : weight_at(score, from) * factor * keep_factor(p, l.b * p.heads + l.h, l.i, j);
        u32 seen = __ballot_sync(ALL, !(score == NEG_INF));
        for (int n = 0; n < WARP; n++)
            if (seen >> n & 1) sums.add(__shfl_sync(ALL, weight, n), v + (j0 + n) * p.v.n);
    }
    sums.store(o.out.data + l.b * o.out.b + l.h * o.out.h + l.i * o.out.n, 1);
}

extern "C" __global__ void __launch_bounds__(THREADS) tile_forward(const __grid_constant__ Problem p, const __grid_constant__ Forward o, const __grid_constant__ Tile t) {
    SHARED_MEMORY(memory);
    Walk walk(p, queries_of_block(p, t), memory);
    walk.load_queries(p);
    float out[TILES_EACH][VALUES / 2], top[TILES_EACH][2], total[TILES_EACH][2];
#pragma unroll
    for (int m = 0; m < TILES_EACH; m++) {
#pragma unroll
        for (int n = 0; n < VALUES / 2; n++) out[m][n] = 0;
#pragma unroll
        for (int r = 0; r < 2; r++) top[m][r] = NEG_INF, total[m][r] = 0;
    }
    walk.over_keys(p, true, [&](float(&s)[TILES_EACH][KEYS / 2], int first, const u16 *, const u16 *v) {
#pragma unroll
        for (int m = 0; m < TILES_EACH; m++) {
#if NORMALIZER == SOFTMAX
            float factor[2];
#pragma unroll
            for (int r = 0; r < 2; r++) factor[r] = take_row(s[m], r, top[m][r], total[m][r]);
#pragma unroll
            for (int n = 0; n < VALUES / 2; n++) out[m][n] *= factor[n / 2 % 2];
#else
#pragma unroll
            for (int n = 0; n < KEYS / 2; n++) s[m][n] = weight_at(s[m][n], 0);
#endif
#if HAS_DROPOUT
            drop_weights(p, walk.lines[m], s[m], first);
#endif
        }
        multiply_columns<TILES_EACH, KEYS, VALUES>(out, s, v);
    });
#pragma unroll
    for (int m = 0; m < TILES_EACH; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const Line &l = walk.lines[m][r];
            float factor = HAS_DROPOUT ? (float)p.kept : 1.0f;
#if NORMALIZER == SOFTMAX
            float sum = quad_sum(total[m][r]);
            factor = sum == 0 ? 0.0f : factor / sum;
            if (l.there && lane_id() % 4 == 0) {
                if (o.lse) o.lse[l.row(p)] = sum == 0 ? NEG_INF : top[m][r] * (1 / UNIT) + logf(sum);
                if (t.tops) t.tops[l.row(p)] = top[m][r], t.totals[l.row(p)] = sum;
            }
#endif
            E *row = o.out.data + l.b * o.out.b + l.h * o.out.h + l.i * o.out.n;
            if (l.there)
#pragma unroll
                for (int n = 2 * r; n < VALUES / 2; n += 4) store_two(row, own_column(n), p.value_width, out[m][n] * factor, out[m][n + 1] * factor);
            // One row after another, by the whole warp.
            bool odd = is_undefined(p, out[m], r); // lanes ask each other
            u32 again = __ballot_sync(ALL, l.there && odd && lane_id() % 4 == 0);
            __syncwarp();
            for (; again; again &= again - 1) {
                int lane = __ffs(again) - 1;
                output_row_again(p, o, Line(p, __shfl_sync(ALL, l.b, lane), __shfl_sync(ALL, l.h, lane), __shfl_sync(ALL, l.i, lane), true));
            }
        }
}

// The weights, from what forward left of each row.
extern "C" __global__ void __launch_bounds__(THREADS) tile_weights(const __grid_constant__ Problem p, const __grid_constant__ Forward o, const __grid_constant__ Tile t) {
    SHARED_MEMORY(memory);
    Walk walk(p, queries_of_block(p, t), memory);
    walk.load_queries(p);
    float top[TILES_EACH][2], factor[TILES_EACH][2];
#pragma unroll
    for (int m = 0; m < TILES_EACH; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            top[m][r] = 0, factor[m][r] = HAS_DROPOUT ? (float)p.kept : 1.0f;
#if NORMALIZER == SOFTMAX
            i64 row = walk.lines[m][r].row(p);
            top[m][r] = t.tops[row], factor[m][r] /= t.totals[row];
#endif
        }
    walk.over_keys(p, false, [&](float(&s)[TILES_EACH][KEYS / 2], int first, const u16 *, const u16 *) {
#pragma unroll
        for (int m = 0; m < TILES_EACH; m++) {
#pragma unroll
            for (int n = 0; n < KEYS / 2; n++) {
                float score = s[m][n];
                s[m][n] = score == NEG_INF ? 0.0f : weight_at(score, top[m][n / 2 % 2]) * factor[m][n / 2 % 2];
            }
#if HAS_DROPOUT
            drop_weights(p, walk.lines[m], s[m], first);
#endif
#pragma unroll
            for (int n = 0; n < KEYS / 2; n++) {
                const Line &l = walk.lines[m][n / 2 % 2];
                int j = first + own_column(n);
                if (l.there && j < l.high) o.weights[l.row(p) * p.keys + j] = s[m][n];
            }
        }
    });
}

// The whole specification by plain means: a warp has a row, a lane every 32nd feature; a row's
// scores lie in a scratch of the row's own. Where rows are few a block of ROW_WARPS has a row: its warps
// share the keys of scores, and the features of what is summed over keys. Nothing is added to by two
// warps, so the same problem gives the same bits.

#define EACH_VALUE(c) _Pragma("unroll") for (int c = 0; c < VALUE_CHUNKS; c++)

#if ROW_WARPS > 1
#define ROW_THREADS (WARP * ROW_WARPS)
__device__ __forceinline__ int row_part() { return threadIdx.x / WARP; }
__device__ __forceinline__ i64 row_id() { return blockIdx.x; }
__device__ __forceinline__ i64 rows_at_once() { return gridDim.x; }
__device__ __forceinline__ void row_sync() { __syncthreads(); }
#else
#define ROW_THREADS 128
__device__ __forceinline__ int row_part() { return 0; }
__device__ __forceinline__ i64 row_id() { return warp_id(); }
__device__ __forceinline__ i64 rows_at_once() { return warps(); }
__device__ __forceinline__ void row_sync() { __syncwarp(); }
#endif
// Whether a lane's key is one of this warp's, and those of 32 that are.
__device__ __forceinline__ bool is_own_key(int lane) { return lane % ROW_WARPS == row_part(); }
__device__ __forceinline__ u32 own_keys(bool asked) { return __ballot_sync(ALL, asked && is_own_key(lane_id())); }

// The chunks of features that a warp sums, and where they lie.
#define PART_CHUNKS ((CHUNKS + ROW_WARPS - 1) / ROW_WARPS)
#define PART_VALUE_CHUNKS ((VALUE_CHUNKS + ROW_WARPS - 1) / ROW_WARPS)
// Keys whose values are on their way together.
#define KEYS_AT_ONCE (PART_VALUE_CHUNKS > 16 ? 1 : PART_VALUE_CHUNKS > 4 ? 2 : 4)
#define EACH_PART(c) _Pragma("unroll") for (int c = 0; c < PART_CHUNKS; c++)
#define EACH_VALUE_PART(c) _Pragma("unroll") for (int c = 0; c < PART_VALUE_CHUNKS; c++)
__device__ __forceinline__ i64 part_feature(int c, int lane) { return lane + WARP * (row_part() + ROW_WARPS * c); }

template <int N>
__device__ __forceinline__ void load_part(const E *row, i64 width, int lane, T (&to)[N]) {
#pragma unroll
    for (int c = 0; c < N; c++) {
        i64 d = part_feature(c, lane);
        to[c] = d < width ? widen(row[d]) : (T)0;
    }
}

template <int N>
__device__ __forceinline__ void store_part(E *row, i64 width, int lane, const T (&from)[N]) {
#pragma unroll
    for (int c = 0; c < N; c++) {
        i64 d = part_feature(c, lane);
        if (d < width) row[d] = narrow(from[c]);
    }
}

template <int N>
__device__ __forceinline__ void load_row(const E *row, i64 width, int lane, T (&to)[N]) {
#pragma unroll
    for (int c = 0; c < N; c++) {
        i64 d = lane + WARP * c;
        to[c] = d < width ? widen(row[d]) : (T)0;
    }
}

template <int N>
__device__ __forceinline__ void store_row(E *row, i64 width, int lane, const T (&from)[N]) {
#pragma unroll
    for (int c = 0; c < N; c++) {
        i64 d = lane + WARP * c;
        if (d < width) row[d] = narrow(from[c]);
    }
}

__device__ __forceinline__ const E *row_of(const Array &a, i64 b, i64 h, i64 n) {
    return a.data + b * a.b + h * a.h + n * a.n;
}

__device__ __forceinline__ E *row_of(const Result &a, i64 b, i64 h, i64 n) {
    return a.data + b * a.b + h * a.h + n * a.n;
}

__device__ __forceinline__ T dot_values(const T (&a)[VALUE_CHUNKS], const T (&b)[VALUE_CHUNKS]) {
    T sum = 0;
    EACH_VALUE(c) sum += a[c] * b[c];
    return warp_sum(sum);
}

// A row of values that is multiplied by others. Where it is wide it stays where it lies, for registers would not hold it.
#define MOST_HELD 16
#if VALUE_CHUNKS <= MOST_HELD
struct ValueRow {
    T held[VALUE_CHUNKS];
    int lane;
    i64 width;
    __device__ ValueRow(const E *row, i64 width, int lane) : lane(lane), width(width) { load_row(row, width, lane, held); }
    __device__ __forceinline__ T dot(const E *row) const {
        T other[VALUE_CHUNKS];
        load_row(row, width, lane, other);
        return dot_values(held, other);
    }
};
#else
struct ValueRow {
    const E *held;
    int lane;
    i64 width;
    __device__ ValueRow(const E *row, i64 width, int lane) : held(row), lane(lane), width(width) {}
    __device__ __forceinline__ T dot(const E *row) const {
        T sum = 0;
#pragma unroll 8
        for (i64 d = lane; d < width; d += WARP) sum += widen(held[d]) * widen(row[d]);
        return warp_sum(sum);
    }
};
#endif

// What a warp has of a score: its features' share of the gradients by query. `Own` sums those of the learned numbers.
#if ROW_WARPS == 1
typedef Score ScorePart;
#else
struct Own {
    T w[PART_CHUNKS];
    __device__ void clear() { EACH_PART(c) w[c] = 0; }
    __device__ void store(const Problem &p, T *slab, int lane) const {
        EACH_PART(c) {
            i64 d = part_feature(c, lane);
            if (d < OWN_WIDTH(p)) slab[d] = w[c];
        }
    }
};
struct ScorePart {
    T own[PART_CHUNKS];
    __device__ ScorePart(const Problem &p, i64 h, int lane) {
        EACH_PART(c) {
            i64 d = part_feature(c, lane);
            own[c] = d < p.width ? own_number(p, h, d) : (T)0;
        }
    }
    __device__ __forceinline__ void by_query(const T (&q)[PART_CHUNKS], const T (&k)[PART_CHUNKS], T grad, T (&gq)[PART_CHUNKS], Own &sums) const {
        EACH_PART(c) one_by_query(own[c], q[c], k[c], grad, gq[c], sums.w[c]);
    }
};
#endif

// One query of one head.
struct Row {
    i64 b, h, hk, i, at;
    __device__ Row(const Problem &p, i64 row)
        : b(row / p.queries / p.heads), h(row / p.queries % p.heads),
          hk(h / (p.heads / p.key_heads)), i(row % p.queries), at(row) {}
    __device__ i64 head(const Problem &p) const { return b * p.heads + h; }
};

// The scores of a row into scratch, in the order of its reach; −∞ where the mask forbids.
__device__ void scores_of_row(const Problem &p, const Row &r, const Reach &reach, const Score &score,
                              const T (&q)[CHUNKS], T *scratch, int lane) {
    for (i64 base = 0; base < reach.count; base += WARP) {
        i64 t = base + lane;
        i64 j = t < reach.count ? position(reach, t) : 0;
        bool seen = t < reach.count && visible(p, reach, j, r.b, r.h, r.i, j);
        T mine = NEG_INF;
        for (u32 left = own_keys(seen); left; left &= left - 1) {
            int n = __ffs(left) - 1;
            T k[CHUNKS];
            load_row(row_of(p.k, r.b, r.hk, __shfl_sync(ALL, j, n)), p.width, lane, k);
            T s = score.of(q, k);
            if (lane == n) mine = s;
        }
        if (seen) mine += bias_at(p, r.b, r.h, r.i, j);
        if (t < reach.count && is_own_key(lane)) scratch[t] = mine;
    }
    row_sync();
}

// The threshold of sparsemax, of scores with their largest taken away: Newton's steps from below,
// which end where the support does not change.
__device__ T sparsemax_threshold(const T *scores, i64 count, T top, int lane) {
    T tau = -1;
    for (int step = 0; step < 64; step++) {
        T sum = 0, n = 0;
        for (i64 t = lane; t < count; t += WARP) {
            T z = scores[t] - top;
            if (z > tau) sum += z, n += 1;
        }
        sum = warp_sum(sum), n = warp_sum(n);
        T next = (sum - 1) / n;
        if (!(next > tau)) break;
        tau = next;
    }
    return tau;
}

// The same for entmax with α = 1.5, of halved scores; the last word is the closed form on the
// support that Newton's steps found.
__device__ T entmax_threshold(const T *scores, i64 count, T top, int lane) {
    T tau = -1;
    for (int step = 0; step < 64; step++) {
        T sum = 0, squares = 0;
        for (i64 t = lane; t < count; t += WARP) {
            T z = (scores[t] - top) * (T)0.5 - tau;
            if (z > 0) sum += z, squares += z * z;
        }
        sum = warp_sum(sum), squares = warp_sum(squares);
        T next = tau + (squares - 1) / (2 * sum);
        if (!(next > tau)) break;
        tau = next;
    }
    T sum = 0, squares = 0, n = 0;
    for (i64 t = lane; t < count; t += WARP) {
        T z = (scores[t] - top) * (T)0.5;
        if (z > tau) sum += z, n += 1;
    }
    sum = warp_sum(sum), n = warp_sum(n);
    T mean = sum / n;
    for (i64 t = lane; t < count; t += WARP) {
        T z = (scores[t] - top) * (T)0.5;
        if (z > tau) squares += (z - mean) * (z - mean);
    }
    squares = warp_sum(squares);
    T inside = (1 - squares) / n;
    return mean - sqrt(inside > 0 ? inside : (T)0);
}

// From a row's scores to its weights.
struct Weights {
    T top, total, tau, lse;
    i64 chosen;
    T chosen_score;
    bool empty, undefined;

    __device__ Weights(const Problem &p, const Row &r, const Reach &reach, const T *scores, bool wants_lse, int lane)
        : total(0), tau(0), chosen(-1), chosen_score(NEG_INF) {
        T mine = NEG_INF;
        bool any = false, odd = false;
        for (i64 t = lane; t < reach.count; t += WARP) {
            T s = scores[t];
            mine = larger(mine, s);
            any |= !(s == NEG_INF);
            odd |= s != s;
        }
        top = warp_max(mine);
        empty = !__any_sync(ALL, any);
        undefined = __any_sync(ALL, odd) || top == -NEG_INF;
        lse = NEG_INF;
        if (empty) return;
        if (wants_lse || p.normalizer == SOFTMAX || is_hard(p)) {
            for (i64 t = lane; t < reach.count; t += WARP) total += exp(scores[t] - top);
            total = warp_sum(total);
            lse = top + log(total);
        }
        if (p.normalizer == SPARSEMAX) tau = undefined ? NOT_A_NUMBER : sparsemax_threshold(scores, reach.count, top, lane);
        if (p.normalizer == ENTMAX15) tau = undefined ? NOT_A_NUMBER : entmax_threshold(scores, reach.count, top, lane);
        if (is_hard(p)) choose(p, r, reach, scores, lane);
    }

    // The first of the largest.
    __device__ void choose(const Problem &p, const Row &r, const Reach &reach, const T *scores, int lane) {
        T best = NEG_INF, its_score = NEG_INF;
        i64 index = -1;
        for (i64 t = lane; t < reach.count; t += WARP) {
            T s = scores[t];
            i64 j = position(reach, t);
            T noisy = p.normalizer == SAMPLE ? s + gumbel(p, r.head(p), r.i, j) : s;
            if (noisy > best) best = noisy, its_score = s, index = j;
        }
        for (int step = WARP / 2; step > 0; step /= 2) {
            T other = __shfl_xor_sync(ALL, best, step), other_score = __shfl_xor_sync(ALL, its_score, step);
            i64 other_index = __shfl_xor_sync(ALL, index, step);
            bool wins = other > best || (other == best && other_index >= 0 && (index < 0 || other_index < index));
            if (wins) best = other, its_score = other_score, index = other_index;
        }
        chosen = index, chosen_score = its_score;
    }

    // The weight of a score that is not −∞, before dropout.
    __device__ T of(const Problem &p, T s, i64 j) const {
        switch (p.normalizer) {
        case SOFTMAX: return exp(s - top) / total;
        case SPARSEMAX: {
            T z = (s - top) - tau;
            return z > 0 ? z : tau != tau ? tau : (T)0;
        }
        case ENTMAX15: {
            T z = (s - top) * (T)0.5 - tau;
            return z > 0 ? z * z : tau != tau ? tau : (T)0;
        }
        case SIGMOID: return 1 / (1 + exp(-s));
        case PLAIN: return s;
        default: return j == chosen ? (T)1 : (T)0;
        }
    }
};

extern "C" __global__ void __launch_bounds__(ROW_THREADS) forward(const __grid_constant__ Problem p, const __grid_constant__ Forward o) {
    int lane = lane_id();
    T *scratch = o.scratch + row_id() * o.scratch_row;
    i64 rows = p.batch * p.heads * p.queries;
    for (i64 at = row_id(); at < rows; at += rows_at_once()) {
        Row r(p, at);
        Reach reach = keys_of(p, r.b, r.i);
        Score score(p, r.h, lane);
        T q[CHUNKS];
        load_row(row_of(p.q, r.b, r.h, r.i), p.width, lane, q);
        scores_of_row(p, r, reach, score, q, scratch, lane);
        Weights w(p, r, reach, scratch, o.lse || o.log_prob, lane);
        T out[PART_VALUE_CHUNKS];
        EACH_VALUE_PART(c) out[c] = 0;
        for (i64 base = 0; base < reach.count; base += WARP) {
            i64 t = base + lane;
            T s = t < reach.count ? scratch[t] : NEG_INF;
            i64 j = t < reach.count ? position(reach, t) : 0;
            bool seen = !(s == NEG_INF);
            T weight = seen ? w.of(p, s, j) * keep_factor(p, r.head(p), r.i, draw_of(p, reach.first + t, j)) : (T)0;
            if (o.weights && seen && is_own_key(lane)) o.weights[at * p.keys + j] = weight;
            if (o.edge_weights && t < reach.count && is_own_key(lane)) o.edge_weights[r.head(p) * p.edges + reach.first + t] = weight;
            bool counts = is_hard(p) ? seen && j == w.chosen : seen;
            for (u32 left = __ballot_sync(ALL, counts); left;) {
                T v[KEYS_AT_ONCE][PART_VALUE_CHUNKS], x[KEYS_AT_ONCE];
                int some = least((i64)__popc(left), (i64)KEYS_AT_ONCE);
#pragma unroll
                for (int key = 0; key < KEYS_AT_ONCE; key++) {
                    if (key >= some) break;
                    int n = __ffs(left) - 1;
                    left &= left - 1;
                    load_part(row_of(p.v, r.b, r.hk, __shfl_sync(ALL, j, n)), p.value_width, lane, v[key]);
                    x[key] = __shfl_sync(ALL, weight, n);
                }
#pragma unroll
                for (int key = 0; key < KEYS_AT_ONCE; key++)
                    if (key < some) EACH_VALUE_PART(c) out[c] += x[key] * v[key][c];
            }
        }
        store_part(row_of(o.out, r.b, r.h, r.i), p.value_width, lane, out);
        if (lane == 0 && row_part() == 0) {
            if (o.lse) o.lse[at] = w.lse;
            if (o.threshold) o.threshold[at] = w.empty ? (T)0 : w.tau + (p.normalizer == ENTMAX15 ? w.top * (T)0.5 : w.top);
            if (o.index) o.index[at] = w.chosen;
            if (o.log_prob) o.log_prob[at] = w.chosen < 0 ? (T)0 : w.chosen_score - w.lse;
        }
        row_sync();
    }
}

// What forward left of a row, and what arrives at it.
struct Arrived {
    T lse, threshold, delta, grad_log_prob, grad_lse;
    i64 index;
    __device__ Arrived(const Backward &g, i64 row)
        : lse(g.lse ? g.lse[row] : (T)0), threshold(g.threshold ? g.threshold[row] : (T)0), delta(0),
          grad_log_prob(g.grad_log_prob ? g.grad_log_prob[row] : (T)0),
          grad_lse(g.grad_lse ? g.grad_lse[row] : (T)0), index(g.index ? g.index[row] : -1) {}

    __device__ T weight(const Problem &p, T s, i64 j) const {
        switch (p.normalizer) {
        case SOFTMAX: return exp(s - lse);
        case SPARSEMAX: {
            T z = s - threshold;
            return z > 0 || z != z ? z : (T)0;
        }
        case ENTMAX15: {
            T z = s * (T)0.5 - threshold;
            return z > 0 || z != z ? z * z : (T)0;
        }
        case SIGMOID: return 1 / (1 + exp(-s));
        case PLAIN: return s;
        default: return j == index ? (T)1 : (T)0;
        }
    }

    // The derivative's diagonal of the normalizers that center.
    __device__ T diagonal(const Problem &p, T weight) const {
        if (p.normalizer == SPARSEMAX) return weight > 0 ? (T)1 : weight;
        if (p.normalizer == ENTMAX15) return sqrt(weight);
        return weight;
    }

    // From the gradient of a weight to that of its score.
    __device__ T grad_score(const Problem &p, T s, T weight, T grad, i64 j) const {
        if (p.normalizer == SOFTMAX) return weight * (grad - delta + grad_lse);
        if (p.normalizer == SIGMOID) return weight * (1 - weight) * grad;
        if (p.normalizer == PLAIN) return grad;
        if (is_hard(p)) {
            if (grad_log_prob == 0 && grad_lse == 0) return 0;
            T soft = exp(s - lse), here = j == index ? (T)1 : (T)0;
            return (index < 0 ? (T)0 : grad_log_prob * (here - soft)) + grad_lse * soft;
        }
        return diagonal(p, weight) * (grad - delta);
    }
};

// What arrives at a weight besides what the output sends back.
__device__ __forceinline__ T arriving_at(const Problem &p, const Backward &g, i64 row, i64 head, i64 j, u64 edge) {
    T sum = 0;
    if (g.grad_weights) sum += g.grad_weights[row * p.keys + j];
    if (g.grad_edge_weights) sum += g.grad_edge_weights[head * p.edges + edge];
    return sum;
}

// The gradients of a row's weights, keep factors included, into scratch.
__device__ void weight_grads_of_row(const Problem &p, const Backward &g, const Row &r, const Reach &reach,
                                    const T *scores, const ValueRow &grad, T *to, int lane) {
    for (i64 base = 0; base < reach.count; base += WARP) {
        i64 t = base + lane;
        i64 j = t < reach.count ? position(reach, t) : 0;
        bool seen = t < reach.count && !(scores[t] == NEG_INF);
        T mine = 0;
        for (u32 left = own_keys(seen); left; left &= left - 1) {
            int n = __ffs(left) - 1;
            T x = grad.dot(row_of(p.v, r.b, r.hk, __shfl_sync(ALL, j, n)));
            if (lane == n) mine = x;
        }
        if (seen && is_own_key(lane)) {
            mine += arriving_at(p, g, r.at, r.head(p), j, reach.first + t);
            to[t] = mine * keep_factor(p, r.head(p), r.i, draw_of(p, reach.first + t, j));
        }
    }
    row_sync();
}

// Σ g·dp / Σ g, with g the derivative's diagonal; softmax has it from what forward left.
__device__ T delta_of_row(const Problem &p, const Backward &g, const Row &r, const Reach &reach, const Arrived &a,
                          const T *scores, const T *weight_grads, const ValueRow &grad, int lane) {
    T weighted = 0, sum = 0;
    bool extra = g.grad_weights || g.grad_edge_weights;
    if (p.normalizer != SOFTMAX || extra) {
        for (i64 t = lane; t < reach.count; t += WARP) {
            T s = scores[t];
            if (s == NEG_INF) continue;
            i64 j = position(reach, t);
            T weight = a.weight(p, s, j);
            if (p.normalizer == SOFTMAX) {
                T keep = keep_factor(p, r.head(p), r.i, draw_of(p, reach.first + t, j));
                weighted += weight * keep * arriving_at(p, g, r.at, r.head(p), j, reach.first + t);
            } else {
                T slope = a.diagonal(p, weight);
                weighted += slope * weight_grads[t];
                sum += slope;
            }
        }
    }
    weighted = warp_sum(weighted), sum = warp_sum(sum);
    if (p.normalizer != SOFTMAX) return sum == 0 ? (T)0 : weighted / sum;
    return weighted + grad.dot(row_of(g.out, r.b, r.h, r.i));
}

// Adds the gradients of 32 scores to a table by distance. Within its reach every key has an entry
// of its own; beyond it all share one.
__device__ void add_relative(const Problem &p, T *slab, i64 distance, bool seen, T grad, int lane) {
    bool low = seen && distance <= -p.max_distance, high = seen && !low && distance >= p.max_distance;
    if (seen && !low && !high) slab[distance + p.max_distance] += grad;
    T below = warp_sum(low ? grad : (T)0), above = warp_sum(high ? grad : (T)0);
    __syncwarp();
    if (lane == 0) slab[0] += below;
    if (lane == 0) slab[2 * p.max_distance] += above;
    __syncwarp();
}

// By query: q's gradient, each row's delta, and slabs of what is learned.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) backward_queries(const __grid_constant__ Problem p, const __grid_constant__ Backward g) {
    int lane = lane_id();
    T *scores = g.scratch + row_id() * 2 * g.scratch_row, *grads = scores + g.scratch_row;
    i64 tasks = p.batch * p.heads * g.chunks, per_task = (p.queries + g.chunks - 1) / g.chunks;
    i64 table = 2 * p.max_distance + 1;
    for (i64 task = row_id(); task < tasks; task += rows_at_once()) {
        i64 first = task % g.chunks * per_task, last = least(first + per_task, p.queries);
        Own own;
        own.clear();
        T *relative = g.relative_slabs ? g.relative_slabs + task * table : nullptr;
        for (i64 i = first; i < last; i++) {
            Row r(p, task / g.chunks * p.queries + i);
            Reach reach = keys_of(p, r.b, r.i);
            Score score(p, r.h, lane);
            T q[CHUNKS];
            load_row(row_of(p.q, r.b, r.h, r.i), p.width, lane, q);
            ValueRow grad(row_of(g.grad_out, r.b, r.h, r.i), p.value_width, lane);
            scores_of_row(p, r, reach, score, q, scores, lane);
            weight_grads_of_row(p, g, r, reach, scores, grad, grads, lane);
            Arrived a(g, r.at);
            bool centers = p.normalizer <= ENTMAX15;
            if (centers) a.delta = delta_of_row(p, g, r, reach, a, scores, grads, grad, lane);
            if (lane == 0 && row_part() == 0 && g.delta) g.delta[r.at] = a.delta;
            ScorePart part(p, r.h, lane);
            T q_part[PART_CHUNKS], gq[PART_CHUNKS];
            load_part(row_of(p.q, r.b, r.h, r.i), p.width, lane, q_part);
            EACH_PART(c) gq[c] = 0;
            for (i64 base = 0; base < reach.count; base += WARP) {
                i64 t = base + lane;
                i64 j = t < reach.count ? position(reach, t) : 0;
                T s = t < reach.count ? scores[t] : NEG_INF;
                bool seen = !(s == NEG_INF);
                T ds = seen ? a.grad_score(p, s, a.weight(p, s, j), grads[t], j) : (T)0;
                if (relative && row_part() == 0) add_relative(p, relative, j - (r.i + p.offset), seen, ds, lane);
                for (u32 left = __ballot_sync(ALL, seen); left; left &= left - 1) {
                    int n = __ffs(left) - 1;
                    T k[PART_CHUNKS];
                    load_part(row_of(p.k, r.b, r.hk, __shfl_sync(ALL, j, n)), p.width, lane, k);
                    part.by_query(q_part, k, __shfl_sync(ALL, ds, n), gq, own);
                }
            }
            if (g.grad_q.data) store_part(row_of(g.grad_q, r.b, r.h, r.i), p.width, lane, gq);
            row_sync();
        }
        if (g.own_slabs) own.store(p, g.own_slabs + task * OWN_WIDTH(p), lane);
    }
}

// What a key's warp has of a score: all features, or of wide rows some.
#if KEY_WARPS == 1
#define KEY_THREADS 128
#define KEY_CHUNKS CHUNKS
#define KEY_VALUE_CHUNKS VALUE_CHUNKS
typedef Score KeyScore;
__device__ __forceinline__ i64 key_id() { return warp_id(); }
__device__ __forceinline__ i64 keys_at_once() { return warps(); }
__device__ __forceinline__ int key_part() { return 0; }
__device__ __forceinline__ T key_score(const Score &score, const T (&q)[CHUNKS], const T (&k)[CHUNKS]) { return score.of(q, k); }
__device__ __forceinline__ T key_product(const T (&a)[VALUE_CHUNKS], const T (&b)[VALUE_CHUNKS]) { return dot_values(a, b); }
__device__ __forceinline__ void sum_over_warps(T &score, T &product, int lane) {}
#else
#define KEY_THREADS (WARP * KEY_WARPS)
#define KEY_CHUNKS ((CHUNKS + KEY_WARPS - 1) / KEY_WARPS)
#define KEY_VALUE_CHUNKS ((VALUE_CHUNKS + KEY_WARPS - 1) / KEY_WARPS)
__device__ __forceinline__ i64 key_id() { return blockIdx.x; }
__device__ __forceinline__ i64 keys_at_once() { return gridDim.x; }
__device__ __forceinline__ int key_part() { return threadIdx.x / WARP; }
struct KeyScore {
    T own[KEY_CHUNKS];
    __device__ KeyScore(const Problem &p, i64 h, int lane) {
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++) {
            i64 d = lane + WARP * (key_part() + KEY_WARPS * c);
            own[c] = d < p.width ? own_number(p, h, d) : (T)0;
        }
    }
    __device__ __forceinline__ void by_key(const T (&q)[KEY_CHUNKS], const T (&k)[KEY_CHUNKS], T grad, T (&gk)[KEY_CHUNKS]) const {
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++) one_by_key(own[c], q[c], k[c], grad, gk[c]);
    }
};
// A warp's share of a score, and of a product of values.
__device__ __forceinline__ T key_score(const KeyScore &score, const T (&q)[KEY_CHUNKS], const T (&k)[KEY_CHUNKS]) {
    T sum = 0;
#pragma unroll
    for (int c = 0; c < KEY_CHUNKS; c++) sum += one_score(score.own[c], q[c], k[c]);
    return warp_sum(sum);
}
__device__ __forceinline__ T key_product(const T (&a)[KEY_VALUE_CHUNKS], const T (&b)[KEY_VALUE_CHUNKS]) {
    T sum = 0;
#pragma unroll
    for (int c = 0; c < KEY_VALUE_CHUNKS; c++) sum += a[c] * b[c];
    return warp_sum(sum);
}
// Every warp gets the same sums, in the warps' order.
__device__ __forceinline__ void sum_over_warps(T &score, T &product, int lane) {
    __shared__ T scores[KEY_WARPS][WARP], products[KEY_WARPS][WARP];
    __syncthreads(); // nobody reads those before any more
    scores[key_part()][lane] = score, products[key_part()][lane] = product;
    __syncthreads();
    score = product = 0;
    for (int warp = 0; warp < KEY_WARPS; warp++) score += scores[warp][lane], product += products[warp][lane];
}
#endif

template <int N>
__device__ __forceinline__ void load_of_key(const E *row, i64 width, int lane, T (&to)[N]) {
#pragma unroll
    for (int c = 0; c < N; c++) {
        i64 d = lane + WARP * (key_part() + KEY_WARPS * c);
        to[c] = d < width ? widen(row[d]) : (T)0;
    }
}
template <int N>
__device__ __forceinline__ void store_of_key(E *row, i64 width, int lane, const T (&from)[N]) {
#pragma unroll
    for (int c = 0; c < N; c++) {
        i64 d = lane + WARP * (key_part() + KEY_WARPS * c);
        if (d < width) row[d] = narrow(from[c]);
    }
}

// By key: the gradients of k and v, and each key's sum of its scores' gradients in each head.
extern "C" __global__ void __launch_bounds__(KEY_THREADS) backward_keys(const __grid_constant__ Problem p, const __grid_constant__ Backward g) {
    int lane = lane_id();
    i64 group = p.heads / p.key_heads, keys = p.batch * p.key_heads * p.keys;
    for (i64 at = key_id(); at < keys; at += keys_at_once()) {
        i64 b = at / p.keys / p.key_heads, hk = at / p.keys % p.key_heads, j = at % p.keys;
        Reach reach = queries_of(p, b, j);
        T k[KEY_CHUNKS], gk[KEY_CHUNKS], v[KEY_VALUE_CHUNKS], gv[KEY_VALUE_CHUNKS];
        load_of_key(row_of(p.k, b, hk, j), p.width, lane, k);
        load_of_key(row_of(p.v, b, hk, j), p.value_width, lane, v);
#pragma unroll
        for (int c = 0; c < KEY_CHUNKS; c++) gk[c] = 0;
#pragma unroll
        for (int c = 0; c < KEY_VALUE_CHUNKS; c++) gv[c] = 0;
        for (i64 h = hk * group; h < (hk + 1) * group; h++) {
            KeyScore score(p, h, lane);
            i64 head = b * p.heads + h;
            T sum = 0;
            for (i64 base = 0; base < reach.count; base += WARP) {
                i64 t = base + lane;
                i64 i = t < reach.count ? position(reach, t) : 0;
                bool seen = t < reach.count && visible(p, reach, i, b, h, i, j);
                T s = NEG_INF, x = 0;
                for (u32 left = __ballot_sync(ALL, seen); left; left &= left - 1) {
                    int n = __ffs(left) - 1;
                    i64 query = __shfl_sync(ALL, i, n);
                    T q[KEY_CHUNKS], grad[KEY_VALUE_CHUNKS];
                    load_of_key(row_of(p.q, b, h, query), p.width, lane, q);
                    load_of_key(row_of(g.grad_out, b, h, query), p.value_width, lane, grad);
                    T pair = key_score(score, q, k), dp = key_product(grad, v);
                    if (lane == n) s = pair, x = dp;
                }
                sum_over_warps(s, x, lane);
                T ds = 0, weight = 0;
                if (seen) s += bias_at(p, b, h, i, j);
                seen = seen && !(s == NEG_INF);
                if (seen) {
                    i64 row = head * p.queries + i;
                    u64 edge = reach.list ? p.column_edges[reach.first + t] : 0;
                    T keep = keep_factor(p, head, i, draw_of(p, edge, j));
                    Arrived a(g, row);
                    a.delta = g.delta[row];
                    T before = a.weight(p, s, j);
                    x = (x + arriving_at(p, g, row, head, j, edge)) * keep;
                    ds = a.grad_score(p, s, before, x, j);
                    weight = before * keep;
                    sum += ds;
                }
                for (u32 left = __ballot_sync(ALL, seen); left; left &= left - 1) {
                    int n = __ffs(left) - 1;
                    i64 query = __shfl_sync(ALL, i, n);
                    T q[KEY_CHUNKS], grad[KEY_VALUE_CHUNKS];
                    load_of_key(row_of(p.q, b, h, query), p.width, lane, q);
                    load_of_key(row_of(g.grad_out, b, h, query), p.value_width, lane, grad);
                    score.by_key(q, k, __shfl_sync(ALL, ds, n), gk);
                    T w = __shfl_sync(ALL, weight, n);
#pragma unroll
                    for (int c = 0; c < KEY_VALUE_CHUNKS; c++) gv[c] += w * grad[c];
                }
            }
            sum = warp_sum(sum);
            if (g.key_sums && lane == 0 && key_part() == 0) g.key_sums[head * p.keys + j] = sum;
        }
        if (g.grad_k.data) store_of_key(row_of(g.grad_k, b, hk, j), p.width, lane, gk);
        if (g.grad_v.data) store_of_key(row_of(g.grad_v, b, hk, j), p.value_width, lane, gv);
    }
}

// The gradient of a full bias that has a row for each query: a warp has such a row and walks all
// batch items and heads that share it.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) backward_bias(const __grid_constant__ Problem p, const __grid_constant__ Backward g) {
    int lane = lane_id();
    T *scores = g.scratch + row_id() * 2 * g.scratch_row, *grads = scores + g.scratch_row;
    i64 batch = g.bias_shape[0], heads = g.bias_shape[1], wide = g.bias_shape[3];
    for (i64 at = row_id(); at < batch * heads * p.queries; at += rows_at_once()) {
        i64 ob = at / p.queries / heads, oh = at / p.queries % heads, i = at % p.queries;
        T *to = g.grad_bias + at * wide;
        T sum = 0;
        for (i64 b = batch == 1 ? 0 : ob; b < (batch == 1 ? p.batch : ob + 1); b++) {
            Reach reach = keys_of(p, b, i);
            for (i64 h = heads == 1 ? 0 : oh; h < (heads == 1 ? p.heads : oh + 1); h++) {
                Row r(p, (b * p.heads + h) * p.queries + i);
                Score score(p, h, lane);
                T q[CHUNKS];
                load_row(row_of(p.q, b, h, i), p.width, lane, q);
                ValueRow grad(row_of(g.grad_out, b, h, i), p.value_width, lane);
                scores_of_row(p, r, reach, score, q, scores, lane);
                weight_grads_of_row(p, g, r, reach, scores, grad, grads, lane);
                Arrived a(g, r.at);
                a.delta = g.delta[r.at];
                for (i64 t = lane; t < reach.count; t += WARP) {
                    T s = scores[t];
                    if (s == NEG_INF) continue;
                    i64 j = position(reach, t);
                    T ds = a.grad_score(p, s, a.weight(p, s, j), grads[t], j);
                    if (wide == 1) sum += ds;
                    else if (row_part() == 0) to[j] += ds;
                }
                row_sync();
            }
        }
        sum = warp_sum(sum);
        if (wide == 1 && lane == 0 && row_part() == 0) to[0] = sum;
    }
}

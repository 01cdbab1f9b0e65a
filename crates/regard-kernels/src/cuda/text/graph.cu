// Softmax over the edges of a graph, additive scores. A warp has a query and WARP_HEADS of its heads, a lane
// PER_LANE features of one head, and where the heads need fewer lanes several edges go side by side. HEADS heads
// in HEAD_SETS sets, WIDTH features of a key (as many as of a value, or 1), VALUE_WIDTH features of a value.
// Where a width fills no power of two of lanes, the last ones have zeros.

#define ROW_LANES (WARP_HEADS * HEAD_LANES)
#define GROUPS (WARP / ROW_LANES)
#define AT_ONCE (GROUPS > 8 ? WARP / GROUPS : 4)
#define IS_FULL (HEAD_LANES * PER_LANE == VALUE_WIDTH)

#if ACTIVATION == LEAKY_RELU
#define SLOPE_BELOW ((T)LEAK)
#else
#define SLOPE_BELOW ((T)1)
#endif

// A lane's features.
struct Some {
    T x[PER_LANE];
};

#define EACH_FEATURE(c) _Pragma("unroll") for (int c = 0; c < PER_LANE; c++)
#define EACH_FOUR(c) _Pragma("unroll") for (int c = 0; c < PER_LANE; c += 4)

__device__ __forceinline__ Some zeros() {
    Some z;
    EACH_FEATURE(c) z.x[c] = 0;
    return z;
}

#if ALIGNED && STORED == SAME
__device__ __forceinline__ void load_four(T *to, const E *from) {
    float4 v = *(const float4 *)from;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
__device__ __forceinline__ void store_four(E *to, const T *from) {
    *(float4 *)to = make_float4(from[0], from[1], from[2], from[3]);
}
#elif ALIGNED
__device__ __forceinline__ void load_four(T *to, const E *from) {
    ushort4 v = *(const ushort4 *)from;
    to[0] = widen(v.x), to[1] = widen(v.y), to[2] = widen(v.z), to[3] = widen(v.w);
}
__device__ __forceinline__ void store_four(E *to, const T *from) {
    *(ushort4 *)to = make_ushort4(narrow(from[0]), narrow(from[1]), narrow(from[2]), narrow(from[3]));
}
#endif

// The features from f on of a head's row.
__device__ __forceinline__ Some load_some(const E *head, int f) {
    Some to = zeros();
#if ALIGNED
    EACH_FOUR(c) if (IS_FULL || f + c < VALUE_WIDTH) load_four(&to.x[c], head + f + c);
#else
    EACH_FEATURE(c) if (f + c < VALUE_WIDTH) to.x[c] = widen(head[f + c]);
#endif
    return to;
}

__device__ __forceinline__ void store_some(E *head, int f, const Some &from) {
#if ALIGNED
    EACH_FOUR(c) if (IS_FULL || f + c < VALUE_WIDTH) store_four(head + f + c, &from.x[c]);
#else
    EACH_FEATURE(c) if (f + c < VALUE_WIDTH) head[f + c] = narrow(from.x[c]);
#endif
}

// The sum over the lanes of a head; every one of them gets it.
__device__ __forceinline__ T head_sum(T x) {
#pragma unroll
    for (int step = HEAD_LANES / 2; step > 0; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

// The sum over the groups, which went different edges of the same query.
__device__ __forceinline__ T group_sum(T x) {
#pragma unroll
    for (int step = ROW_LANES; step < WARP; step *= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

__device__ __forceinline__ Some group_sums(Some x) {
    EACH_FEATURE(c) x.x[c] = group_sum(x.x[c]);
    return x;
}

// Which part of a row a lane has; of a head that there is not, the last one's.
struct Place {
    int lane, group, row_lane, f, h;
    bool is_there, writes;
    __device__ Place(int set)
        : lane(lane_id()), group(lane / ROW_LANES), row_lane(lane % ROW_LANES), f(row_lane % HEAD_LANES * PER_LANE),
          h(set * WARP_HEADS + row_lane / HEAD_LANES), is_there(h < HEADS), writes(is_there && group == 0) {
        if (!is_there) h = HEADS - 1;
    }
};

#if WIDTH == 1
typedef T Side; // of a query, a key or w: one number a head
__device__ __forceinline__ Side load_side(const E *head, const Place &) { return widen(*head); }
__device__ __forceinline__ Side load_w(const Problem &p, const Place &at) {
    return p.parameters[0].data[at.h * p.parameters[0].head];
}
#else
typedef Some Side;
__device__ __forceinline__ Side load_side(const E *head, const Place &at) { return load_some(head, at.f); }
__device__ __forceinline__ Side load_w(const Problem &p, const Place &at) {
    const T *w = p.parameters[0].data + at.h * p.parameters[0].head + at.f;
    Some to = zeros();
    EACH_FEATURE(c) if (IS_FULL || at.f + c < VALUE_WIDTH) to.x[c] = w[c];
    return to;
}
#endif

__device__ __forceinline__ T leaky(T x) { return x > 0 || x != x ? x : SLOPE_BELOW * x; }
__device__ __forceinline__ T slope(T x) { return x > 0 || x != x ? (T)1 : SLOPE_BELOW; }

__device__ __forceinline__ T pair_score(const Side &w, const Side &q, const Side &k) {
#if WIDTH == 1
    return w * leaky(q + k);
#else
    T sum = 0;
    EACH_FEATURE(c) sum += w.x[c] * leaky(q.x[c] + k.x[c]);
    return head_sum(sum);
#endif
}

__device__ __forceinline__ const E *head_of(const Array &a, i64 b, int h, i64 n) {
    return a.data + b * a.b + h * a.h + n * a.n;
}
__device__ __forceinline__ E *head_of(const Result &a, i64 b, int h, i64 n) {
    return a.data + b * a.b + h * a.h + n * a.n;
}

// What dropout multiplies the weights of some edges by, given what each is drawn by. The lanes of a head have the same
// edges, so where they are enough each draws for one.
__device__ __forceinline__ void keep_factors(T (&to)[AT_ONCE], const Problem &p, const Place &at, i64 b, i64 i,
                                             const u32 (&draws)[AT_ONCE]) {
#if HAS_DROPOUT
    u32 head = (u32)(b * HEADS + at.h);
    if (HEAD_LANES >= AT_ONCE) {
        int first = at.lane & ~(HEAD_LANES - 1), own = at.lane % AT_ONCE;
        u32 draw = draws[0];
#pragma unroll
        for (int u = 1; u < AT_ONCE; u++) draw = own == u ? draws[u] : draw;
        u32 word = random_word(p.dropout_seed, 0, head, (u32)i, draw);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            to[u] = __shfl_sync(ALL, word, first + u) < (u32)p.dropped_below ? (T)0 : (T)p.kept;
        }
    } else {
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            u32 word = random_word(p.dropout_seed, 0, head, (u32)i, draws[u]);
            to[u] = word < (u32)p.dropped_below ? (T)0 : (T)p.kept;
        }
    }
#else
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) to[u] = 1;
#endif
}

// What a lane holds of the next edges of a query: their keys, and what dropout draws by.
struct Listed {
    u32 key, draw;
    __device__ Listed(const Problem &p, u64 edge, bool is_one) : key(0), draw(0) {
        if (is_one) key = __ldcs(&p.row_keys[edge]);
#if HAS_DROPOUT
        draw = key;
        if (is_one && p.row_draws) draw = __ldcs(&p.row_draws[edge]);
#endif
    }
    __device__ u32 draw_of(int n) const { return HAS_DROPOUT ? __shfl_sync(ALL, draw, n) : 0; }
};

extern "C" __global__ void __launch_bounds__(128) graph_forward(const __grid_constant__ Problem p, const __grid_constant__ Forward o) {
    for (i64 task = warp_id(); task < p.batch * p.queries * HEAD_SETS; task += warps()) {
        i64 b = task / HEAD_SETS / p.queries, i = task / HEAD_SETS % p.queries;
        Place at(task % HEAD_SETS);
        u64 first = p.row_start[i];
        int count = (int)(p.row_start[i + 1] - first);
        Side w = load_w(p, at);
        Side q = load_side(head_of(p.q, b, at.h, i), at);
        const E *keys = head_of(p.k, b, at.h, 0), *values = head_of(p.v, b, at.h, 0);
        T top = NEG_INF, total = 0;
        Some sum = zeros();
        for (int base = 0; base < count; base += WARP) {
            int here = count - base < WARP ? count - base : WARP;
            Listed mine(p, first + base + at.lane, at.lane < here);
            for (int t = 0; t < here; t += AT_ONCE * GROUPS) {
                Side k[AT_ONCE];
                Some v[AT_ONCE];
                T s[AT_ONCE], keep[AT_ONCE];
                u32 draws[AT_ONCE];
                bool there[AT_ONCE];
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    int n = t + u * GROUPS + at.group;
                    there[u] = n < here;
                    i64 j = __shfl_sync(ALL, mine.key, n % WARP);
                    draws[u] = mine.draw_of(n % WARP);
                    k[u] = load_side(keys + j * p.k.n, at);
                    v[u] = load_some(values + j * p.v.n, at.f);
                }
                keep_factors(keep, p, at, b, i, draws);
                T before = top;
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    s[u] = pair_score(w, q, k[u]);
                    there[u] = there[u] && !(s[u] == NEG_INF);
                    if (there[u]) top = fmaxf(top, s[u]);
                }
                // −∞ as long as there was nothing but −∞; NaN passes by the weights below.
                T base_of = top == NEG_INF ? (T)0 : top;
                T shrink = expf(before - base_of);
                total *= shrink;
                EACH_FEATURE(c) sum.x[c] *= shrink;
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    if (!there[u]) continue;
                    T weight = expf(s[u] - base_of);
                    total += weight;
                    weight *= keep[u];
                    EACH_FEATURE(c) sum.x[c] += weight * v[u].x[c];
                }
            }
        }
        if (GROUPS > 1) {
            T all = top;
            for (int step = ROW_LANES; step < WARP; step *= 2) all = fmaxf(all, __shfl_xor_sync(ALL, all, step));
            T shrink = top == NEG_INF ? (total == 0 ? (T)0 : (T)1) : expf(top - all);
            total = group_sum(total * shrink);
            EACH_FEATURE(c) sum.x[c] = group_sum(sum.x[c] * shrink);
            top = all;
        }
        bool empty = total == 0;
        Some out;
        EACH_FEATURE(c) out.x[c] = empty ? (T)0 : sum.x[c] / total;
        if (at.writes) {
            store_some(head_of(o.out, b, at.h, i), at.f, out);
            i64 row = (b * p.heads + at.h) * p.queries + i;
            if (o.lse && at.f == 0) o.lse[row] = empty ? NEG_INF : (top == NEG_INF ? (T)0 : top) + logf(total);
        }
    }
}

// What the keys' pass reads of an edge and a head: the weight, dropout included, and its score's gradient (where a
// key has one number a head, that number's gradient). Written and read once, so that it drives no key or value
// out of the cache.
struct Pair {
    T weight, grad;
};
__device__ __forceinline__ void store_once(Pair *to, T weight, T grad) { __stcs((float2 *)to, make_float2(weight, grad)); }
__device__ __forceinline__ Pair load_once(const Pair *from) {
    float2 both = __ldcs((const float2 *)from);
    return {both.x, both.y};
}

struct GraphBackward {
    Pair *pairs; // [B, E, HEADS]
    u32 *signs;  // [B, E, HEAD_SETS, PER_LANE]: bit l of word c: whether feature c of row lane l was above 0
};

extern "C" __global__ void __launch_bounds__(128) graph_backward_queries(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ GraphBackward e) {
    i64 per_task = (p.queries + g.chunks - 1) / g.chunks;
    for (i64 task = warp_id(); task < p.batch * g.chunks * HEAD_SETS; task += warps()) {
        int set = task % HEAD_SETS;
        i64 b = task / HEAD_SETS / g.chunks, chunk = task / HEAD_SETS % g.chunks;
        i64 from = chunk * per_task, to = least(from + per_task, p.queries);
        Place at(set);
        Side w = load_w(p, at);
        const E *keys = head_of(p.k, b, at.h, 0), *values = head_of(p.v, b, at.h, 0);
        Some gw = zeros();
        for (i64 i = from; i < to; i++) {
            u64 first = p.row_start[i];
            int count = (int)(p.row_start[i + 1] - first);
            i64 row = (b * p.heads + at.h) * p.queries + i;
            Side q = load_side(head_of(p.q, b, at.h, i), at);
            Some grad = load_some(head_of(g.grad_out, b, at.h, i), at.f);
            Some out = load_some(head_of(g.out, b, at.h, i), at.f);
            T delta = 0, lse = g.lse[row];
            EACH_FEATURE(c) delta += grad.x[c] * out.x[c];
            delta = head_sum(delta);
            if (g.grad_lse) delta -= g.grad_lse[row];
            Some gq = zeros();
            for (int base = 0; base < count; base += WARP) {
                int here = count - base < WARP ? count - base : WARP;
                Listed mine(p, first + base + at.lane, at.lane < here);
                for (int t = 0; t < here; t += AT_ONCE * GROUPS) {
                    Side k[AT_ONCE];
                    Some v[AT_ONCE];
                    T keep[AT_ONCE];
                    u32 draws[AT_ONCE];
#pragma unroll
                    for (int u = 0; u < AT_ONCE; u++) {
                        int n = (t + u * GROUPS + at.group) % WARP;
                        i64 j = __shfl_sync(ALL, mine.key, n);
                        draws[u] = mine.draw_of(n);
                        k[u] = load_side(keys + j * p.k.n, at);
                        v[u] = load_some(values + j * p.v.n, at.f);
                    }
                    keep_factors(keep, p, at, b, i, draws);
#pragma unroll
                    for (int u = 0; u < AT_ONCE; u++) {
                        int n = t + u * GROUPS + at.group;
                        T s = pair_score(w, q, k[u]), dp = 0;
                        EACH_FEATURE(c) dp += grad.x[c] * v[u].x[c];
                        dp = head_sum(dp) * keep[u];
                        bool there = n < here && !(s == NEG_INF);
                        T weight = there ? expf(s - lse) : (T)0, ds = there ? weight * (dp - delta) : (T)0;
                        bool is_kept = n < here && at.is_there;
                        i64 edge = b * p.edges + first + base + n;
                        weight *= keep[u];
#if WIDTH == 1
                        // A lane without an edge has some other key: 0 times NaN is NaN.
                        T x = q + k[u], by_x = there ? ds * w * slope(x) : (T)0;
                        gq.x[0] += by_x;
                        gw.x[0] += there ? ds * leaky(x) : (T)0;
                        if (is_kept && at.f == 0) store_once(&e.pairs[edge * HEADS + at.h], weight, by_x);
#else
                        u32 words[PER_LANE];
                        EACH_FEATURE(c) {
                            T x = q.x[c] + k[u].x[c];
                            gq.x[c] += ds * slope(x);
                            gw.x[c] += there ? ds * leaky(x) : (T)0;
                            words[c] = __ballot_sync(ALL, x > 0 || x != x);
                        }
                        if (is_kept && at.f == 0) store_once(&e.pairs[edge * HEADS + at.h], weight, ds);
                        u32 *signs = e.signs + (edge * HEAD_SETS + set) * PER_LANE;
#if ROW_LANES >= PER_LANE
                        EACH_FEATURE(c) if (n < here && at.row_lane == c) __stcs(&signs[c], words[c] >> (at.group * ROW_LANES));
#else
                        EACH_FEATURE(c) if (n < here && at.row_lane == 0) __stcs(&signs[c], words[c] >> (at.group * ROW_LANES));
#endif
#endif
                    }
                }
            }
            gq = group_sums(gq);
            if (g.grad_q.data && at.writes) {
                E *row_to = head_of(g.grad_q, b, at.h, i);
#if WIDTH == 1
                if (at.f == 0) *row_to = narrow(gq.x[0]);
#else
                EACH_FEATURE(c) gq.x[c] *= w.x[c];
                store_some(row_to, at.f, gq);
#endif
            }
        }
        gw = group_sums(gw);
        if (g.own_slabs && at.writes) {
            T *slab = g.own_slabs + ((b * HEADS + at.h) * g.chunks + chunk) * WIDTH;
#if WIDTH == 1
            if (at.f == 0) *slab = gw.x[0];
#else
            EACH_FEATURE(c) if (IS_FULL || at.f + c < VALUE_WIDTH) slab[at.f + c] = gw.x[c];
#endif
        }
    }
}

extern "C" __global__ void __launch_bounds__(128) graph_backward_keys(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ GraphBackward e) {
    for (i64 task = warp_id(); task < p.batch * p.keys * HEAD_SETS; task += warps()) {
        int set = task % HEAD_SETS;
        i64 b = task / HEAD_SETS / p.keys, j = task / HEAD_SETS % p.keys;
        Place at(set);
        u64 first = p.column_start[j];
        int count = (int)(p.column_start[j + 1] - first);
        const E *grads = head_of(g.grad_out, b, at.h, 0);
        Some gk = zeros(), gv = zeros();
        for (int base = 0; base < count; base += WARP) {
            int here = count - base < WARP ? count - base : WARP;
            u32 my_query = 0, my_edge = 0;
            if (at.lane < here) {
                my_query = p.column_queries[first + base + at.lane];
                my_edge = p.column_edges[first + base + at.lane];
            }
            for (int t = 0; t < here; t += AT_ONCE * GROUPS) {
                Some grad[AT_ONCE];
                Pair pair[AT_ONCE];
#if WIDTH > 1
                uint4 signs[AT_ONCE][PER_LANE / 4];
#endif
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    int n = t + u * GROUPS + at.group;
                    i64 i = __shfl_sync(ALL, my_query, n % WARP);
                    i64 edge = b * p.edges + (i64)__shfl_sync(ALL, my_edge, n % WARP);
                    grad[u] = load_some(grads + i * g.grad_out.n, at.f);
                    pair[u] = load_once(&e.pairs[edge * HEADS + at.h]);
#if WIDTH > 1
                    const uint4 *words = (const uint4 *)e.signs + (edge * HEAD_SETS + set) * (PER_LANE / 4);
#pragma unroll
                    for (int c = 0; c < PER_LANE / 4; c++) signs[u][c] = __ldcs(words + c);
#endif
                }
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    if (t + u * GROUPS + at.group >= here) continue;
                    EACH_FEATURE(c) gv.x[c] += pair[u].weight * grad[u].x[c];
#if WIDTH == 1
                    gk.x[0] += pair[u].grad;
#else
                    EACH_FEATURE(c) {
                        const uint4 &four = signs[u][c / 4];
                        u32 word = c % 4 == 0 ? four.x : c % 4 == 1 ? four.y : c % 4 == 2 ? four.z : four.w;
                        gk.x[c] += pair[u].grad * (word >> at.row_lane & 1 ? (T)1 : SLOPE_BELOW);
                    }
#endif
                }
            }
        }
        gk = group_sums(gk);
        gv = group_sums(gv);
        if (!at.writes) continue;
        if (g.grad_v.data) store_some(head_of(g.grad_v, b, at.h, j), at.f, gv);
        if (g.grad_k.data) {
            E *row_to = head_of(g.grad_k, b, at.h, j);
#if WIDTH == 1
            if (at.f == 0) *row_to = narrow(gk.x[0]);
#else
            Side w = load_w(p, at);
            EACH_FEATURE(c) gk.x[c] *= w.x[c];
            store_some(row_to, at.f, gk);
#endif
        }
    }
}

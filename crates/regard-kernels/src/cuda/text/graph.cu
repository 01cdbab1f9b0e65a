// Softmax over the edges of a graph, additive scores, in f32: a warp has a query, a lane four features
// of one head, and where a row needs fewer lanes several edges go side by side. HEADS heads,
// WIDTH features of a key (as many as of a value, or 1), VALUE_WIDTH features of a value.

#define ROW_LANES (HEADS * VALUE_WIDTH / 4)
#define HEAD_LANES (VALUE_WIDTH / 4)
#define GROUPS (WARP / ROW_LANES)
#define AT_ONCE 4

#if ACTIVATION == LEAKY_RELU
#define SLOPE_BELOW ((T)LEAK)
#else
#define SLOPE_BELOW ((T)1)
#endif

struct Four {
    T x[4];
};

__device__ __forceinline__ Four load_four(const T *from) {
    float4 v = *(const float4 *)from;
    return {{v.x, v.y, v.z, v.w}};
}

__device__ __forceinline__ void store_four(T *to, const Four &from) {
    *(float4 *)to = make_float4(from.x[0], from.x[1], from.x[2], from.x[3]);
}

#define EACH_FOUR(c) _Pragma("unroll") for (int c = 0; c < 4; c++)

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

// Which part of a row a lane has.
struct Place {
    int lane, group, row_lane, h, f;
    __device__ Place()
        : lane(lane_id()), group(lane / ROW_LANES), row_lane(lane % ROW_LANES), h(row_lane / HEAD_LANES),
          f(row_lane % HEAD_LANES * 4) {}
};

#if WIDTH == 1
typedef T Side; // of a query, a key or w: one number a head
__device__ __forceinline__ Side load_side(const T *head, const Place &) { return *head; }
#else
typedef Four Side;
__device__ __forceinline__ Side load_side(const T *head, const Place &at) { return load_four(head + at.f); }
#endif

__device__ __forceinline__ T leaky(T x) { return x > 0 || x != x ? x : SLOPE_BELOW * x; }
__device__ __forceinline__ T slope(T x) { return x > 0 || x != x ? (T)1 : SLOPE_BELOW; }

__device__ __forceinline__ T pair_score(const Side &w, const Side &q, const Side &k) {
#if WIDTH == 1
    return w * leaky(q + k);
#else
    T sum = 0;
    EACH_FOUR(c) sum += w.x[c] * leaky(q.x[c] + k.x[c]);
    return head_sum(sum);
#endif
}

__device__ __forceinline__ const T *head_of(const Array &a, i64 b, int h, i64 n) {
    return a.data + b * a.b + h * a.h + n * a.n;
}

extern "C" __global__ void __launch_bounds__(128) graph_forward(const __grid_constant__ Problem p, const __grid_constant__ Forward o) {
    Place at;
    for (i64 task = warp_id(); task < p.batch * p.queries; task += warps()) {
        i64 b = task / p.queries, i = task % p.queries;
        u64 first = p.row_start[i];
        int count = (int)(p.row_start[i + 1] - first);
        Side w = load_side(p.parameters[0].data + at.h * p.parameters[0].head, at);
        Side q = load_side(head_of(p.q, b, at.h, i), at);
        const T *keys = head_of(p.k, b, at.h, 0), *values = head_of(p.v, b, at.h, 0) + at.f;
        T top = NEG_INF, total = 0;
        Four sum = {{0, 0, 0, 0}};
        for (int base = 0; base < count; base += WARP) {
            int here = count - base < WARP ? count - base : WARP;
            u32 mine = at.lane < here ? __ldcs(&p.row_keys[first + base + at.lane]) : 0;
            for (int t = 0; t < here; t += AT_ONCE * GROUPS) {
                Side k[AT_ONCE];
                Four v[AT_ONCE];
                T s[AT_ONCE];
                bool there[AT_ONCE];
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    int n = t + u * GROUPS + at.group;
                    there[u] = n < here;
                    i64 j = __shfl_sync(ALL, mine, n % WARP);
                    k[u] = load_side(keys + j * p.k.n, at);
                    v[u] = load_four(values + j * p.v.n);
                }
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
                EACH_FOUR(c) sum.x[c] *= shrink;
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    if (!there[u]) continue;
                    T weight = expf(s[u] - base_of);
                    total += weight;
                    EACH_FOUR(c) sum.x[c] += weight * v[u].x[c];
                }
            }
        }
        if (GROUPS > 1) {
            T all = top;
            for (int step = ROW_LANES; step < WARP; step *= 2) all = fmaxf(all, __shfl_xor_sync(ALL, all, step));
            T shrink = top == NEG_INF ? (total == 0 ? (T)0 : (T)1) : expf(top - all);
            total = group_sum(total * shrink);
            EACH_FOUR(c) sum.x[c] = group_sum(sum.x[c] * shrink);
            top = all;
        }
        bool empty = total == 0;
        Four out;
        EACH_FOUR(c) out.x[c] = empty ? (T)0 : sum.x[c] / total;
        if (at.group == 0) {
            store_four(o.out.data + b * o.out.b + at.h * o.out.h + i * o.out.n + at.f, out);
            i64 row = (b * p.heads + at.h) * p.queries + i;
            if (o.lse && at.f == 0) o.lse[row] = empty ? NEG_INF : (top == NEG_INF ? (T)0 : top) + logf(total);
        }
    }
}

// What the keys' pass reads of an edge and a head: the weight, and its score's gradient (where a key
// has one number a head, that number's gradient). Written and read once, so that it drives no key or value
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
    u32 *signs;  // [B, E, 4]: bit l of word c: whether feature c of row lane l was above 0
};

extern "C" __global__ void __launch_bounds__(128) graph_backward_queries(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ GraphBackward e) {
    Place at;
    i64 per_task = (p.queries + g.chunks - 1) / g.chunks;
    for (i64 task = warp_id(); task < p.batch * g.chunks; task += warps()) {
        i64 b = task / g.chunks, from = task % g.chunks * per_task, to = least(from + per_task, p.queries);
        Side w = load_side(p.parameters[0].data + at.h * p.parameters[0].head, at);
        const T *keys = head_of(p.k, b, at.h, 0), *values = head_of(p.v, b, at.h, 0) + at.f;
        Four gw = {{0, 0, 0, 0}};
        for (i64 i = from; i < to; i++) {
            u64 first = p.row_start[i];
            int count = (int)(p.row_start[i + 1] - first);
            i64 row = (b * p.heads + at.h) * p.queries + i;
            Side q = load_side(head_of(p.q, b, at.h, i), at);
            Four grad = load_four(head_of(g.grad_out, b, at.h, i) + at.f);
            Four out = load_four(head_of(g.out, b, at.h, i) + at.f);
            T delta = 0, lse = g.lse[row];
            EACH_FOUR(c) delta += grad.x[c] * out.x[c];
            delta = head_sum(delta);
            if (g.grad_lse) delta -= g.grad_lse[row];
            Four gq = {{0, 0, 0, 0}};
            for (int base = 0; base < count; base += WARP) {
                int here = count - base < WARP ? count - base : WARP;
                u32 mine = at.lane < here ? __ldcs(&p.row_keys[first + base + at.lane]) : 0;
                for (int t = 0; t < here; t += AT_ONCE * GROUPS) {
                    Side k[AT_ONCE];
                    Four v[AT_ONCE];
#pragma unroll
                    for (int u = 0; u < AT_ONCE; u++) {
                        i64 j = __shfl_sync(ALL, mine, (t + u * GROUPS + at.group) % WARP);
                        k[u] = load_side(keys + j * p.k.n, at);
                        v[u] = load_four(values + j * p.v.n);
                    }
#pragma unroll
                    for (int u = 0; u < AT_ONCE; u++) {
                        int n = t + u * GROUPS + at.group;
                        T s = pair_score(w, q, k[u]), dp = 0;
                        EACH_FOUR(c) dp += grad.x[c] * v[u].x[c];
                        dp = head_sum(dp);
                        bool there = n < here && !(s == NEG_INF);
                        T weight = there ? expf(s - lse) : (T)0, ds = there ? weight * (dp - delta) : (T)0;
                        i64 edge = b * p.edges + first + base + n;
#if WIDTH == 1
                        // A lane without an edge has some other key: 0 times NaN is NaN.
                        T x = q + k[u], by_x = there ? ds * w * slope(x) : (T)0;
                        gq.x[0] += by_x;
                        gw.x[0] += there ? ds * leaky(x) : (T)0;
                        if (n < here && at.f == 0) store_once(&e.pairs[edge * HEADS + at.h], weight, by_x);
#else
                        u32 words[4];
                        EACH_FOUR(c) {
                            T x = q.x[c] + k[u].x[c];
                            gq.x[c] += ds * slope(x);
                            gw.x[c] += there ? ds * leaky(x) : (T)0;
                            words[c] = __ballot_sync(ALL, x > 0 || x != x);
                        }
                        if (n < here && at.f == 0) store_once(&e.pairs[edge * HEADS + at.h], weight, ds);
                        EACH_FOUR(c) if (n < here && at.row_lane == c) __stcs(&e.signs[edge * 4 + c], words[c] >> (at.group * ROW_LANES));
#endif
                    }
                }
            }
            EACH_FOUR(c) gq.x[c] = group_sum(gq.x[c]);
            if (g.grad_q.data && at.group == 0) {
                T *row_to = g.grad_q.data + b * g.grad_q.b + at.h * g.grad_q.h + i * g.grad_q.n;
#if WIDTH == 1
                if (at.f == 0) *row_to = gq.x[0];
#else
                EACH_FOUR(c) gq.x[c] *= w.x[c];
                store_four(row_to + at.f, gq);
#endif
            }
        }
        EACH_FOUR(c) gw.x[c] = group_sum(gw.x[c]);
        if (g.own_slabs && at.group == 0) {
            T *slab = g.own_slabs + ((b * HEADS + at.h) * g.chunks + task % g.chunks) * WIDTH;
#if WIDTH == 1
            if (at.f == 0) *slab = gw.x[0];
#else
            EACH_FOUR(c) slab[at.f + c] = gw.x[c];
#endif
        }
    }
}

extern "C" __global__ void __launch_bounds__(128) graph_backward_keys(const __grid_constant__ Problem p, const __grid_constant__ Backward g, const __grid_constant__ GraphBackward e) {
    Place at;
    for (i64 task = warp_id(); task < p.batch * p.keys; task += warps()) {
        i64 b = task / p.keys, j = task % p.keys;
        u64 first = p.column_start[j];
        int count = (int)(p.column_start[j + 1] - first);
        const T *grads = head_of(g.grad_out, b, at.h, 0) + at.f;
        Four gk = {{0, 0, 0, 0}}, gv = {{0, 0, 0, 0}};
        for (int base = 0; base < count; base += WARP) {
            int here = count - base < WARP ? count - base : WARP;
            u32 my_query = 0, my_edge = 0;
            if (at.lane < here) {
                my_query = p.column_queries[first + base + at.lane];
                my_edge = p.column_edges[first + base + at.lane];
            }
            for (int t = 0; t < here; t += AT_ONCE * GROUPS) {
                Four grad[AT_ONCE];
                Pair pair[AT_ONCE];
#if WIDTH > 1
                uint4 signs[AT_ONCE];
#endif
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    int n = t + u * GROUPS + at.group;
                    i64 i = __shfl_sync(ALL, my_query, n % WARP);
                    i64 edge = b * p.edges + (i64)__shfl_sync(ALL, my_edge, n % WARP);
                    grad[u] = load_four(grads + i * g.grad_out.n);
                    pair[u] = load_once(&e.pairs[edge * HEADS + at.h]);
#if WIDTH > 1
                    signs[u] = __ldcs((const uint4 *)e.signs + edge);
#endif
                }
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    if (t + u * GROUPS + at.group >= here) continue;
                    EACH_FOUR(c) gv.x[c] += pair[u].weight * grad[u].x[c];
#if WIDTH == 1
                    gk.x[0] += pair[u].grad;
#else
                    u32 words[4] = {signs[u].x, signs[u].y, signs[u].z, signs[u].w};
                    EACH_FOUR(c) gk.x[c] += pair[u].grad * (words[c] >> at.row_lane & 1 ? (T)1 : SLOPE_BELOW);
#endif
                }
            }
        }
        EACH_FOUR(c) {
            gk.x[c] = group_sum(gk.x[c]);
            gv.x[c] = group_sum(gv.x[c]);
        }
        if (at.group != 0) continue;
        if (g.grad_v.data) store_four(g.grad_v.data + b * g.grad_v.b + at.h * g.grad_v.h + j * g.grad_v.n + at.f, gv);
        if (g.grad_k.data) {
            T *row_to = g.grad_k.data + b * g.grad_k.b + at.h * g.grad_k.h + j * g.grad_k.n;
#if WIDTH == 1
            if (at.f == 0) *row_to = gk.x[0];
#else
            Side w = load_side(p.parameters[0].data + at.h * p.parameters[0].head, at);
            EACH_FOUR(c) gk.x[c] *= w.x[c];
            store_four(row_to + at.f, gk);
#endif
        }
    }
}

// The scores that have a formula of their own. A lane has every 32nd feature of a row; features
// beyond the width are 0 in all of them. `Score` is one head's; `Own` sums the gradients of its
// learned numbers.

#define EACH(c) _Pragma("unroll") for (int c = 0; c < CHUNKS; c++)

#if SCORE == DOT

#define OWN_WIDTH(p) 0

// Of one feature: what a score has of its own, its share of the score, and of the gradients by key and by query.
__device__ __forceinline__ T own_number(const Problem &p, i64 h, i64 d) { return (T)p.scale; }
__device__ __forceinline__ T one_score(T scale, T q, T k) { return scale * q * k; }
__device__ __forceinline__ void one_by_key(T scale, T q, T k, T grad, T &gk) { gk += grad * scale * q; }
__device__ __forceinline__ void one_by_query(T scale, T q, T k, T grad, T &gq, T &own) { gq += grad * scale * k; }

#if ROW_WARPS == 1
struct Own {
    __device__ void clear() {}
    __device__ void store(const Problem &p, T *slab, int lane) const {}
};
#endif

struct Score {
    T scale;
    __device__ Score(const Problem &p, i64 h, int lane) : scale((T)p.scale) {}
    __device__ __forceinline__ T of(const T (&q)[CHUNKS], const T (&k)[CHUNKS]) const {
        T sum = 0;
        EACH(c) sum += q[c] * k[c];
        return warp_sum(sum) * scale;
    }
#if ROW_WARPS == 1
    __device__ __forceinline__ void by_query(const T (&q)[CHUNKS], const T (&k)[CHUNKS], T grad, T (&gq)[CHUNKS], Own &own) const {
        EACH(c) gq[c] += grad * scale * k[c];
    }
#endif
    __device__ __forceinline__ void by_key(const T (&q)[CHUNKS], const T (&k)[CHUNKS], T grad, T (&gk)[CHUNKS]) const {
        EACH(c) one_by_key(scale, q[c], k[c], grad, gk[c]);
    }
};

#elif SCORE == ADDITIVE

#define OWN_WIDTH(p) (p).width

__device__ __forceinline__ void activate(T x, T &value, T &slope) {
#if ACTIVATION == TANH
    value = tanh(x);
    slope = 1 - value * value;
#elif ACTIVATION == LEAKY_RELU
    slope = x > 0 ? (T)1 : x <= 0 ? (T)LEAK : (T)1;
    value = slope == (T)1 ? x : (T)LEAK * x;
#elif ACTIVATION == GELU
    T cdf = (T)0.5 * (1 + erf(x * (T)0.70710678118654752440));
    value = x * cdf;
    slope = cdf + x * ((T)0.3989422804014327 * exp((T)-0.5 * x * x));
#else
    value = x;
    slope = 1;
#endif
}

__device__ __forceinline__ T own_number(const Problem &p, i64 h, i64 d) { return p.parameters[0].data[h * p.parameters[0].head + d]; }
__device__ __forceinline__ T one_score(T w, T q, T k) {
    T value, slope;
    activate(q + k, value, slope);
    return w * value;
}
__device__ __forceinline__ void one_by_key(T w, T q, T k, T grad, T &gk) {
    T value, slope;
    activate(q + k, value, slope);
    gk += grad * w * slope;
}
__device__ __forceinline__ void one_by_query(T w, T q, T k, T grad, T &gq, T &own) {
    T value, slope;
    activate(q + k, value, slope);
    gq += grad * w * slope;
    own += grad * value;
}

#if ROW_WARPS == 1
struct Own {
    T w[CHUNKS];
    __device__ void clear() { EACH(c) w[c] = 0; }
    __device__ void store(const Problem &p, T *slab, int lane) const {
        EACH(c) {
            i64 d = lane + WARP * c;
            if (d < p.width) slab[d] = w[c];
        }
    }
};
#endif

struct Score {
    T w[CHUNKS];
    __device__ Score(const Problem &p, i64 h, int lane) {
        EACH(c) {
            i64 d = lane + WARP * c;
            w[c] = d < p.width ? own_number(p, h, d) : (T)0;
        }
    }
    __device__ __forceinline__ T of(const T (&q)[CHUNKS], const T (&k)[CHUNKS]) const {
        T sum = 0;
        EACH(c) sum += one_score(w[c], q[c], k[c]);
        return warp_sum(sum);
    }
#if ROW_WARPS == 1
    __device__ __forceinline__ void by_query(const T (&q)[CHUNKS], const T (&k)[CHUNKS], T grad, T (&gq)[CHUNKS], Own &own) const {
        EACH(c) one_by_query(w[c], q[c], k[c], grad, gq[c], own.w[c]);
    }
#endif
    __device__ __forceinline__ void by_key(const T (&q)[CHUNKS], const T (&k)[CHUNKS], T grad, T (&gk)[CHUNKS]) const {
        EACH(c) one_by_key(w[c], q[c], k[c], grad, gk[c]);
    }
};

#endif

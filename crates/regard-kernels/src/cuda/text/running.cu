// What the tensor cores' forms share: powers of two, numbers in 16 bits, and a softmax that runs over tiles.
// A thread has two rows of a product, 8 apart, and two columns of each eight: number 4 j + 2 r + c is row r
// of the two, column 8 j + 2 (thread % 4) + c; four threads share a row.

#define LN2 0.693147180559945309f
#define LOG2_E 1.44269504088896341f

#ifndef EMULATED

__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Two numbers in 16 bits each, the first in the low half: bf16, unless f16 is what is stored. Volatile: registers that a product under way
// reads must not be written before it was waited for.
__device__ __forceinline__ u32 pack(float low, float high) {
    u32 y;
#if STORED != F16
    asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
#else
    asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
#endif
    return y;
}

#else
#include "fast.h"
#endif

// From a score less its row's log-sum-exp, in powers of two, or its threshold: what weight and slope are
// made of, the weight, and the derivative's diagonal.
#if NORMALIZER == SOFTMAX
__device__ __forceinline__ float above(float x) { return exp2_fast(x); }
__device__ __forceinline__ float weight_of(float x) { return x; }
__device__ __forceinline__ float slope_of(float x) { return x; }
#else
// NaN stays.
__device__ __forceinline__ float above(float x) { return x > 0 || x != x ? x : 0.0f; }
#if NORMALIZER == ENTMAX15
#define TO_Z(p) (0.5f * (float)(p).scale)
__device__ __forceinline__ float weight_of(float x) { return x * x; }
__device__ __forceinline__ float slope_of(float x) { return x; }
#else
#define TO_Z(p) (float)(p).scale
__device__ __forceinline__ float weight_of(float x) { return x; }
__device__ __forceinline__ float slope_of(float x) { return x > 0 ? 1.0f : x; }
#endif
#endif

// From a product to a score in powers of two, or to what a threshold is taken from; and from a score to nats. One that has
// its bias is in powers of two already.
#if RELATIVE
#define SCALE2(p) 1.0f
#define NATURAL(p) LN2
#elif NORMALIZER == SOFTMAX
#define SCALE2(p) (float)((p).scale * (double)LOG2_E)
#define NATURAL(p) (float)(p).scale
#else
#define SCALE2(p) TO_Z(p)
#define NATURAL(p) (float)(p).scale
#endif

// The running maximum and sum of a thread's two rows.
struct Running {
    float top[2], total[2];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int r = 0; r < 2; r++) top[r] = NEG_INF, total[r] = 0;
    }

    // From scores to weights, up to the factor that the sum gives in the end; by how much what was summed
    // before is to be multiplied.
    template <int N> __device__ __forceinline__ void take(float (&s)[N], float scale2, float (&factor)[2]) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float high = top[r];
#pragma unroll
            for (int n = 2 * r; n < N; n += 4) high = fmaxf(high, fmaxf(s[n], s[n + 1]));
            high = fmaxf(high, __shfl_xor_sync(ALL, high, 1));
            high = fmaxf(high, __shfl_xor_sync(ALL, high, 2));
            // A row that has seen nothing yet: its weights are 0 whatever is subtracted.
            float from = high == NEG_INF ? 0.0f : high * scale2;
            factor[r] = exp2_fast(top[r] * scale2 - from);
            float sum = 0;
#pragma unroll
            for (int n = 2 * r; n < N; n += 4) {
                s[n] = exp2_fast(s[n] * scale2 - from);
                s[n + 1] = exp2_fast(s[n + 1] * scale2 - from);
                sum += s[n] + s[n + 1];
            }
            total[r] = total[r] * factor[r] + sum;
            top[r] = high;
        }
    }

    // The whole row's, in all four threads that share it.
    __device__ __forceinline__ void join() {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            total[r] += __shfl_xor_sync(ALL, total[r], 1);
            total[r] += __shfl_xor_sync(ALL, total[r], 2);
        }
    }
};

// Numbers of a product as the left side of another: 16 columns at a time.
template <int N> __device__ __forceinline__ void as_left(const float (&x)[N], u32 (&to)[N / 8][4]) {
#pragma unroll
    for (int n = 0; n < N / 2; n++) to[n / 4][n % 4] = pack(x[2 * n], x[2 * n + 1]);
}

// What every kernel needs: number types, sums over a warp, random words.
// REAL is computed in; STORED says what q, k, v and the output are kept in.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;
typedef REAL T;

#define WARP 32
#define ALL 0xffffffffu
#define NEG_INF ((T)-__int_as_float(0x7f800000))
#define NOT_A_NUMBER ((T)__int_as_float(0x7fc00000))

#if STORED == SAME
typedef T E;
__device__ __forceinline__ T widen(E x) { return x; }
__device__ __forceinline__ E narrow(T x) { return x; }
#elif STORED == BF16
typedef unsigned short E;
__device__ __forceinline__ T widen(E x) { return __uint_as_float((u32)x << 16); }
__device__ __forceinline__ E narrow(T x) {
    E y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
#else
typedef unsigned short E;
__device__ __forceinline__ T widen(E x) {
    T y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}
__device__ __forceinline__ E narrow(T x) {
    E y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
#endif

// Every lane gets the same bits: each step adds the same two numbers in both lanes.
__device__ __forceinline__ T warp_sum(T x) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

__device__ __forceinline__ T larger(T a, T b) { return a > b || b != b ? a : b; } // NaN loses

__device__ __forceinline__ T warp_max(T x) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) x = larger(x, __shfl_xor_sync(ALL, x, step));
    return x;
}

// Philox4x32-10: the four words of a counter.
__device__ __forceinline__ void random_four(u32 (&to)[4], u64 seed, u32 stream, u32 head, u32 query, u32 four_keys) {
    u32 a = four_keys, b = query, c = head, d = stream;
    u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 p = (u64)a * 0xD2511F53u, r = (u64)c * 0xCD9E8D57u;
        u32 b1 = b, d1 = d;
        a = (u32)(r >> 32) ^ b1 ^ k0;
        b = (u32)r;
        c = (u32)(p >> 32) ^ d1 ^ k1;
        d = (u32)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    to[0] = a, to[1] = b, to[2] = c, to[3] = d;
}

// A key's word of them.
__device__ __forceinline__ u32 random_word(u64 seed, u32 stream, u32 head, u32 query, u32 key) {
    u32 words[4];
    random_four(words, seed, stream, head, query, key / 4);
    u32 low = key & 1 ? words[1] : words[0], high = key & 1 ? words[3] : words[2];
    return key & 2 ? high : low;
}

__device__ __forceinline__ float uniform(u32 word) {
    return ((float)(word >> 9) + 0.5f) * (1.0f / (float)(1u << 23));
}

// What is done to numbers without computing: copies, choices, fills, conversions.

typedef unsigned short u16;

// Several numbers that lie in a row, aligned: one access.
struct alignas(16) Sixteen {
    u64 low, high;
};

#define COPY(size, U)                                                                                                                         \
    extern "C" __global__ void copy##size(Walk w, const U *from, U *to) {                                                                     \
        EACH(n, w.count) {                                                                                                                    \
            Places p = places(w, n);                                                                                                          \
            to[p.at[1]] = from[p.at[0]];                                                                                                      \
        }                                                                                                                                     \
    }

#define OF_SIZE(size, U)                                                                                                                      \
    COPY(size, U)                                                                                                                             \
    extern "C" __global__ void select##size(Walk w, const u8 *mask, const U *yes, const U *no, U *to) {                                       \
        EACH(n, w.count) {                                                                                                                    \
            Places p = places(w, n);                                                                                                          \
            to[n] = mask[p.at[0]] ? yes[p.at[1]] : no[p.at[2]];                                                                               \
        }                                                                                                                                     \
    }                                                                                                                                         \
    extern "C" __global__ void fill##size(U *to, i64 count, i64 bits) { EACH(n, count) to[n] = (U)bits; }

OF_SIZE(1, u8)
OF_SIZE(2, u16)
OF_SIZE(4, u32)
OF_SIZE(8, u64)
COPY(16, Sixteen)

__device__ __forceinline__ float half_value(u16 x) {
    u32 sign = (u32)(x >> 15) << 31, exponent = x >> 10 & 31, mantissa = x & 1023;
    if (exponent == 31) return __uint_as_float(sign | 0x7f800000 | mantissa << 13);
    if (exponent > 0) return __uint_as_float(sign | (exponent + 112) << 23 | mantissa << 13);
    float x0 = (float)mantissa / 16777216.0f;
    return sign ? -x0 : x0;
}

__device__ __forceinline__ double value(i64 type, const void *x, i64 at) {
    switch (type) {
    case F32: return ((const float *)x)[at];
    case F64: return ((const double *)x)[at];
    case BF16_NUMBER: return __uint_as_float((u32)((const u16 *)x)[at] << 16);
    case F16_NUMBER: return half_value(((const u16 *)x)[at]);
    case I64: return (double)((const i64 *)x)[at];
    case U32: return ((const u32 *)x)[at];
    default: return ((const u8 *)x)[at];
    }
}

__device__ __forceinline__ u32 float_bits(float x) {
    union {
        float number;
        u32 bits;
    } same = {x};
    return same.bits;
}

// The nearest float whose last bit is set where it is not exact: rounding it once more rounds x correctly.
__device__ __forceinline__ float round_to_odd(double x) {
    float near = (float)x;
    bool finite = (float_bits(near) & 0x7f800000) != 0x7f800000;
    if ((double)near == x || !finite) return near;
    double size = near < 0 ? -(double)near : near, all = x < 0 ? -x : x;
    return __uint_as_float((float_bits(near) - (size > all)) | 1);
}

// To 16 bits of which `mantissa` are the mantissa, ties to even.
__device__ __forceinline__ u16 bf16_of(double x) {
    u32 bits = float_bits(round_to_odd(x));
    if (x != x) return (u16)(bits >> 16 | 0x40);
    return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
__device__ __forceinline__ u16 f16_of(double x) {
    u32 bits = float_bits(round_to_odd(x)), sign = bits >> 16 & 0x8000, mantissa = bits & 0x7fffff;
    int exponent = (int)(bits >> 23 & 255) - 112;
    if (x != x) return (u16)(sign | 0x7e00);
    if (exponent >= 31) return (u16)(sign | 0x7c00);
    if (exponent <= 0) {
        if (exponent < -10) return (u16)sign;
        mantissa |= 0x800000;
        u32 shift = (u32)(14 - exponent), half = 1u << (shift - 1), rest = mantissa & ((1u << shift) - 1), kept = mantissa >> shift;
        return (u16)(sign | (kept + (rest > half || (rest == half && kept & 1))));
    }
    u32 kept = (u32)exponent << 10 | mantissa >> 13, rest = mantissa & 0x1fff;
    return (u16)(sign | (kept + (rest > 0x1000 || (rest == 0x1000 && kept & 1))));
}

__device__ __forceinline__ void put(i64 type, void *to, i64 at, double x) {
    switch (type) {
    case F32: ((float *)to)[at] = (float)x; break;
    case F64: ((double *)to)[at] = x; break;
    case BF16_NUMBER: ((u16 *)to)[at] = bf16_of(x); break;
    case F16_NUMBER: ((u16 *)to)[at] = f16_of(x); break;
    // As Rust converts: NaN is 0, and what is too large is the largest.
    case I64: ((i64 *)to)[at] = x != x ? 0 : x >= 9223372036854775808.0 ? 0x7fffffffffffffff : x < -9223372036854775808.0 ? -0x7fffffffffffffff - 1 : (i64)x; break;
    case U32: ((u32 *)to)[at] = x != x || x <= 0 ? 0 : x >= 4294967295.0 ? 0xffffffffu : (u32)x; break;
    default: ((u8 *)to)[at] = x != 0; break;
    }
}

extern "C" __global__ void cast(Walk w, const void *from, void *to, i64 from_type, i64 to_type) {
    EACH(n, w.count) put(to_type, to, n, value(from_type, from, places(w, n).at[0]));
}

// As bf16_of.
__device__ __forceinline__ u32 bf16_of_float(float x) {
    u32 bits = float_bits(x);
    return x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// As `cast`, between f32 and bf16, eight numbers in a row at a time; the walk is over eights.
extern "C" __global__ void eights_to_bf16(Walk w, const float4 *from, uint4 *to) {
    EACH(n, w.count) {
        i64 at = 2 * places(w, n).at[0];
        float4 a = from[at], b = from[at + 1];
        to[n] = make_uint4(bf16_of_float(a.x) | bf16_of_float(a.y) << 16, bf16_of_float(a.z) | bf16_of_float(a.w) << 16,
                           bf16_of_float(b.x) | bf16_of_float(b.y) << 16, bf16_of_float(b.z) | bf16_of_float(b.w) << 16);
    }
}
extern "C" __global__ void eights_to_f32(Walk w, const uint4 *from, float4 *to) {
    EACH(n, w.count) {
        uint4 x = from[places(w, n).at[0]];
        const u32 upper = 0xffff0000u;
        to[2 * n] = make_float4(__uint_as_float(x.x << 16), __uint_as_float(x.x & upper), __uint_as_float(x.y << 16), __uint_as_float(x.y & upper));
        to[2 * n + 1] = make_float4(__uint_as_float(x.z << 16), __uint_as_float(x.z & upper), __uint_as_float(x.w << 16), __uint_as_float(x.w & upper));
    }
}

// Writes down an index that is neither within 0..n nor ignored, for the host to find when it reads something.
extern "C" __global__ void check_indices(const i64 *index, i64 count, i64 n, i64 has_ignored, i64 ignored, i64 *fault) {
    EACH(at, count) {
        i64 x = index[at];
        if ((x < 0 || x >= n) && !(has_ignored && x == ignored)) fault[1] = x, fault[2] = n, fault[0] = 1;
    }
}

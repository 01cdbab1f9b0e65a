// Functions of one and two numbers, dropout and activations.

__device__ __forceinline__ T exponential(T x) { return (T)(sizeof(T) == 4 ? expf((float)x) : exp((double)x)); }
__device__ __forceinline__ T logarithm(T x) { return (T)(sizeof(T) == 4 ? logf((float)x) : log((double)x)); }
__device__ __forceinline__ T root(T x) { return (T)(sizeof(T) == 4 ? sqrtf((float)x) : sqrt((double)x)); }
__device__ __forceinline__ T power(T x, T y) { return (T)(sizeof(T) == 4 ? powf((float)x, (float)y) : pow((double)x, (double)y)); }
__device__ __forceinline__ T hyperbolic(T x) { return (T)(sizeof(T) == 4 ? tanhf((float)x) : tanh((double)x)); }
__device__ __forceinline__ T error_function(T x) { return (T)(sizeof(T) == 4 ? erff((float)x) : erf((double)x)); }
__device__ __forceinline__ T size_of(T x) { return x < 0 ? -x : x; }

__device__ __forceinline__ T unary_value(i64 f, T x, T p, T q) {
    switch (f) {
    case SCALE: return x * p;
    case SHIFT: return x + p;
    case EXP: return exponential(x);
    case LN: return logarithm(x);
    case SQRT: return root(x);
    case SQUARE: return x * x;
    case ABS: return size_of(x);
    case POWF: return power(x, p);
    default: return x < p ? p : x > q ? q : x; // CLAMP
    }
}

__device__ __forceinline__ T unary_slope(i64 f, T x, T y, T p) {
    switch (f) {
    case SCALE: return p;
    case SHIFT: return 1;
    case EXP: return y;
    case LN: return 1 / x;
    case SQRT: return (T)0.5 / y;
    case SQUARE: return 2 * x;
    case ABS: return x == 0 ? 0 : x < 0 ? -1 : x > 0 ? 1 : x;
    case POWF: return p == 0 ? 0 : p * power(x, p - 1);
    default: return x == y ? 1 : x != x ? x : 0; // CLAMP
    }
}

extern "C" __global__ void unary(Walk w, const T *x, T *to, i64 f, double p, double q) {
    EACH(n, w.count) to[n] = unary_value(f, x[places(w, n).at[0]], (T)p, (T)q);
}
extern "C" __global__ void unary_backward(Walk w, const T *x, const T *y, const T *g, T *to, i64 f, double p) {
    EACH(n, w.count) {
        Places at = places(w, n);
        to[n] = g[at.at[2]] * unary_slope(f, x[at.at[0]], y[at.at[1]], (T)p);
    }
}

extern "C" __global__ void binary(Walk w, const T *a, const T *b, T *to, i64 f) {
    EACH(n, w.count) {
        Places at = places(w, n);
        T x = a[at.at[0]], y = b[at.at[1]];
        to[n] = f == ADD ? x + y : f == SUB ? x - y : f == MUL ? x * y : f == DIV ? x / y : x >= y || x != x ? x : y;
    }
}

extern "C" __global__ void compare(Walk w, const T *a, const T *b, u8 *to, i64 f) {
    EACH(n, w.count) {
        Places at = places(w, n);
        T x = a[at.at[0]], y = b[at.at[1]];
        to[n] = f == EQUAL ? x == y : f == NOT_EQUAL ? x != y : f == LESS ? x < y : f == LESS_OR_EQUAL ? x <= y : f == GREATER ? x > y : x >= y;
    }
}

extern "C" __global__ void add_to(Walk w, const T *x, T *to) {
    EACH(n, w.count) {
        Places at = places(w, n);
        to[at.at[1]] += x[at.at[0]];
    }
}

// The words of the CPU's dropout: number 64 w + i of 256 is decided by word w of draw i.
extern "C" __global__ void dropout(const T *x, T *to, i64 count, i64 key, i64 below, double factor) {
    EACH(n, (count + 255) / 256 * 64) {
        u32 words[4];
        random_four(words, (u64)key, 2, 0, (u32)(n % 64), (u32)(n / 64));
        for (int word = 0; word < 4; word++) {
            i64 at = n / 64 * 256 + word * 64 + n % 64;
            if (at < count) to[at] = words[word] < (u32)below ? 0 : x[at] * (T)factor;
        }
    }
}

__device__ __forceinline__ T sigmoid(T x) {
    T e = exponential(-size_of(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

struct Activated {
    T value, slope;
};
__device__ __forceinline__ Activated activated(i64 f, T x, T p) {
    switch (f) {
    case RELU: return x <= 0 ? Activated{0, 0} : Activated{x, 1};
    case LEAKY_RELU: return x <= 0 ? Activated{p * x, p} : Activated{x, 1};
    case GELU: {
        T cdf = (T)0.5 * (1 + error_function(x * (T)0.70710678118654752440)), density = (T)0.3989422804014327 * exponential((T)-0.5 * x * x);
        return {x * cdf, cdf + x * density};
    }
    case GELU_TANH: {
        T s = sigmoid((T)(2 * 0.7978845608028654) * (x + (T)0.044715 * x * x * x));
        T slope = (T)(2 * 0.7978845608028654) * (1 + (T)(3 * 0.044715) * x * x);
        return {x * s, s + x * s * (1 - s) * slope};
    }
    case SILU: {
        T s = sigmoid(x);
        return {x * s, s + x * s * (1 - s)};
    }
    case TANH: {
        T t = hyperbolic(x);
        return {t, 1 - t * t};
    }
    case SIGMOID: {
        T s = sigmoid(x);
        return {s, s * (1 - s)};
    }
    case ELU: return x <= 0 ? Activated{p * (exponential(x) - 1), p * exponential(x)} : Activated{x, 1};
    case EXPONENTIAL: return {exponential(x), exponential(x)};
    default: return {x, 1};
    }
}

// The remainder in 32 bits where that will do, as in `places`.
__device__ __forceinline__ i64 column_of(i64 n, i64 count, i64 width) { return count <= 0x7fffffff ? (i64)((u32)n % (u32)width) : n % width; }

extern "C" __global__ void activation(const T *x, const T *bias, T *to, i64 count, i64 width, i64 f, double p) {
    EACH(n, count) to[n] = activated(f, bias ? x[n] + bias[column_of(n, count, width)] : x[n], (T)p).value;
}
extern "C" __global__ void activation_backward(const T *x, const T *bias, const T *g, T *to, i64 count, i64 width, i64 f, double p) {
    EACH(n, count) to[n] = g[n] * activated(f, bias ? x[n] + bias[column_of(n, count, width)] : x[n], (T)p).slope;
}

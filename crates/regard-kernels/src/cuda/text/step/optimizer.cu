// One step of Adam, AdamW and SGD over all parameters, by the formulas of step/reference.rs, and the norm of their gradients. A block has
// CHUNK numbers of one parameter.

#define CHUNK 4096

struct Part {
    T *value;
    const T *gradient;
    T *first, *second; // what the rule keeps
    i64 count, block;  // the parameter's numbers, and the first block that has some of them
};

// Gradients are scaled down to a norm where theirs is larger; where the norm is null, never.
struct Clip {
    const double *norm;
    double most;
};

__device__ __forceinline__ const Part &part_of(const Part *parts, i64 n) {
    i64 from = 0, to = n; // the last one that begins here or before
    while (to - from > 1) {
        i64 middle = (from + to) / 2;
        if (parts[middle].block <= (i64)blockIdx.x) from = middle;
        else to = middle;
    }
    return parts[from];
}
__device__ __forceinline__ T clipped(const Clip &clip) {
    if (!clip.norm) return 1;
    double scale = clip.most / (*clip.norm + 1e-6);
    return (T)(scale < 1 ? scale : 1);
}

#define EACH_OF_CHUNK(n, part)                                                                                                               \
    i64 begin = ((i64)blockIdx.x - (part).block) * CHUNK, end = begin + CHUNK < (part).count ? begin + CHUNK : (part).count;                  \
    for (i64 n = begin + threadIdx.x; n < end; n += blockDim.x)

extern "C" __global__ void adam(const Part *parts, i64 count, Clip clip, double rate, double beta1, double beta2, double eps, double decay,
                                i64 decoupled, double correction1, double correction2) {
    Part part = part_of(parts, count);
    T scale = clipped(clip);
    EACH_OF_CHUNK(n, part) {
        T x = part.value[n], g = part.gradient[n] * scale, m = part.first[n];
        if (decoupled) x *= (T)(1 - rate * decay);
        else g += (T)decay * x;
        T first = m + (T)(1 - beta1) * (g - m), second = (T)beta2 * part.second[n] + (T)(1 - beta2) * g * g;
        part.first[n] = first, part.second[n] = second;
        part.value[n] = x - (T)(rate / correction1) * (first / (root(second) / (T)correction2 + (T)eps));
    }
}

extern "C" __global__ void sgd(const Part *parts, i64 count, Clip clip, double rate, double momentum, double decay, i64 nesterov) {
    Part part = part_of(parts, count);
    T scale = clipped(clip);
    EACH_OF_CHUNK(n, part) {
        T x = part.value[n], g = part.gradient[n] * scale + (T)decay * x, along = part.first ? (T)momentum * part.first[n] + g : g;
        if (part.first) part.first[n] = along;
        part.value[n] = x - (T)rate * (nesterov ? g + (T)momentum * along : along);
    }
}

// Toward what stands as the gradient.
extern "C" __global__ void lerp(const Part *parts, i64 count, double weight) {
    Part part = part_of(parts, count);
    EACH_OF_CHUNK(n, part) part.value[n] += (T)weight * (part.gradient[n] - part.value[n]);
}

__device__ __forceinline__ double sum_in_order(double x) {
    __shared__ double parts[WARPS_AT_MOST * WARP];
    parts[threadIdx.x] = x;
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    __syncthreads();
    return parts[0];
}

// Σ g² of each block's chunk; blocks are a power of two wide.
extern "C" __global__ void squares(const Part *parts, i64 count, double *to) {
    Part part = part_of(parts, count);
    double sum = 0;
    EACH_OF_CHUNK(n, part) sum += (double)part.gradient[n] * (double)part.gradient[n];
    sum = sum_in_order(sum);
    if (threadIdx.x == 0) to[blockIdx.x] = sum;
}
// The root of a sum; one block.
extern "C" __global__ void root_of_sum(const double *x, i64 count, double *to) {
    double sum = 0;
    for (i64 n = threadIdx.x; n < count; n += blockDim.x) sum += x[n];
    sum = sum_in_order(sum);
    if (threadIdx.x == 0) *to = sqrt(sum);
}

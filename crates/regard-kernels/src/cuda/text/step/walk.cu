// Where the numbers of up to three operands lie over one shape, and the loop that every thread has.

#define MOST_AXES 6

struct Walk {
    i64 count, axes, sizes[MOST_AXES], strides[3][MOST_AXES];
};
struct Places {
    i64 at[3];
};

// Division in 32 bits takes a tenth of the time.
template <class N> __device__ __forceinline__ Places places_by(const Walk &w, N rest) {
    Places p = {{0, 0, 0}};
    for (int axis = (int)w.axes - 1; axis > 0; axis--) {
        N size = (N)w.sizes[axis], i = rest % size;
        rest /= size;
        for (int k = 0; k < 3; k++) p.at[k] += (i64)i * w.strides[k][axis];
    }
    for (int k = 0; k < 3; k++) p.at[k] += (i64)rest * w.strides[k][0];
    return p;
}
__device__ __forceinline__ Places places(const Walk &w, i64 n) {
    return w.count <= 0x7fffffff ? places_by<u32>(w, (u32)n) : places_by<u64>(w, (u64)n);
}

#define EACH(n, count) for (i64 n = (i64)blockIdx.x * blockDim.x + threadIdx.x; n < (count); n += (i64)gridDim.x * blockDim.x)

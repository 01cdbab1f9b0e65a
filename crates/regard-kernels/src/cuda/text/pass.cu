// What a pass reads and writes, in the order of `ForwardPass` and `BackwardPass`.

struct Forward {
    Result out;
    T *lse, *threshold;
    i64 *index;
    T *log_prob, *weights, *edge_weights;
    T *scratch;
    i64 scratch_row;
};

struct Backward {
    Array grad_out, out;
    const T *grad_weights, *grad_edge_weights, *grad_log_prob, *grad_lse;
    const T *lse, *threshold;
    const i64 *index;
    Result grad_q, grad_k, grad_v;
    T *delta;         // a number for each row, from the queries' pass to the others
    T *own_slabs;     // [tasks, own width]
    T *relative_slabs; // [tasks, 2 max_distance + 1]
    T *key_sums;      // [B, Hq, Nk]
    T *grad_bias;     // of the full bias, where it has a row for each query
    i64 bias_shape[4];
    i64 chunks;       // tasks of a head
    T *scratch;
    i64 scratch_row;
};

__device__ __forceinline__ int lane_id() { return threadIdx.x % WARP; }
__device__ __forceinline__ i64 warp_id() { return ((i64)blockIdx.x * blockDim.x + threadIdx.x) / WARP; }
__device__ __forceinline__ i64 warps() { return (i64)gridDim.x * blockDim.x / WARP; }

// [groups, parts, row] to [groups, parts / PARTS_AT_ONCE rounded up, row]: a thread has a sum.
#define PARTS_AT_ONCE 64

extern "C" __global__ void __launch_bounds__(128) sum_parts(const T *slabs, i64 groups, i64 parts, i64 row, T *to) {
    i64 fewer = (parts + PARTS_AT_ONCE - 1) / PARTS_AT_ONCE;
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < groups * fewer * row; at += (i64)gridDim.x * blockDim.x) {
        i64 d = at % row, part = at / row % fewer * PARTS_AT_ONCE, group = at / row / fewer;
        i64 last = least(part + PARTS_AT_ONCE, parts);
        const T *from = slabs + group * parts * row + d;
        T sum = 0;
#pragma unroll 8
        for (i64 n = part; n < last; n++) sum += from[n * row];
        to[at] = sum;
    }
}

// [B, Hq, parts, width] summed over the parts, the batch, and the heads where `per_head` is 0; in an
// order that the sizes fix. A warp has one sum.
extern "C" __global__ void __launch_bounds__(128) sum_slabs(const T *slabs, i64 batch, i64 heads, i64 parts, i64 row, i64 from, i64 width, i64 per_head, T *to) {
    int lane = lane_id();
    i64 sums = per_head ? heads * width : width, own_heads = per_head ? 1 : heads;
    for (i64 at = warp_id(); at < sums; at += warps()) {
        i64 first = per_head ? at / width : 0, d = at % width;
        T sum = 0;
        for (i64 n = lane; n < batch * own_heads * parts; n += WARP) {
            i64 b = n / parts / own_heads, h = first + n / parts % own_heads, part = n % parts;
            sum += slabs[((b * heads + h) * parts + part) * row + from + d];
        }
        sum = warp_sum(sum);
        if (lane == 0) to[at] = sum;
    }
}

// [B, Hq, Nk] summed over the axes that `own_batch`, `own_heads` and `own_keys` have as 1.
extern "C" __global__ void __launch_bounds__(128) sum_keys(const T *sums, i64 batch, i64 heads, i64 keys, i64 own_batch, i64 own_heads, i64 own_keys, T *to) {
    int lane = lane_id();
    i64 over_b = own_batch == 1 ? batch : 1, over_h = own_heads == 1 ? heads : 1, over_k = own_keys == 1 ? keys : 1;
    for (i64 at = warp_id(); at < own_batch * own_heads * own_keys; at += warps()) {
        i64 b0 = at / own_keys / own_heads, h0 = at / own_keys % own_heads, k0 = at % own_keys;
        T sum = 0;
        for (i64 n = lane; n < over_b * over_h * over_k; n += WARP) {
            i64 b = b0 + n / over_k / over_h, h = h0 + n / over_k % over_h, k = k0 + n % over_k;
            sum += sums[(b * heads + h) * keys + k];
        }
        sum = warp_sum(sum);
        if (lane == 0) to[at] = sum;
    }
}

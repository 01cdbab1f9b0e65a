// Rows and columns to one number each. Parts are added in an order that the shape fixes.

#define WARPS_AT_MOST 32

__device__ __forceinline__ T block_sum(T x) {
    __shared__ T parts[WARPS_AT_MOST];
    x = warp_sum(x);
    __syncthreads(); // nobody reads the sum before any more
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = x;
    __syncthreads();
    T sum = 0;
    for (u32 n = 0; n < blockDim.x / WARP; n++) sum += parts[n];
    return sum;
}
__device__ __forceinline__ T block_max(T x) {
    __shared__ T parts[WARPS_AT_MOST];
    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = x;
    __syncthreads();
    T most = parts[0];
    for (u32 n = 1; n < blockDim.x / WARP; n++) most = larger(most, parts[n]);
    return most;
}

// [rows, n] → [rows, parts]
extern "C" __global__ void sum_rows(const T *x, T *to, i64 n, i64 parts) {
    i64 row = blockIdx.x / parts, part = blockIdx.x % parts, each = (n + parts - 1) / parts;
    i64 from = part * each, end = from + each < n ? from + each : n;
    T sum = 0;
    for (i64 at = from + threadIdx.x; at < end; at += blockDim.x) sum += x[row * n + at];
    sum = block_sum(sum);
    if (threadIdx.x == 0) to[blockIdx.x] = sum;
}

#define COLUMNS 32
#define LANES_OF_ROWS 8

// The sum over the rows of a block's columns, in its first COLUMNS threads.
__device__ __forceinline__ T column_sum(T x) {
    __shared__ T rows[LANES_OF_ROWS][COLUMNS];
    __syncthreads();
    rows[threadIdx.x / COLUMNS][threadIdx.x % COLUMNS] = x;
    __syncthreads();
    T sum = 0;
    for (int n = 0; n < LANES_OF_ROWS; n++) sum += rows[n][threadIdx.x % COLUMNS];
    return sum;
}

// [outer, n, inner] → [outer, parts, inner]
extern "C" __global__ void sum_columns(const T *x, T *to, i64 n, i64 inner, i64 parts) {
    i64 tiles = (inner + COLUMNS - 1) / COLUMNS, tile = blockIdx.x % tiles, rest = blockIdx.x / tiles;
    i64 part = rest % parts, outer = rest / parts, each = (n + parts - 1) / parts;
    i64 end = (part + 1) * each < n ? (part + 1) * each : n, column = tile * COLUMNS + threadIdx.x % COLUMNS;
    T sum = 0;
    if (column < inner)
        for (i64 row = part * each + threadIdx.x / COLUMNS; row < end; row += LANES_OF_ROWS) sum += x[(outer * n + row) * inner + column];
    sum = column_sum(sum);
    if (threadIdx.x < COLUMNS && column < inner) to[rest * inner + column] = sum;
}

// The first of the largest or the smallest numbers of [outer, n, inner], a NaN before any; a warp for each.
extern "C" __global__ void arg_extreme(const T *x, i64 *to, i64 count, i64 n, i64 inner, i64 smallest) {
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / WARP, at = warp < count ? warp : 0;
    const T *from = x + at / inner * n * inner + at % inner;
    u32 lane = threadIdx.x % WARP;
    i64 best = lane < n ? lane : 0;
    T most = from[best * inner];
    for (i64 j = best + WARP; j < n; j += WARP) {
        T y = from[j * inner];
        bool better = smallest ? y < most : y > most;
        if (better || (y != y && most == most)) best = j, most = y;
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        T y = __shfl_xor_sync(ALL, most, step);
        i64 j = __shfl_xor_sync(ALL, best, step);
        bool better = y != y ? most == most : most == most && (smallest ? y < most : y > most);
        bool same = y == most || (y != y && most != most);
        if (better || (same && j < best)) best = j, most = y;
    }
    if (lane == 0 && warp < count) to[warp] = best;
}

// Whether a number comes before another among the largest: a NaN before any, the first among equals.
__device__ __forceinline__ bool is_before(T x, i64 i, T y, i64 j) {
    bool undefined = x != x;
    if (undefined != (y != y)) return undefined;
    return undefined || x == y ? i < j : x > y;
}
// The places of the k largest numbers along the middle axis of [outer, n, inner], the largest first: k rounds, each of which finds the
// first one behind that of the round before. A block for each.
extern "C" __global__ void top_k(const T *x, i64 *to, i64 n, i64 inner, i64 k) {
    __shared__ T numbers[WARPS_AT_MOST];
    __shared__ i64 places_of[WARPS_AT_MOST];
    const T *from = x + blockIdx.x / inner * n * inner + blockIdx.x % inner;
    to += blockIdx.x / inner * k * inner + blockIdx.x % inner;
    T last = 0;
    i64 chosen = -1;
    for (i64 round = 0; round < k; round++) {
        T most = 0;
        i64 best = -1;
        for (i64 j = threadIdx.x; j < n; j += blockDim.x) {
            T y = from[j * inner];
            if (round > 0 && !is_before(last, chosen, y, j)) continue;
            if (best < 0 || is_before(y, j, most, best)) best = j, most = y;
        }
        for (int step = WARP / 2; step > 0; step /= 2) {
            T y = __shfl_xor_sync(ALL, most, step);
            i64 j = __shfl_xor_sync(ALL, best, step);
            if (j >= 0 && (best < 0 || is_before(y, j, most, best))) best = j, most = y;
        }
        __syncthreads(); // nobody reads the round before any more
        if (threadIdx.x % WARP == 0) numbers[threadIdx.x / WARP] = most, places_of[threadIdx.x / WARP] = best;
        __syncthreads();
        last = numbers[0], chosen = places_of[0];
        for (u32 w = 1; w < blockDim.x / WARP; w++)
            if (places_of[w] >= 0 && (chosen < 0 || is_before(numbers[w], places_of[w], last, chosen))) last = numbers[w], chosen = places_of[w];
        if (threadIdx.x == 0) to[round * inner] = chosen;
    }
}

extern "C" __global__ void softmax(const T *x, T *to, i64 width, i64 log) {
    x += (i64)blockIdx.x * width, to += (i64)blockIdx.x * width;
    T most = NEG_INF;
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) most = larger(most, x[c]);
    most = block_max(most);
    T sum = 0;
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) sum += exponential(x[c] - most);
    sum = block_sum(sum);
    T below = log ? logarithm(sum) : sum;
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) to[c] = log ? x[c] - most - below : exponential(x[c] - most) / below;
}
extern "C" __global__ void softmax_backward(const T *y, const T *g, T *to, i64 width, i64 log) {
    i64 row = (i64)blockIdx.x * width;
    y += row, g += row, to += row;
    T sum = 0;
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) sum += log ? g[c] : y[c] * g[c];
    sum = block_sum(sum);
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) to[c] = log ? g[c] - exponential(y[c]) * sum : y[c] * (g[c] - sum);
}

extern "C" __global__ void layer_norm(const T *x, const T *gamma, const T *beta, T *to, T *saved, i64 width, double eps) {
    x += (i64)blockIdx.x * width, to += (i64)blockIdx.x * width;
    T sum = 0;
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) sum += x[c];
    T mean = block_sum(sum) / (T)width, squares = 0;
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) squares += (x[c] - mean) * (x[c] - mean);
    T rstd = 1 / root(block_sum(squares) / (T)width + (T)eps);
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) to[c] = (x[c] - mean) * rstd * gamma[c] + beta[c];
    if (threadIdx.x == 0) saved[2 * (i64)blockIdx.x] = mean, saved[2 * (i64)blockIdx.x + 1] = rstd;
}
extern "C" __global__ void layer_norm_backward(const T *x, const T *gamma, const T *saved, const T *g, T *to, i64 width) {
    i64 row = (i64)blockIdx.x * width;
    x += row, g += row, to += row;
    T mean = saved[2 * (i64)blockIdx.x], rstd = saved[2 * (i64)blockIdx.x + 1], plain = 0, along = 0;
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) {
        T inner = g[c] * gamma[c];
        plain += inner, along += inner * (x[c] - mean) * rstd;
    }
    plain = block_sum(plain) / (T)width;
    along = block_sum(along) / (T)width;
    for (i64 c = threadIdx.x; c < width; c += blockDim.x) to[c] = rstd * (g[c] * gamma[c] - plain - (x[c] - mean) * rstd * along);
}
// The gradients of gamma and beta, [parts, width] each.
extern "C" __global__ void layer_norm_columns(const T *x, const T *saved, const T *g, T *to_gamma, T *to_beta, i64 rows, i64 width, i64 parts) {
    i64 tiles = (width + COLUMNS - 1) / COLUMNS, column = blockIdx.x % tiles * COLUMNS + threadIdx.x % COLUMNS, part = blockIdx.x / tiles;
    i64 each = (rows + parts - 1) / parts, end = (part + 1) * each < rows ? (part + 1) * each : rows;
    T gamma = 0, beta = 0;
    if (column < width)
        for (i64 row = part * each + threadIdx.x / COLUMNS; row < end; row += LANES_OF_ROWS) {
            T up = g[row * width + column];
            gamma += up * (x[row * width + column] - saved[2 * row]) * saved[2 * row + 1], beta += up;
        }
    gamma = column_sum(gamma);
    beta = column_sum(beta);
    if (threadIdx.x < COLUMNS && column < width) to_gamma[part * width + column] = gamma, to_beta[part * width + column] = beta;
}

extern "C" __global__ void cross_entropy(const T *x, const i64 *targets, T *to, T *lse, i64 classes, i64 has_ignored, i64 ignored, double smoothing) {
    i64 row = blockIdx.x, target = targets[row];
    x += row * classes;
    T most = NEG_INF;
    for (i64 c = threadIdx.x; c < classes; c += blockDim.x) most = larger(most, x[c]);
    most = block_max(most);
    T sum = 0, plain = 0, eps = (T)smoothing;
    for (i64 c = threadIdx.x; c < classes; c += blockDim.x) sum += exponential(x[c] - most), plain += x[c] - most;
    T log = logarithm(block_sum(sum));
    plain = block_sum(plain);
    if (threadIdx.x > 0) return;
    bool counts = !(has_ignored && target == ignored);
    T loss = 0;
    if (counts && target >= 0 && target < classes) loss = (1 - eps) * (log - (x[target] - most));
    if (counts && eps > 0) loss += eps / (T)classes * ((T)classes * log - plain);
    to[row] = loss, lse[row] = counts ? most + log : 0;
}
extern "C" __global__ void cross_entropy_backward(const T *x, const i64 *targets, const T *lse, const T *g, T *to, i64 classes, i64 has_ignored,
                                                  i64 ignored, double smoothing) {
    i64 row = blockIdx.x, target = targets[row];
    bool counts = !(has_ignored && target == ignored);
    x += row * classes, to += row * classes;
    T up = g[row], shift = lse[row], eps = (T)smoothing;
    for (i64 c = threadIdx.x; c < classes; c += blockDim.x) {
        T wanted = (c == target ? 1 - eps : 0) + eps / (T)classes;
        to[c] = counts ? up * (exponential(x[c] - shift) - wanted) : 0;
    }
}

// One over how many targets are not ignored, or over 1; one block.
extern "C" __global__ void reciprocal_count(const i64 *targets, T *to, i64 count, i64 has_ignored, i64 ignored) {
    __shared__ i64 parts[WARPS_AT_MOST * WARP];
    parts[threadIdx.x] = 0;
    EACH(n, count) parts[threadIdx.x] += !(has_ignored && targets[n] == ignored);
    __syncthreads();
    if (threadIdx.x > 0) return;
    i64 all = 0;
    for (u32 n = 0; n < blockDim.x; n++) all += parts[n];
    *to = (T)(1.0 / (double)(all > 0 ? all : 1));
}

// One step of RNN, GRU and LSTM for all sequences, by the formulas of step/reference/recurrent.rs. A sequence past its length
// keeps its state. A step is one kernel, the recurrent product in it; of many large states, a product before a kernel of its own.

struct Sequence {
    i64 batch, steps, hidden, cell, reverse;
    const i64 *lengths; // none: all steps
};

#define GATES(cell) ((cell) == CELL_LSTM ? 4 : (cell) == CELL_GRU ? 3 : 1)
#define MOST_GATES 4
// What is kept of a unit for the backward pass; the state before the step is the last.
#define KEPT(cell) ((cell) == CELL_LSTM ? 7 : (cell) == CELL_GRU ? 5 : 2)

// The time of a sequence's step, or −1 past its length.
__device__ __forceinline__ i64 time_of(const Sequence &s, i64 b, i64 step) {
    i64 length = s.lengths ? s.lengths[b] : s.steps;
    return step >= length ? -1 : s.reverse ? length - 1 - step : step;
}

struct States {
    const T *gates; // [B, T, G·H]
    const T *h;     // [B, H]: before the step
    T *next;        // [B, H]: after it
    T *c, *out, *saved;
};

// One unit of one sequence, y being what the recurrent product and its bias say for its gates.
__device__ __forceinline__ void unit_step(const Sequence &s, const States &at, i64 b, i64 j, i64 step, const T (&y)[MOST_GATES]) {
    i64 H = s.hidden, G = GATES(s.cell) * H, K = KEPT(s.cell), n = b * H + j, t = time_of(s, b, step);
    T *kept = at.saved ? at.saved + (step * s.batch + b) * K * H + j : 0, before = at.h[n];
    if (t < 0) {
        for (i64 k = 0; kept && k < K; k++) kept[k * H] = 0;
        at.next[n] = before;
        return;
    }
    const T *x = at.gates + (b * s.steps + t) * G + j;
    T now;
    if (s.cell == CELL_GRU) {
        T r = sigmoid(x[0] + y[0]), z = sigmoid(x[H] + y[1]), m = hyperbolic(x[2 * H] + r * y[2]);
        now = (1 - z) * m + z * before;
        if (kept) kept[0] = r, kept[H] = z, kept[2 * H] = m, kept[3 * H] = y[2];
    } else if (s.cell == CELL_LSTM) {
        T i = sigmoid(x[0] + y[0]), f = sigmoid(x[H] + y[1]), g = hyperbolic(x[2 * H] + y[2]), o = sigmoid(x[3 * H] + y[3]);
        T cell = f * at.c[n] + i * g, squashed = hyperbolic(cell);
        now = o * squashed;
        if (kept) kept[0] = i, kept[H] = f, kept[2 * H] = g, kept[3 * H] = o, kept[4 * H] = squashed, kept[5 * H] = at.c[n];
        at.c[n] = cell;
    } else {
        T sum = x[0] + y[0];
        now = s.cell == CELL_RNN ? hyperbolic(sum) : sum <= 0 ? 0 : sum;
        if (kept) kept[0] = now;
    }
    if (kept) kept[(K - 1) * H] = before;
    at.next[n] = now, at.out[(b * s.steps + t) * H + j] = now;
}

// inner [B, G·H] is the recurrent product with its bias.
extern "C" __global__ void __launch_bounds__(256) cell_step(Sequence s, States at, const T *inner, i64 step) {
    i64 H = s.hidden, G = GATES(s.cell);
    EACH(n, s.batch * H) {
        T y[MOST_GATES] = {};
#pragma unroll
        for (i64 g = 0; g < MOST_GATES; g++)
            if (g < G) y[g] = inner[(n / H * G + g) * H + n % H];
        unit_step(s, at, n / H, n % H, step, y);
    }
}

// Sixteen bytes of numbers, and how many of them of a row are in shared memory at a time, so far apart that no two rows of a warp
// meet in a bank.
#define EVEN (16 / (int)sizeof(T))
#define DEEP (512 / (int)sizeof(T))
#define APART (DEEP + EVEN)
struct alignas(16) Numbers {
    T of[EVEN];
};
__device__ __forceinline__ Numbers numbers_at(const T *x) { return *(const Numbers *)x; }

#define STEP_ROWS 32
#define STEP_UNITS 8

// The same with the product: a block has 32 sequences and 8 units, a thread one of each.
extern "C" __global__ void __launch_bounds__(256) cell_step_fused(Sequence s, States at, const T *w, const T *bias, i64 step) {
    alignas(16) __shared__ T rows[STEP_ROWS * APART];
    alignas(16) __shared__ T weights[MOST_GATES * STEP_UNITS * APART];
    int H = (int)s.hidden, G = (int)GATES(s.cell), across = (H + STEP_UNITS - 1) / STEP_UNITS;
    i64 first = (i64)(blockIdx.x / across) * STEP_ROWS;
    int unit = blockIdx.x % across * STEP_UNITS, row = threadIdx.x / STEP_UNITS, column = threadIdx.x % STEP_UNITS;
    T y[MOST_GATES] = {};
    for (int from = 0; from < H; from += DEEP) {
        int deep = H - from < DEEP ? H - from : DEEP;
        __syncthreads();
        for (int n = threadIdx.x; n < STEP_ROWS * DEEP; n += 256) {
            int r = n / DEEP, k = n % DEEP;
            rows[r * APART + k] = first + r < s.batch && k < deep ? at.h[(first + r) * H + from + k] : 0;
        }
        for (int n = threadIdx.x; n < G * STEP_UNITS * DEEP; n += 256) {
            int r = n / DEEP, k = n % DEEP, j = unit + r % STEP_UNITS;
            weights[r * APART + k] = j < H && k < deep ? w[((i64)(r / STEP_UNITS) * H + j) * H + from + k] : 0;
        }
        __syncthreads();
        for (int k = 0; k < deep; k += EVEN) {
            Numbers x = numbers_at(rows + row * APART + k);
#pragma unroll
            for (int g = 0; g < MOST_GATES; g++) {
                if (g == G) break;
                Numbers v = numbers_at(weights + (g * STEP_UNITS + column) * APART + k);
                for (int e = 0; e < EVEN; e++) y[g] += x.of[e] * v.of[e];
            }
        }
    }
    i64 b = first + row, j = unit + column;
    if (b >= s.batch || j >= H) return;
#pragma unroll
    for (int g = 0; g < MOST_GATES; g++)
        if (bias && g < G) y[g] += bias[g * H + j];
    unit_step(s, at, b, j, step, y);
}

struct Slopes {
    const T *saved, *grad_out;
    T *past; // [B, H]: the gradient that goes past the product, from the step behind and for the one before
    T *grad_c, *grad_gates;
    T *by_h; // [B, G·H]: the gradient of the recurrent product
};

// One unit of one sequence, `grad` being what arrives at its state.
__device__ __forceinline__ void unit_backward(const Sequence &s, const Slopes &at, i64 b, i64 j, i64 step, T grad) {
    i64 H = s.hidden, G = GATES(s.cell) * H, K = KEPT(s.cell), n = b * H + j, t = time_of(s, b, step);
    T *up = at.by_h + b * G + j;
    if (t < 0) {
        for (i64 g = 0; g < G / H; g++) up[g * H] = 0;
        at.past[n] = grad;
        return;
    }
    const T *kept = at.saved + (step * s.batch + b) * K * H + j;
    T *to = at.grad_gates + (b * s.steps + t) * G + j, past = 0;
    if (at.grad_out) grad += at.grad_out[(b * s.steps + t) * H + j];
    if (s.cell == CELL_GRU) {
        T r = kept[0], z = kept[H], m = kept[2 * H], inner = kept[3 * H], before = kept[4 * H], by_m = grad * (1 - z) * (1 - m * m);
        up[0] = to[0] = by_m * inner * r * (1 - r);
        up[H] = to[H] = grad * (before - m) * z * (1 - z);
        to[2 * H] = by_m, up[2 * H] = by_m * r;
        past = grad * z;
    } else if (s.cell == CELL_LSTM) {
        T i = kept[0], f = kept[H], g = kept[2 * H], o = kept[3 * H], squashed = kept[4 * H], cell = kept[5 * H];
        T by_c = at.grad_c[n] + grad * o * (1 - squashed * squashed);
        up[0] = to[0] = by_c * g * i * (1 - i);
        up[H] = to[H] = by_c * cell * f * (1 - f);
        up[2 * H] = to[2 * H] = by_c * i * (1 - g * g);
        up[3 * H] = to[3 * H] = grad * squashed * o * (1 - o);
        at.grad_c[n] = by_c * f;
    } else {
        T y = kept[0];
        up[0] = to[0] = s.cell == CELL_RNN ? grad * (1 - y * y) : y > 0 ? grad : 0;
    }
    at.past[n] = past;
}

// grad_h [B, H] is what arrives at the states.
extern "C" __global__ void __launch_bounds__(256) cell_backward(Sequence s, Slopes at, const T *grad_h, i64 step) {
    EACH(n, s.batch * s.hidden) unit_backward(s, at, n / s.hidden, n % s.hidden, step, grad_h[n]);
}

#define BACK_ROWS 8
#define BACK_WARPS 8

// The same with the product of the step behind, whose gradient is by_next, none at the last: a block has 8 sequences and 32 units,
// a thread one unit and all sequences, a warp one of 8 parts of what is summed over.
extern "C" __global__ void __launch_bounds__(256) cell_backward_fused(Sequence s, Slopes at, const T *w, const T *by_next, i64 step) {
    alignas(16) __shared__ T rows[BACK_ROWS * APART];
    __shared__ T sums[BACK_WARPS * BACK_ROWS * WARP];
    int H = (int)s.hidden, G = (int)GATES(s.cell) * H, across = (H + WARP - 1) / WARP, lane = threadIdx.x % WARP, part = threadIdx.x / WARP;
    i64 first = (i64)(blockIdx.x / across) * BACK_ROWS;
    int unit = blockIdx.x % across * WARP, mine = unit + lane < H ? unit + lane : 0;
    T sum[BACK_ROWS] = {};
    for (int from = 0; by_next && from < G; from += DEEP) {
        __syncthreads();
        for (int n = threadIdx.x; n < BACK_ROWS * DEEP; n += 256) {
            int r = n / DEEP, k = n % DEEP;
            rows[r * APART + k] = first + r < s.batch && from + k < G ? by_next[(first + r) * G + from + k] : 0;
        }
        __syncthreads();
        int begin = part * (DEEP / BACK_WARPS), end = begin + DEEP / BACK_WARPS;
        for (int k = begin; k < end; k += EVEN) {
            T v[EVEN];
            for (int e = 0; e < EVEN; e++) v[e] = from + k + e < G ? w[(i64)(from + k + e) * H + mine] : 0;
#pragma unroll
            for (int r = 0; r < BACK_ROWS; r++) {
                Numbers x = numbers_at(rows + r * APART + k);
                for (int e = 0; e < EVEN; e++) sum[r] += x.of[e] * v[e];
            }
        }
    }
    for (int r = 0; r < BACK_ROWS; r++) sums[(part * BACK_ROWS + r) * WARP + lane] = sum[r];
    __syncthreads();
    // Now a warp has a sequence.
    i64 b = first + part, j = unit + lane;
    if (b >= s.batch || j >= H) return;
    T grad = at.past[b * H + j];
    for (int n = 0; n < BACK_WARPS; n++) grad += sums[(n * BACK_ROWS + part) * WARP + lane];
    unit_backward(s, at, b, j, step, grad);
}

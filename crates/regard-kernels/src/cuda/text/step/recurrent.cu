// One step of RNN, GRU and LSTM for all sequences, by the formulas of step/reference/recurrent.rs. A sequence past its length
// keeps its state.

struct Sequence {
    i64 batch, steps, hidden, cell, reverse;
    const i64 *lengths; // none: all steps
};

#define GATES(cell) ((cell) == CELL_LSTM ? 4 : (cell) == CELL_GRU ? 3 : 1)
// What is kept of a unit for the backward pass; the state before the step is the last.
#define KEPT(cell) ((cell) == CELL_LSTM ? 7 : (cell) == CELL_GRU ? 5 : 2)

// The time of a sequence's step, or −1 past its length.
__device__ __forceinline__ i64 time_of(const Sequence &s, i64 b, i64 step) {
    i64 length = s.lengths ? s.lengths[b] : s.steps;
    return step >= length ? -1 : s.reverse ? length - 1 - step : step;
}

// inner [B, G·H] is the recurrent product with its bias; h and c [B, H] are replaced.
extern "C" __global__ void cell_step(Sequence s, const T *gates, const T *inner, T *h, T *c, T *out, T *saved, i64 step) {
    i64 H = s.hidden, G = GATES(s.cell) * H, K = KEPT(s.cell);
    EACH(n, s.batch * H) {
        i64 b = n / H, j = n % H, t = time_of(s, b, step);
        T *kept = saved ? saved + (step * s.batch + b) * K * H + j : 0, before = h[n];
        if (t < 0) {
            for (i64 k = 0; kept && k < K; k++) kept[k * H] = 0;
            continue;
        }
        const T *x = gates + (b * s.steps + t) * G + j, *y = inner + b * G + j;
        T now;
        if (s.cell == CELL_GRU) {
            T r = sigmoid(x[0] + y[0]), z = sigmoid(x[H] + y[H]), m = hyperbolic(x[2 * H] + r * y[2 * H]);
            now = (1 - z) * m + z * before;
            if (kept) kept[0] = r, kept[H] = z, kept[2 * H] = m, kept[3 * H] = y[2 * H];
        } else if (s.cell == CELL_LSTM) {
            T i = sigmoid(x[0] + y[0]), f = sigmoid(x[H] + y[H]), g = hyperbolic(x[2 * H] + y[2 * H]), o = sigmoid(x[3 * H] + y[3 * H]);
            T cell = f * c[n] + i * g, squashed = hyperbolic(cell);
            now = o * squashed;
            if (kept) kept[0] = i, kept[H] = f, kept[2 * H] = g, kept[3 * H] = o, kept[4 * H] = squashed, kept[5 * H] = c[n];
            c[n] = cell;
        } else {
            T sum = x[0] + y[0];
            now = s.cell == CELL_RNN ? hyperbolic(sum) : sum <= 0 ? 0 : sum;
            if (kept) kept[0] = now;
        }
        if (kept) kept[(K - 1) * H] = before;
        h[n] = now, out[(b * s.steps + t) * H + j] = now;
    }
}

// by_h [B, G·H] is the gradient of the recurrent product; grad_h becomes what goes past it.
extern "C" __global__ void cell_backward(Sequence s, const T *saved, const T *grad_out, T *grad_h, T *grad_c, T *grad_gates, T *by_h, i64 step) {
    i64 H = s.hidden, G = GATES(s.cell) * H, K = KEPT(s.cell);
    EACH(n, s.batch * H) {
        i64 b = n / H, j = n % H, t = time_of(s, b, step);
        T *up = by_h + b * G + j;
        if (t < 0) {
            for (i64 g = 0; g < G / H; g++) up[g * H] = 0;
            continue;
        }
        const T *kept = saved + (step * s.batch + b) * K * H + j;
        T *to = grad_gates + (b * s.steps + t) * G + j, grad = grad_h[n] + (grad_out ? grad_out[(b * s.steps + t) * H + j] : 0), past = 0;
        if (s.cell == CELL_GRU) {
            T r = kept[0], z = kept[H], m = kept[2 * H], inner = kept[3 * H], before = kept[4 * H], by_m = grad * (1 - z) * (1 - m * m);
            up[0] = to[0] = by_m * inner * r * (1 - r);
            up[H] = to[H] = grad * (before - m) * z * (1 - z);
            to[2 * H] = by_m, up[2 * H] = by_m * r;
            past = grad * z;
        } else if (s.cell == CELL_LSTM) {
            T i = kept[0], f = kept[H], g = kept[2 * H], o = kept[3 * H], squashed = kept[4 * H], cell = kept[5 * H];
            T by_c = grad_c[n] + grad * o * (1 - squashed * squashed);
            up[0] = to[0] = by_c * g * i * (1 - i);
            up[H] = to[H] = by_c * cell * f * (1 - f);
            up[2 * H] = to[2 * H] = by_c * i * (1 - g * g);
            up[3 * H] = to[3 * H] = grad * squashed * o * (1 - o);
            grad_c[n] = by_c * f;
        } else {
            T y = kept[0];
            up[0] = to[0] = s.cell == CELL_RNN ? grad * (1 - y * y) : y > 0 ? grad : 0;
        }
        grad_h[n] = past;
    }
}

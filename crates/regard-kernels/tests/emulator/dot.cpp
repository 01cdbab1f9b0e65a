// The kernels of text/dot*.cu and text/decode.cu on the emulator, beside the formula in double precision: the whole text is
// put before this file. Prints each case's largest errors; ends with 1 where one is too large.

#ifndef NORMALIZER
#define NORMALIZER SOFTMAX
#endif

enum Undefined { NOTHING, A_KEY, A_QUERY, INFINITE_KEYS, INFINITE_VALUES };

struct Case {
    int b, hq, hk, nq, nk, d, dv;
    bool causal;
    int left, right; // of a window; -1: none
    int offset;
    bool lengths, segments;
    unsigned grid;
    Undefined undefined = NOTHING;
    double spread = 1;             // of the queries, and so of the scores
};

struct Arrays {
    std::vector<E> q, k, v, g, out;
    std::vector<float> lse, grad_lse, table;
    std::vector<i64> lengths, q_segments, k_segments;
};

static double uniform_draw() { return emulator::draw() / 2147483648.0; }
static double normal_draw() {
    return sqrt(-2 * log(uniform_draw() + 1e-12)) * cos(6.283185307179586 * uniform_draw());
}
static std::vector<E> normals(size_t n, double spread = 1) {
    std::vector<E> x(n);
    for (auto &y : x) y = narrow((float)(spread * normal_draw()));
    return x;
}

static bool allowed(const Case &c, const Arrays &a, int b, int i, int j) {
    int at = i + c.offset;
    if (c.causal && j > at) return false;
    if (c.left >= 0 && (j < at - c.left || j > at + c.right)) return false;
    if (c.lengths && j >= a.lengths[b]) return false;
    return !c.segments || a.q_segments[b * c.nq + i] == a.k_segments[b * c.nk + j];
}

static Problem problem_of(const Case &c, Arrays &a) {
    Problem p = {};
    p.batch = c.b, p.heads = c.hq, p.key_heads = c.hk, p.queries = c.nq, p.keys = c.nk, p.width = c.d, p.value_width = c.dv;
    p.q = {a.q.data(), (i64)c.hq * c.nq * c.d, (i64)c.nq * c.d, c.d};
    p.k = {a.k.data(), (i64)c.hk * c.nk * c.d, (i64)c.nk * c.d, c.d};
    p.v = {a.v.data(), (i64)c.hk * c.nk * c.dv, (i64)c.nk * c.dv, c.dv};
    p.scale = 1 / sqrt((double)c.d), p.offset = c.offset, p.causal = c.causal;
    p.windowed = c.left >= 0, p.left = c.left, p.right = c.right;
    if (c.lengths) p.lengths = a.lengths.data();
#if RELATIVE
    p.relative = a.table.data(), p.relative_head = TABLE, p.max_distance = DISTANCE;
#endif
    if (c.segments) p.q_segments = a.q_segments.data(), p.k_segments = a.k_segments.data();
    return p;
}

struct Exact {
    double q_terms = 0, k_terms = 0; // the squares of what cancels in the gradients of q and k
    std::vector<double> out, lse, threshold, gq, gk, gv, table;
};

static double bias(const Case &c, const Arrays &a, int h, int i, int j) {
#if RELATIVE
    return a.table[h * TABLE + bias_index(j, i + c.offset)];
#endif
    return 0;
}

// The threshold, by halving: of scores for sparsemax, of halved ones for entmax.
static double threshold_of(const std::vector<double> &s, double top) {
    double half = NORMALIZER == ENTMAX15 ? 0.5 : 1, low = top * half - 1, high = top * half;
    for (int step = 0; step < 100; step++) {
        double middle = (low + high) / 2, sum = 0;
        for (double x : s) {
            if (x != x) return x;
            double z = std::max(x * half - middle, 0.0);
            sum += NORMALIZER == ENTMAX15 ? z * z : z;
        }
        (sum >= 1 ? low : high) = middle;
    }
    return low;
}

// A score becomes its weight.
static void weigh(double &s, double lse, double threshold, double &slope) {
    if (NORMALIZER == SOFTMAX) slope = s = exp(s - lse);
    else if (NORMALIZER == ENTMAX15) slope = std::max(s / 2 - threshold, 0.0), s = slope * slope;
    else s = std::max(s - threshold, 0.0), slope = s != s ? s : s > 0;
}

// The formula and its gradients.
static Exact exact_of(const Case &c, const Arrays &a) {
    Exact e;
    e.out.assign((size_t)c.b * c.hq * c.nq * c.dv, 0), e.lse.assign((size_t)c.b * c.hq * c.nq, -INFINITY);
    e.threshold.assign(e.lse.size(), 0);
    e.gq.assign(a.q.size(), 0), e.gk.assign(a.k.size(), 0), e.gv.assign(a.v.size(), 0);
    double scale = 1 / sqrt((double)c.d);
    e.table.assign(a.table.size(), 0);
    for (int b = 0; b < c.b; b++)
        for (int h = 0; h < c.hq; h++)
            for (int i = 0; i < c.nq; i++) {
                size_t row = ((size_t)b * c.hq + h) * c.nq + i, kh = (size_t)b * c.hk + h / (c.hq / c.hk);
                std::vector<double> s(c.nk, -INFINITY);
                double top = -INFINITY, sum = 0;
                for (int j = 0; j < c.nk; j++) {
                    if (!allowed(c, a, b, i, j)) continue;
                    double x = 0;
                    for (int d = 0; d < c.d; d++) x += (double)widen(a.q[row * c.d + d]) * widen(a.k[(kh * c.nk + j) * c.d + d]);
                    s[j] = x * scale + bias(c, a, h, i, j), top = x != x ? x : std::max(top, s[j]);
                }
                if (top == -INFINITY) continue;
                for (auto &x : s) sum += exp(x - top);
                e.lse[row] = top + log(sum);
                e.threshold[row] = threshold_of(s, top);
                std::vector<double> slopes(c.nk, 0);
                for (int j = 0; j < c.nk; j++)
                    if (allowed(c, a, b, i, j)) weigh(s[j], e.lse[row], e.threshold[row], slopes[j]);
                for (int d = 0; d < c.dv; d++)
                    for (int j = 0; j < c.nk; j++)
                        if (allowed(c, a, b, i, j)) e.out[row * c.dv + d] += s[j] * widen(a.v[(kh * c.nk + j) * c.dv + d]);
                double weighted = 0, slope = 0;
                std::vector<double> dp(c.nk, 0);
                for (int j = 0; j < c.nk; j++) {
                    if (!allowed(c, a, b, i, j)) continue;
                    for (int d = 0; d < c.dv; d++) dp[j] += (double)widen(a.g[row * c.dv + d]) * widen(a.v[(kh * c.nk + j) * c.dv + d]);
                    weighted += slopes[j] * dp[j], slope += slopes[j];
                }
                double delta = weighted / slope - (NORMALIZER == SOFTMAX ? a.grad_lse[row] : 0);
                for (int j = 0; j < c.nk; j++) {
                    if (slopes[j] == 0) continue;
                    for (int d = 0; d < c.dv; d++) e.gv[(kh * c.nk + j) * c.dv + d] += s[j] * widen(a.g[row * c.dv + d]);
                    double ds = slopes[j] * (dp[j] - delta);
#if RELATIVE
                    e.table[h * TABLE + bias_index(j, i + c.offset)] += ds;
#endif
                    ds *= scale;
                    double term = slopes[j] * dp[j] * scale;
                    for (int d = 0; d < c.d; d++) {
                        double by_k = term * widen(a.k[(kh * c.nk + j) * c.d + d]), by_q = term * widen(a.q[row * c.d + d]);
                        if (by_k - by_k == 0 && by_q - by_q == 0) e.q_terms += by_k * by_k, e.k_terms += by_q * by_q;
                        e.gq[row * c.d + d] += ds * widen(a.k[(kh * c.nk + j) * c.d + d]);
                        e.gk[(kh * c.nk + j) * c.d + d] += ds * widen(a.q[row * c.d + d]);
                    }
                }
            }
    return e;
}

// The error's length beside the truth's and that of the terms it sums up, which may cancel: a wrong index is near 1, roundings of 16 bits
// are below 0.01.
template <class X> static bool close(const char *what, const std::vector<X> &found, const std::vector<double> &exact, double terms = 0) {
    double error = 0, length = 1e-30 + terms;
    for (size_t n = 0; n < exact.size(); n++) {
        double x;
        if constexpr (sizeof(X) == 2) x = widen(found[n]);
        else x = found[n];
        if (x == exact[n] || (x != x && exact[n] != exact[n])) continue;
        error += (x - exact[n]) * (x - exact[n]), length += exact[n] * exact[n];
    }
    double relative = sqrt(error / length);
    printf(" %s %.2e", what, relative);
    return relative < (STORED == SAME ? 2e-6 : 0.012);
}

static bool run(const Case &c) {
    Arrays a;
    a.q = normals((size_t)c.b * c.hq * c.nq * c.d, c.spread), a.k = normals((size_t)c.b * c.hk * c.nk * c.d);
    a.v = normals((size_t)c.b * c.hk * c.nk * c.dv), a.g = normals((size_t)c.b * c.hq * c.nq * c.dv);
    for (int n = 0; n < c.b; n++) a.lengths.push_back(n == 1 ? 0 : emulator::draw() % (c.nk + 1));
    for (int n = 0; n < c.b; n++) {
        for (int i = 0, at = 0; i < c.nq; i++) a.q_segments.push_back(at += emulator::draw() % 90 == 0);
        for (int j = 0, at = 0; j < c.nk; j++) a.k_segments.push_back(at += emulator::draw() % 90 == 0);
    }
    size_t rows = (size_t)c.b * c.hq * c.nq;
    // A value that some rows do not see: it is theirs alone who do. Backward a key, or a query.
    // Keys that every query scores −∞, as the formula has it: one infinite, one so large that its first part is.
    if (c.undefined == INFINITE_KEYS) {
        for (size_t n = 0; n < rows; n++) a.q[n * c.d] = narrow(1 + fabsf(widen(a.q[n * c.d])));
        for (int n = 0; n < c.b * c.hk; n++)
            for (int j = 1; j < c.nk; j += 70) a.k[((size_t)n * c.nk + j) * c.d] = narrow(j % 4 == 1 ? -INFINITY : -3.4e38f);
    }
    for (int n = 0; c.undefined == INFINITE_VALUES && n < c.b * c.hk; n++) a.v[((size_t)n * c.nk + c.nk / 2) * c.dv] = narrow(INFINITY);
#ifdef DECODE
    // A cache holds anything behind its length.
    for (int n = 0; c.lengths && n < c.b * c.hk; n++)
        for (size_t j = a.lengths[n / c.hk]; j < (size_t)c.nk; j++) a.k[((size_t)n * c.nk + j) * c.d] = a.v[((size_t)n * c.nk + j) * c.dv] = narrow(NAN);
    if (!c.lengths && (c.causal || c.left >= 0))
        for (int n = 0; n < c.b * c.hk; n++) a.v[((size_t)n * c.nk + c.nk / 2) * c.dv] = narrow(NAN);
#elif !BACKWARD
    if ((c.causal || c.left >= 0 || c.lengths || c.segments))
        for (int n = 0; n < c.b * c.hk; n++) a.v[((size_t)n * c.nk + c.nk / 2) * c.dv] = narrow(NAN);
#else
    for (int n = 0; c.undefined == A_KEY && n < c.b * c.hk; n++)
        a.k[((size_t)n * c.nk + c.nk / 2) * c.d] = narrow(NAN), a.v[((size_t)n * c.nk + c.nk / 2) * c.dv] = narrow(INFINITY);
    for (int n = 0; c.undefined == A_QUERY && n < c.b * c.hq; n++)
        a.q[((size_t)n * c.nq + c.nq / 2) * c.d] = narrow(NAN), a.g[((size_t)n * c.nq + c.nq / 2) * c.dv] = narrow(NAN);
#endif
    for (size_t n = 0; n < rows; n++) a.grad_lse.push_back((float)normal_draw());
#if RELATIVE
    for (int n = 0; n < c.hq * TABLE; n++) a.table.push_back((float)normal_draw());
#endif
    a.out.assign(rows * c.dv, (E)0x7fff), a.lse.assign(rows, NAN);
    Problem p = problem_of(c, a);
    Exact exact = exact_of(c, a);
#ifdef DECODE
    printf("b%d h%d/%d n%dx%d d%d/%d%s window %d,%d offset %d%s:", c.b, c.hq, c.hk, c.nq, c.nk, c.d, c.dv, c.causal ? " causal" : "", c.left, c.right,
           c.offset, c.lengths ? " lengths" : "");
    Decode t = {};
    t.chunk = 64 * (1 + emulator::draw() % 3), t.splits = (c.nk + t.chunk - 1) / t.chunk;
    std::vector<float> outs(rows * t.splits * VALUES, NAN), tops(rows * t.splits, NAN), totals(rows * t.splits, NAN);
    t.outs = outs.data(), t.tops = tops.data(), t.totals = totals.data();
    Forward o = {};
    o.out = {a.out.data(), (i64)c.hq * c.nq * c.dv, (i64)c.nq * c.dv, c.dv};
    o.lse = a.lse.data();
    emulator::launch({(unsigned)(t.splits * c.b * c.hk), 1, 1}, 128, [&] { decode_forward(p, t); });
    // What nobody sees sends nobody the slow way.
    bool good = true;
    for (float x : outs) good &= x == x || !c.lengths;
    printf("%s", good ? "" : " NaN of what is hidden");
    emulator::launch({2, 1, 1}, 128, [&] { decode_merge(p, o, t); });
    good &= close("out", a.out, exact.out);
    good &= close("lse", a.lse, exact.lse);
    printf("%s\n", good ? "" : " WRONG");
    return good;
}
#elif defined(SPLIT)
    printf("b%d h%d/%d n%dx%d d%d/%d%s window %d,%d offset %d%s:", c.b, c.hq, c.hk, c.nq, c.nk, c.d, c.dv, c.causal ? " causal" : "", c.left, c.right,
           c.offset, c.lengths ? " lengths" : "");
    Dot t = {};
    t.sections = 1 + emulator::draw() % (c.b * c.hq);
    // Rows that no kernel comes to would be computed again.
    std::vector<float> statistics(rows, 0), undefined(c.b * c.hk * c.nk, 0);
    t.statistics = statistics.data(), t.undefined_keys = undefined.data();
    std::vector<std::vector<u32>> kept;
    // An array's three parts, and a map of them.
    auto parts = [&](const Array &x, i64 h, i64 n, i64 d, int box) {
        i64 padded = (d + 7) / 8 * 8, words = c.b * h * n * padded / 2;
        kept.emplace_back(PARTS * words + 4);
        u32 *to = (u32 *)(((u64)kept.back().data() + 15) / 16 * 16);
        emulator::launch({2, 1, 1}, 256, [&] { split_rows(x, c.b, h, n, d, padded, to); });
        return map_of(to, padded, n, h, PARTS * c.b, padded, n * padded, h * n * padded, box);
    };
    bool good = true;
#if BACKWARD
    for (size_t n = 0; n < a.out.size(); n++) a.out[n] = (float)exact.out[n];
    for (size_t n = 0; n < rows; n++) a.lse[n] = (float)exact.lse[n];
    t.padded = (c.nq + 127) / 128 * 128;
    std::vector<float> lse2(c.b * c.hq * t.padded + 4, NAN), deltas(c.b * c.hq * t.padded + 4, NAN);
    auto aligned = [](std::vector<float> &x) { return (float *)(((u64)x.data() + 15) / 16 * 16); };
    t.lse2 = aligned(lse2), t.deltas = aligned(deltas);
    std::vector<E> gq(a.q.size(), NAN), gk(a.k.size(), NAN), gv(a.v.size(), NAN);
    Backward g = {};
    Array grad = {a.g.data(), (i64)c.hq * c.nq * c.dv, (i64)c.nq * c.dv, c.dv};
    g.grad_out = grad, g.out = grad, g.out.data = a.out.data();
    g.lse = a.lse.data(), g.grad_lse = a.grad_lse.data();
    g.grad_q = {gq.data(), p.q.b, p.q.h, p.q.n}, g.grad_k = {gk.data(), p.k.b, p.k.h, p.k.n}, g.grad_v = {gv.data(), p.v.b, p.v.h, p.v.n};
    emulator::launch({3, 1, 1}, 128, [&] { split_deltas(p, g, t); });
    TensorMap q = parts(p.q, c.hq, c.nq, c.d, BLOCK), dy = parts(grad, c.hq, c.nq, c.dv, BLOCK);
    TensorMap k = parts(p.k, c.hk, c.nk, c.d, TILE), v = parts(p.v, c.hk, c.nk, c.dv, TILE);
    emulator::launch({c.grid, 1, 1}, THREADS, [&] { split_backward_queries(p, g, t, q, dy, k, v); });
    q = parts(p.q, c.hq, c.nq, c.d, TILE), dy = parts(grad, c.hq, c.nq, c.dv, TILE);
    k = parts(p.k, c.hk, c.nk, c.d, BLOCK), v = parts(p.v, c.hk, c.nk, c.dv, BLOCK);
    emulator::launch({c.grid, 1, 1}, THREADS, [&] { split_backward_keys(p, g, t, q, dy, k, v); });
    emulator::launch({2, 1, 1}, 128, [&] { undefined_gradients(p, g, t); });
    good &= close("gq", gq, exact.gq, exact.q_terms);
    good &= close("gk", gk, exact.gk, exact.k_terms);
    good &= close("gv", gv, exact.gv);
#else
    TensorMap q = parts(p.q, c.hq, c.nq, c.d, BLOCK), k = parts(p.k, c.hk, c.nk, c.d, TILE), v = parts(p.v, c.hk, c.nk, c.dv, TILE);
    Forward o = {};
    o.out = {a.out.data(), (i64)c.hq * c.nq * c.dv, (i64)c.nq * c.dv, c.dv};
    o.lse = a.lse.data();
    emulator::launch({c.grid, 1, 1}, THREADS, [&] { split_forward(p, o, t, q, k, v); });
    emulator::launch({2, 1, 1}, 128, [&] { undefined_outputs(p, o, t); });
    good &= close("out", a.out, exact.out);
    good &= close("lse", a.lse, exact.lse);
#endif
    printf("%s\n", good ? "" : " WRONG");
    return good;
}
#else
    Dot t = {};
    t.sections = 1 + emulator::draw() % (c.b * c.hq);
    // Rows that no kernel comes to would be computed again.
    std::vector<float> statistics(rows, 0), undefined(c.b * c.hk * c.nk, 0);
    t.statistics = statistics.data(), t.undefined_keys = undefined.data();
    t.q_blocks = (c.nq + 63) / 64, t.k_blocks = (c.nk + 63) / 64;
    std::vector<i64> q_span(2 * c.b * t.q_blocks, -1), k_span(2 * c.b * t.k_blocks, -1);
    if (c.segments) {
        emulator::launch({2, 1, 1}, 128, [&] { dot_segments(p, q_span.data(), k_span.data(), t.q_blocks, t.k_blocks); });
        t.q_span = q_span.data(), t.k_span = k_span.data();
    }
    printf("b%d h%d/%d n%dx%d d%d/%d%s window %d,%d offset %d%s%s:", c.b, c.hq, c.hk, c.nq, c.nk, c.d, c.dv, c.causal ? " causal" : "", c.left, c.right,
           c.offset, c.lengths ? " lengths" : "", c.segments ? " segments" : "");
    auto map = [&](const Array &x, i64 d, i64 n, i64 h, int box) { return map_of(x.data, d, n, h, c.b, x.n, x.h, x.b, box); };
    bool good = true;
#ifndef BACKWARD
    Forward o = {};
    o.out = {a.out.data(), (i64)c.hq * c.nq * c.dv, (i64)c.nq * c.dv, c.dv};
    o.lse = a.lse.data();
    std::vector<float> threshold(rows, NAN);
    o.threshold = threshold.data();
    TensorMap q = map(p.q, c.d, c.nq, c.hq, QUERIES), k = map(p.k, c.d, c.nk, c.hk, KEYS), v = map(p.v, c.dv, c.nk, c.hk, KEYS);
    emulator::launch({c.grid, 1, 1}, THREADS, [&] { dot_forward(p, o, t, q, k, v); });
    emulator::launch({2, 1, 1}, 128, [&] { undefined_outputs(p, o, t); });
    good &= close("out", a.out, exact.out);
    good &= close("lse", a.lse, exact.lse);
#if NORMALIZER != SOFTMAX
    good &= close("threshold", threshold, exact.threshold);
#endif
#else
    for (size_t n = 0; n < a.out.size(); n++) a.out[n] = narrow((float)exact.out[n]);
    for (size_t n = 0; n < rows; n++) a.lse[n] = (float)exact.lse[n];
    t.padded = (c.nq + 127) / 128 * 128;
    std::vector<float> lse2(c.b * c.hq * t.padded + 4, NAN), deltas(c.b * c.hq * t.padded + 4, NAN);
    auto aligned = [](std::vector<float> &x) { return (float *)(((u64)x.data() + 15) / 16 * 16); };
    t.lse2 = aligned(lse2), t.deltas = aligned(deltas);
    std::vector<E> gq(a.q.size(), 0x7fff), gk(a.k.size(), 0x7fff), gv(a.v.size(), 0x7fff);
    Backward g = {};
    Array grad = {a.g.data(), (i64)c.hq * c.nq * c.dv, (i64)c.nq * c.dv, c.dv};
    g.grad_out = grad, g.out = grad, g.out.data = a.out.data();
    std::vector<float> threshold(exact.threshold.begin(), exact.threshold.end());
    g.threshold = threshold.data(), g.lse = a.lse.data(), g.grad_lse = a.grad_lse.data();
    g.grad_q = {gq.data(), p.q.b, p.q.h, p.q.n}, g.grad_k = {gk.data(), p.k.b, p.k.h, p.k.n}, g.grad_v = {gv.data(), p.v.b, p.v.h, p.v.n};
    emulator::launch({3, 1, 1}, 128, [&] { dot_deltas(p, g, t); });
    TensorMap q = map(p.q, c.d, c.nq, c.hq, BY_QUERY_QUERIES), dy = map(grad, c.dv, c.nq, c.hq, BY_QUERY_QUERIES);
    TensorMap k = map(p.k, c.d, c.nk, c.hk, BY_QUERY_KEYS), v = map(p.v, c.dv, c.nk, c.hk, BY_QUERY_KEYS);
#if RELATIVE
    g.chunks = (c.nq + 127) / 128 * CONSUMERS;
    std::vector<float> slabs(c.b * c.hq * g.chunks * TABLE, NAN), table(c.hq * TABLE, 0);
    g.relative_slabs = slabs.data();
#endif
    emulator::launch({c.grid, 1, 1}, THREADS, [&] { dot_backward_queries(p, g, t, q, dy, k, v); });
#if RELATIVE
    for (size_t n = 0; n < slabs.size(); n++) table[n / TABLE / g.chunks % c.hq * TABLE + n % TABLE] += slabs[n];
    good &= close("table", table, exact.table);
#endif
    q = map(p.q, c.d, c.nq, c.hq, BY_KEY_QUERIES), dy = map(grad, c.dv, c.nq, c.hq, BY_KEY_QUERIES);
    k = map(p.k, c.d, c.nk, c.hk, BY_KEY_KEYS), v = map(p.v, c.dv, c.nk, c.hk, BY_KEY_KEYS);
    emulator::launch({c.grid, 1, 1}, THREADS, [&] { dot_backward_keys(p, g, t, q, dy, k, v); });
    emulator::launch({2, 1, 1}, 128, [&] { undefined_gradients(p, g, t); });
    good &= close("gq", gq, exact.gq, exact.q_terms);
    good &= close("gk", gk, exact.gk, exact.k_terms);
    good &= close("gv", gv, exact.gv);
#endif
    printf("%s\n", good ? "" : " WRONG");
    return good;
}
#endif

int main() {
    int d = WIDTH, dv = VALUES;
    std::vector<Case> cases = {
        {1, 1, 1, 64, 64, d, dv, false, -1, 0, 0, false, false, 1},
        {1, 2, 1, 130, 300, d, dv, false, -1, 0, 0, false, false, 2},
        {1, 1, 1, 257, 257, d, dv, true, -1, 0, 0, false, false, 2},
        {2, 2, 2, 1, 1, d, dv, false, -1, 0, 0, false, false, 1},
        {1, 2, 2, 200, 500, d - 8, dv - 24, true, -1, 0, 300, false, false, 3},
        {1, 2, 1, 300, 260, d, dv, true, -1, 0, -40, false, false, 1},
        {1, 1, 1, 500, 500, d, dv, false, 70, 9, 0, false, false, 2},
        {1, 1, 1, 400, 400, d, dv, true, 40, 0, 0, false, false, 1},
        {3, 2, 2, 100, 333, d, dv, false, -1, 0, 0, true, false, 2},
        {2, 1, 1, 260, 390, 8, 16, false, -1, 0, 0, true, false, 1},
    };
#ifdef SPLIT
    cases.push_back({1, 1, 1, 70, 90, 3, 5, true, -1, 0, 20, false, false, 1});
    cases.push_back({1, 2, 1, 130, 300, d, dv, false, -1, 0, 0, false, false, 2, INFINITE_KEYS});
    cases.push_back({1, 1, 1, 157, 157, d, dv, true, -1, 0, 0, false, false, 2, INFINITE_KEYS});
    if (!BACKWARD) cases.push_back({1, 2, 1, 130, 300, d, dv, false, -1, 0, 0, false, false, 2, INFINITE_VALUES});
#endif
#ifdef DECODE
    cases = {
        {1, 1, 1, 1, 64, d, dv, false, -1, 0, 0, false, false, 1},
        {2, 8, 2, 1, 500, d, dv, false, -1, 0, 0, false, false, 1},
        {3, 4, 1, 3, 333, d, dv, true, -1, 0, 300, true, false, 1},
        {1, 16, 1, 1, 17, d - 8, dv - 24, false, -1, 0, 0, false, false, 1},
        {1, 2, 1, 8, 400, d, dv, true, 70, 0, 350, false, false, 1},
        {1, 2, 2, 1, 1, 8, 16, false, -1, 0, 0, false, false, 1},
    };
#endif
#if BACKWARD
    cases.push_back({1, 1, 1, 157, 157, d, dv, true, -1, 0, 0, false, false, 2, A_KEY});
    cases.push_back({1, 2, 1, 150, 260, d, dv, true, -1, 0, 60, false, false, 1, A_QUERY});
    cases.push_back({1, 1, 1, 300, 300, d, dv, false, 40, 9, 0, false, false, 1, A_KEY});
    cases.push_back({1, 1, 1, 300, 300, d, dv, false, 40, 9, 0, false, false, 1, A_QUERY});
    cases.push_back({3, 2, 1, 100, 233, d - 8, dv - 24, false, -1, 0, 0, true, false, 2, A_KEY});
#endif
#if NORMALIZER != SOFTMAX
    // Scores so near to each other that more are above the threshold than there is room for.
    cases.push_back({1, 1, 1, 70, 700, d, dv, false, -1, 0, 0, false, false, 1, NOTHING, 0.02});
    cases.push_back({1, 1, 1, 70, 700, d, dv, true, -1, 0, 500, false, false, 1, NOTHING, 0.2});
#endif
#if SEGMENTS
    for (auto &c : cases) c.segments = true;
#endif
    bool good = true;
    for (const Case &c : cases) good &= run(c);
    return good ? 0 : 1;
}

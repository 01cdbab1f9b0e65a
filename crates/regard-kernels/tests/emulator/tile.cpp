// The kernels of text/tile*.cu on the emulator, beside the formula in double precision: the whole text is put before this
// file. Prints each case's largest errors; ends with 1 where one is too large.

enum Undefined { NOTHING, A_KEY, A_QUERY };

struct Case {
    int b, hq, hk, nq, nk, d, dv;
    bool causal;
    int left, right; // of a window; -1: none
    int offset;
    bool lengths;
    int bias[4] = {0, 0, 0, 0}; // of the full bias: 1 where an axis is shared
    Undefined undefined = NOTHING;
    int reach = 9; // of a bias by distance
};

struct Arrays {
    std::vector<E> q, k, v, g, out;
    std::vector<float> lse, grad_lse, grad_weights, key_bias, full_bias, alibi, relative;
    std::vector<i64> lengths, q_segments, k_segments;
    std::vector<u8> dense;
};

static double normal_draw() {
    double x = (emulator::draw() + 1.0) / 2147483649.0, y = emulator::draw() / 2147483648.0;
    return sqrt(-2 * log(x)) * cos(6.283185307179586 * y);
}
static std::vector<E> normals(size_t count) {
    std::vector<E> all(count);
    for (auto &x : all) x = narrow((float)normal_draw());
    return all;
}
static std::vector<float> floats(size_t count, double spread) {
    std::vector<float> all(count);
    for (auto &x : all) x = (float)(normal_draw() * spread);
    return all;
}

static size_t full_index(const Case &c, int b, int h, int i, int j) {
    int size[4] = {c.b, c.hq, c.nq, c.nk}, at[4] = {b, h, i, j};
    size_t index = 0;
    for (int n = 0; n < 4; n++) index = c.bias[n] ? index : index * size[n] + at[n];
    return index;
}

static Problem problem_of(const Case &c, Arrays &a) {
    Problem p = {};
    p.batch = c.b, p.heads = c.hq, p.key_heads = c.hk, p.queries = c.nq, p.keys = c.nk, p.width = c.d, p.value_width = c.dv;
    p.q = {a.q.data(), (i64)c.hq * c.nq * c.d, (i64)c.nq * c.d, c.d};
    p.k = {a.k.data(), (i64)c.hk * c.nk * c.d, (i64)c.nk * c.d, c.d};
    p.v = {a.v.data(), (i64)c.hk * c.nk * c.dv, (i64)c.nk * c.dv, c.dv};
    p.scale = 1 / sqrt((double)c.d), p.offset = c.offset, p.causal = c.causal, p.normalizer = NORMALIZER;
    if (c.left >= 0) p.windowed = 1, p.left = c.left, p.right = c.right;
    if (c.lengths) p.lengths = a.lengths.data();
#if HAS_SEGMENTS
    p.q_segments = a.q_segments.data(), p.k_segments = a.k_segments.data();
#endif
#if HAS_DENSE
    p.dense = {a.dense.data(), (i64)c.nq * c.nk, 0, c.nk, 1};
#endif
#if HAS_KEY_BIAS
    p.key_bias = {a.key_bias.data(), (i64)c.hq * c.nk, c.nk, 0, 1};
#endif
#if HAS_FULL_BIAS
    i64 strides[4], size[4] = {c.b, c.hq, c.nq, c.nk}, stride = 1;
    for (int n = 3; n >= 0; n--) strides[n] = c.bias[n] ? 0 : stride, stride *= c.bias[n] ? 1 : size[n];
    p.full_bias = {a.full_bias.data(), strides[0], strides[1], strides[2], strides[3]};
#endif
#if HAS_ALIBI
    p.alibi = a.alibi.data();
#endif
#if HAS_RELATIVE
    p.relative = a.relative.data(), p.relative_head = 2 * c.reach + 1, p.max_distance = c.reach;
#endif
#if HAS_DROPOUT
    p.dropped = 1, p.dropout_seed = 77, p.dropped_below = 1u << 30, p.kept = 4.0 / 3;
#endif
    return p;
}

static bool allowed(const Case &c, const Arrays &a, int b, int i, int j) {
    int at = i + c.offset;
    if (c.causal && j > at) return false;
    if (c.left >= 0 && (j < at - c.left || j > at + c.right)) return false;
    if (c.lengths && j >= a.lengths[b]) return false;
#if HAS_SEGMENTS
    if (a.q_segments[b * c.nq + i] != a.k_segments[b * c.nk + j]) return false;
#endif
#if HAS_DENSE
    if (!a.dense[((size_t)b * c.nq + i) * c.nk + j]) return false;
#endif
    return true;
}

struct Exact {
    double terms = 0; // the squares of all scores' gradients
    std::vector<double> out, lse, weights, gq, gk, gv, key_sums, bias, table;
};

static Exact exact_of(const Case &c, const Arrays &a, const Problem &p) {
    Exact e;
    size_t rows = (size_t)c.b * c.hq * c.nq;
    e.out.assign(rows * c.dv, 0), e.lse.assign(rows, -INFINITY), e.weights.assign(rows * c.nk, 0), e.gq.assign(a.q.size(), 0), e.gk.assign(a.k.size(), 0);
    e.gv.assign(a.v.size(), 0), e.key_sums.assign((size_t)c.b * c.hq * c.nk, 0), e.bias.assign(a.full_bias.size(), 0), e.table.assign(a.relative.size(), 0);
    for (int b = 0; b < c.b; b++)
        for (int h = 0; h < c.hq; h++)
            for (int i = 0; i < c.nq; i++) {
                size_t row = ((size_t)b * c.hq + h) * c.nq + i, kh = (size_t)b * c.hk + h / (c.hq / c.hk);
                std::vector<double> s(c.nk, 0), w(c.nk, 0), keep(c.nk, 1), dp(c.nk, 0);
                std::vector<bool> seen(c.nk, false);
                double top = -INFINITY, total = 0;
                auto entry = [&](int j) {
                    int far = j - (i + c.offset);
                    far = far < -c.reach ? -c.reach : far > c.reach ? c.reach : far;
                    return h * (2 * c.reach + 1) + far + c.reach;
                };
                for (int j = 0; j < c.nk; j++) {
                    if (!allowed(c, a, b, i, j)) continue;
                    for (int d = 0; d < c.d; d++) s[j] += (double)widen(a.q[row * c.d + d]) * widen(a.k[(kh * c.nk + j) * c.d + d]);
                    double bias = 0;
#if HAS_KEY_BIAS
                    bias += a.key_bias[((size_t)b * c.hq + h) * c.nk + j];
#endif
#if HAS_FULL_BIAS
                    bias += a.full_bias[full_index(c, b, h, i, j)];
#endif
#if HAS_ALIBI
                    bias -= (double)a.alibi[h] * abs(j - (i + c.offset));
#endif
#if HAS_RELATIVE
                    bias += a.relative[entry(j)];
#endif
                    // A bias of −∞ hides its key, whatever that is.
                    s[j] = bias == -INFINITY ? -INFINITY : s[j] * p.scale + bias;
                    keep[j] = keep_factor(p, b * c.hq + h, i, j);
                    seen[j] = !(s[j] == -INFINITY);
                    top = fmax(top, s[j]);
                }
                for (int j = 0; j < c.nk; j++)
                    if (seen[j]) total += exp(s[j] - top);
                if (total > 0 || total != total) e.lse[row] = top + log(total);
                double delta = 0;
                for (int j = 0; j < c.nk; j++) {
                    if (!seen[j]) continue;
                    w[j] = NORMALIZER == SOFTMAX ? exp(s[j] - e.lse[row]) : NORMALIZER == SIGMOID ? 1 / (1 + exp(-s[j])) : s[j];
                    e.weights[row * c.nk + j] = w[j] * keep[j];
                    for (int d = 0; d < c.dv; d++) {
                        e.out[row * c.dv + d] += w[j] * keep[j] * widen(a.v[(kh * c.nk + j) * c.dv + d]);
                        dp[j] += (double)widen(a.g[row * c.dv + d]) * widen(a.v[(kh * c.nk + j) * c.dv + d]);
                    }
#if HAS_ARRIVING
                    dp[j] += a.grad_weights[row * c.nk + j];
#endif
                    dp[j] *= keep[j];
                    delta += w[j] * dp[j];
                }
                delta -= a.grad_lse[row];
                for (int j = 0; j < c.nk; j++) {
                    if (!seen[j]) continue;
                    double ds = NORMALIZER == SOFTMAX ? w[j] * (dp[j] - delta) : NORMALIZER == SIGMOID ? w[j] * (1 - w[j]) * dp[j] : dp[j];
                    for (int d = 0; d < c.dv; d++) e.gv[(kh * c.nk + j) * c.dv + d] += w[j] * keep[j] * widen(a.g[row * c.dv + d]);
                    e.key_sums[((size_t)b * c.hq + h) * c.nk + j] += ds;
                    if (ds - ds == 0) e.terms += ds * ds;
#if HAS_FULL_BIAS
                    e.bias[full_index(c, b, h, i, j)] += ds;
#endif
#if HAS_RELATIVE
                    e.table[entry(j)] += ds;
#endif
                    for (int d = 0; d < c.d; d++) {
                        e.gq[row * c.d + d] += ds * p.scale * widen(a.k[(kh * c.nk + j) * c.d + d]);
                        e.gk[(kh * c.nk + j) * c.d + d] += ds * p.scale * widen(a.q[row * c.d + d]);
                    }
                }
            }
    return e;
}

// The error's length beside the truth's, and that of the terms it sums up, which may cancel: a wrong index is near 1, roundings of 16
// bits are below 0.02. What is no number must be none in both.
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
    return relative < (STORED == SAME ? 3e-6 : STORED == BF16 ? 0.016 : 0.004);
}

static bool run(const Case &c) {
    Arrays a;
    a.q = normals((size_t)c.b * c.hq * c.nq * c.d), a.k = normals((size_t)c.b * c.hk * c.nk * c.d);
    a.v = normals((size_t)c.b * c.hk * c.nk * c.dv), a.g = normals((size_t)c.b * c.hq * c.nq * c.dv);
    size_t rows = (size_t)c.b * c.hq * c.nq;
    for (int n = 0; n < c.b; n++) a.lengths.push_back(n == 1 ? 0 : emulator::draw() % (c.nk + 1));
    for (int n = 0; n < c.b; n++) {
        for (int i = 0, at = 0; i < c.nq; i++) a.q_segments.push_back(at += emulator::draw() % 20 == 0);
        for (int j = 0, at = 0; j < c.nk; j++) a.k_segments.push_back(at += emulator::draw() % 20 == 0);
    }
    for (size_t n = 0; n < (size_t)c.b * c.nq * c.nk; n++) a.dense.push_back(emulator::draw() % 7 > 0);
    a.grad_lse = NORMALIZER == SOFTMAX ? floats(rows, 1) : std::vector<float>(rows, 0);
    a.grad_weights = floats(rows * c.nk, 1), a.key_bias = floats((size_t)c.b * c.hq * c.nk, 1), a.alibi = floats(c.hq, 0.1);
    size_t full = 1;
    int size[4] = {c.b, c.hq, c.nq, c.nk};
    for (int n = 0; n < 4; n++) full *= c.bias[n] ? 1 : size[n];
    a.full_bias = floats(full, 1), a.relative = floats((size_t)c.hq * (2 * c.reach + 1), 1);
    a.out.assign(rows * c.dv, narrow(NAN)), a.lse.assign(rows, NAN);
    bool hides = c.causal || c.left >= 0 || c.lengths || HAS_SEGMENTS || HAS_DENSE;
    int key = c.nk / 2, query = c.nq / 2;
    // A bias of −∞ hides the same key from every query that has a number of its own for it.
    if (HAS_FULL_BIAS && !c.bias[3])
        for (int b = 0; b < c.b; b++)
            for (int h = 0; h < c.hq; h++)
                for (int i = 0; i < c.nq; i += c.bias[2] ? 1 : 2) a.full_bias[full_index(c, b, h, i, key)] = -INFINITY, hides = c.nk > 1;
    // A value that some rows do not see: it is theirs alone who do. Backward a key, or a query.
    if (!BACKWARD && hides)
        for (int n = 0; n < c.b * c.hk; n++) a.v[((size_t)n * c.nk + key) * c.dv] = narrow(NAN);
    for (int n = 0; BACKWARD && c.undefined == A_KEY && n < c.b * c.hk; n++)
        a.k[((size_t)n * c.nk + key) * c.d] = narrow(NAN), a.v[((size_t)n * c.nk + key) * c.dv] = narrow(INFINITY);
    for (int n = 0; BACKWARD && c.undefined == A_QUERY && n < c.b * c.hq; n++)
        a.q[((size_t)n * c.nq + query) * c.d] = narrow(NAN), a.g[((size_t)n * c.nq + query) * c.dv] = narrow(NAN);
    Problem p = problem_of(c, a);
    Exact exact = exact_of(c, a, p);
    printf("b%d h%d/%d n%dx%d d%d/%d%s window %d,%d offset %d%s:", c.b, c.hq, c.hk, c.nq, c.nk, c.d, c.dv, c.causal ? " causal" : "", c.left, c.right, c.offset,
           c.lengths ? " lengths" : "");
    bool good = true;
    Tile t = {};
    unsigned group = c.hq / c.hk, blocks = (group * c.nq + ROWS - 1) / ROWS, grid = c.b * c.hk * blocks, head_blocks = (c.nq + ROWS - 1) / ROWS;
    t.blocks = blocks;
#if !BACKWARD
    std::vector<float> tops(rows, NAN), totals(rows, NAN), weights(rows * c.nk, 0);
    t.tops = tops.data(), t.totals = totals.data();
    Forward o = {};
    o.out = {a.out.data(), (i64)c.hq * c.nq * c.dv, (i64)c.nq * c.dv, c.dv};
    o.lse = a.lse.data(), o.weights = weights.data();
    emulator::launch({grid, 1, 1}, THREADS, [&] { tile_forward(p, o, t); });
    good &= close("out", a.out, exact.out);
    if (NORMALIZER == SOFTMAX) good &= close("lse", a.lse, exact.lse);
    emulator::launch({grid, 1, 1}, THREADS, [&] { tile_weights(p, o, t); });
    good &= close("weights", weights, exact.weights);
#else
    for (size_t n = 0; n < a.out.size(); n++) a.out[n] = narrow((float)exact.out[n]);
    for (size_t n = 0; n < rows; n++) a.lse[n] = (float)exact.lse[n];
    std::vector<E> gq(a.q.size(), narrow(NAN)), gk(a.k.size(), narrow(NAN)), gv(a.v.size(), narrow(NAN));
    std::vector<float> delta(rows, 0), key_sums((size_t)c.b * c.hq * c.nk, 0), grad_bias(full, NAN);
    Backward g = {};
    Array grad = {a.g.data(), (i64)c.hq * c.nq * c.dv, (i64)c.nq * c.dv, c.dv};
    g.grad_out = grad, g.out = grad, g.out.data = a.out.data();
    g.lse = a.lse.data(), g.grad_lse = a.grad_lse.data(), g.grad_weights = HAS_ARRIVING ? a.grad_weights.data() : nullptr;
    g.grad_q = {gq.data(), p.q.b, p.q.h, p.q.n}, g.grad_k = {gk.data(), p.k.b, p.k.h, p.k.n}, g.grad_v = {gv.data(), p.v.b, p.v.h, p.v.n};
    g.delta = delta.data(), g.key_sums = key_sums.data(), g.grad_bias = grad_bias.data();
    for (int n = 0; n < 4; n++) g.bias_shape[n] = c.bias[n] ? 1 : size[n];
    emulator::launch({2, 1, 1}, 128, [&] { if (NORMALIZER == SOFTMAX) tile_deltas(p, g); });
#if HAS_ARRIVING && NORMALIZER == SOFTMAX
    emulator::launch({grid, 1, 1}, THREADS, [&] { tile_arriving(p, g, t); });
#endif
    emulator::launch({grid, 1, 1}, THREADS, [&] { tile_backward_queries(p, g, t); });
    good &= close("gq", gq, exact.gq);
    unsigned key_blocks = (c.nk + OWN_KEYS - 1) / OWN_KEYS;
    emulator::launch({c.b * c.hk * key_blocks, 1, 1}, THREADS, [&] { tile_backward_keys(p, g, key_blocks); });
#if !TOGETHER
    emulator::launch({c.b * c.hk * key_blocks, 1, 1}, THREADS, [&] { tile_backward_values(p, g, key_blocks); });
#endif
    good &= close("gk", gk, exact.gk);
    good &= close("gv", gv, exact.gv);
    good &= close("keys", key_sums, exact.key_sums, exact.terms);
#if HAS_FULL_BIAS
    if (!c.bias[2]) {
        unsigned tiles = (c.nk + KEYS - 1) / KEYS, parts = c.bias[3] ? 1 : tiles;
        emulator::launch({(unsigned)(g.bias_shape[0] * g.bias_shape[1]) * head_blocks * parts, 1, 1}, THREADS, [&] { tile_backward_bias(p, g, head_blocks, tiles); });
        good &= close("bias", grad_bias, exact.bias, exact.terms);
    }
#endif
#if HAS_RELATIVE
    int table = 2 * c.reach + 1;
    std::vector<float> slabs((size_t)c.b * c.hq * head_blocks * table, 0), sums(c.hq * table, 0);
    g.relative_slabs = slabs.data();
    emulator::launch({c.b * c.hq * head_blocks, 1, 1}, THREADS, [&] { tile_backward_relative(p, g, head_blocks); });
    for (size_t n = 0; n < slabs.size(); n++) sums[n / table / head_blocks % c.hq * table + n % table] += slabs[n];
    good &= close("table", sums, exact.table, exact.terms);
#endif
#endif
    printf("%s\n", good ? "" : " WRONG");
    return good;
}

int main() {
    int d = WIDTH, dv = VALUES, odd = ALIGNED ? 8 : 3;
    std::vector<Case> cases = {
        {1, 1, 1, 64, 64, d, dv, false, -1, 0, 0, false},
        {1, 2, 1, 70, 100, d, dv, true, -1, 0, 30, false, {1, 0, 0, 0}},
        {2, 3, 3, 33, 130, d - odd, dv - odd, false, 20, 9, 0, false, {1, 1, 0, 0}},
        {3, 4, 2, 9, 65, d, dv, true, -1, 0, 50, true, {0, 0, 0, 1}},
        // Of one key that is kept, nothing but roundings would be left.
        {2, 2, 2, 1, HAS_DROPOUT ? 17 : 1, d, dv, false, -1, 0, 0, false, {1, 1, 1, 0}},
        {1, 2, 2, 130, 40, d, dv, true, -1, 0, -40, false, {0, 1, 0, 0}, NOTHING, 200},
        {1, 1, 1, 20, 20, odd, odd, true, -1, 0, 0, false, {0, 0, 0, 0}, NOTHING, 0},
    };
    // Wide rows take long here, and differ in nothing but their width.
    if (WIDTH + VALUES > 256) cases = {cases[1], cases[3], cases[6]};
    if (BACKWARD) {
        cases.push_back({1, 1, 1, 57, 57, d, dv, true, -1, 0, 0, false, {0, 0, 0, 0}, A_KEY});
        cases.push_back({1, 2, 1, 50, 60, d, dv, true, -1, 0, 10, false, {0, 0, 0, 0}, A_QUERY});
        cases.push_back({1, 1, 1, 90, 90, d, dv, false, 20, 9, 0, false, {0, 0, 0, 0}, A_KEY});
    }
    bool good = true;
    for (const Case &c : cases) good &= run(c);
    return good ? 0 : 1;
}

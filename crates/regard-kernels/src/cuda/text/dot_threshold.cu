// Forward of sparsemax and entmax with α = 1.5: a row's weights follow from its scores z (halved for
// entmax) and a threshold τ at which max(z − τ, 0), or its squares, sum up to 1. Scores are computed
// again in each pass: first their largest, and of each row's four threads the two largest, whose own threshold is
// at most τ; then the scores above that are collected, and τ is closed in on over them; then the values. Rows with
// more of them than there is room for close in on τ in passes of their own, until no row of the block moves any
// more. On a support that does not change τ has a closed form; one that is too large gives a τ that is too
// large (entmax), one that is too small a τ that is too small.

#define QUERIES (SIDE * CONSUMERS)
#define THREADS (WARPGROUP * (CONSUMERS + 1))
#define STAGES 2
#define Q_BYTES (QUERIES * WIDTH * 2)
#define K_BYTES (KEYS * WIDTH * 2)
#define V_BYTES (KEYS * VALUES * 2)
#define PASSES 24 // at most, between the first and the last

struct Barriers {
    u64 q_full, q_empty, k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES], voted;
    int votes[3]; // whether a row still moves, of this pass, the one before and the next
};

__device__ __forceinline__ void copy_threshold(const Problem &p, const Dot &t, const TensorMap &q_map, const TensorMap &k_map, const TensorMap &v_map,
                                               u8 *q, u8 *k, u8 *v, Barriers &bars) {
    u32 keys = 0, values = 0, blocks = 0, votes = 0;
    for (int n = blockIdx.x; n < pieces<QUERIES>(p); n += gridDim.x) {
        Piece x = piece_of<QUERIES, KEYS>(p, t, n);
        Sight sees;
        int first = tile_before<KEYS>(t, x, x.span.last, sees);
        if (first < 0) continue;
        barrier_wait(&bars.q_empty, blocks % 2 ^ 1);
        barrier_expect(&bars.q_full, Q_BYTES);
        copy_tile<WIDTH>(q, QUERIES, q_map, &bars.q_full, x.i0, x.at.h, x.at.b);
        blocks++;
        for (bool again = true, last = false;; last = !again) {
            for (int tile = first; tile >= 0; tile = tile_before<KEYS>(t, x, tile, sees), keys++) {
                int stage = keys % STAGES;
                barrier_wait(&bars.k_empty[stage], keys / STAGES % 2 ^ 1);
                barrier_expect(&bars.k_full[stage], K_BYTES);
                copy_tile<WIDTH>(k + stage * K_BYTES, KEYS, k_map, &bars.k_full[stage], tile * KEYS, x.hk, x.at.b);
                if (!last) continue;
                stage = values % STAGES;
                barrier_wait(&bars.v_empty[stage], values / STAGES % 2 ^ 1);
                barrier_expect(&bars.v_full[stage], V_BYTES);
                copy_tile<VALUES>(v + stage * V_BYTES, KEYS, v_map, &bars.v_full[stage], tile * KEYS, x.hk, x.at.b);
                values++;
            }
            if (last) break;
            barrier_wait(&bars.voted, votes % 2);
            again = *(volatile int *)&bars.votes[votes % 3];
            votes++;
        }
    }
}

__device__ __forceinline__ float row_sum(float x) {
    x += __shfl_xor_sync(ALL, x, 1);
    return x + __shfl_xor_sync(ALL, x, 2);
}

// Sums over the scores above τ of a thread's part of a row.
struct Above {
    float count = 0, sum = 0, squares = 0; // how many, their sum, and that of their squares

    __device__ __forceinline__ void add(float z, float tau) {
        bool above = z > tau;
        count += above ? 1.0f : 0.0f;
        z = above ? z : 0.0f;
        sum += z;
        squares += z * z;
    }

    // The whole row's; its four threads must be here.
    __device__ __forceinline__ Above of_row() const { return {row_sum(count), row_sum(sum), row_sum(squares)}; }
};

// A row's threshold as it is closed in on, relative to its largest score.
struct Search {
    float low, high, tau;
    bool done;

    __device__ __forceinline__ void begin(float from, bool nothing) { low = tau = from, high = 0, done = nothing; }

    __device__ __forceinline__ void step(const Above &row) {
        if (done) return;
        auto [count, sum, squares] = row;
#if NORMALIZER == ENTMAX15
        // Σ (z − τ)²
        float here = squares - 2 * tau * sum + count * tau * tau;
        float mean = sum / count, inside = (1 - (squares - sum * mean)) / count;
        float next = mean - sqrtf(inside > 0 ? inside : 0.0f), tangent = tau + (here - 1) / (2 * (sum - count * tau));
#else
        float here = sum - count * tau, next = (sum - 1) / count, tangent = next;
#endif
        if (here >= 1) low = tau;
        else high = tau;
        // A support that is the row's own gives τ itself from either side.
        if (!(next >= low && next <= high)) next = tangent >= low && tangent <= high ? tangent : 0.5f * (low + high);
        done = fabsf(next - tau) <= 1e-7f * (1 + fabsf(tau)) || !(high > low);
        tau = next;
    }

    // All of it over scores that are there, where `whole` says that they are all; the whole warp must be here.
    template <typename Add> __device__ __forceinline__ void close_in(Add add, bool whole) {
        for (int pass = 0; pass < PASSES && __any_sync(ALL, whole && !done); pass++) {
            Above above;
            add(above);
            Above row = above.of_row();
            if (whole) step(row);
        }
    }
};

// The two largest of a thread's scores of a row.
struct Largest {
    float first = NEG_INF, second = NEG_INF;

    __device__ __forceinline__ void add(float x) {
        second = fmaxf(second, fminf(first, x));
        first = fmaxf(first, x);
    }
};

// What a thread collects of its two rows: number n of row r is `[(n * 2 + r) * WARPGROUP]` on from its own.
struct Collected {
    float *own;
    int count[2];

    __device__ __forceinline__ Collected(float *lists) : own(lists + threadIdx.x % WARPGROUP), count{0, 0} {}

    __device__ __forceinline__ void add(float z, float tau, int r) {
        if (!(z > tau)) return;
        if (count[r] < ROOM) own[(count[r] * 2 + r) * WARPGROUP] = z;
        count[r]++;
    }

    // Closes in on a row's threshold, unless there was no room.
    __device__ __forceinline__ void close_in(Search &search, int r) const {
        int full = count[r] > ROOM;
        full |= __shfl_xor_sync(ALL, full, 1);
        full |= __shfl_xor_sync(ALL, full, 2);
        search.close_in([&](Above &above) {
            for (int n = 0; !full && n < count[r]; n++) above.add(own[(n * 2 + r) * WARPGROUP], search.tau);
        }, !full);
    }
};

// What a warpgroup keeps of its place in the ring of tiles.
struct Ring {
    u32 keys, values, blocks, votes;
};

// A tile's scores, masked; the tile is free again.
__device__ __forceinline__ void scores_of(float (&s)[KEYS / 2], u64 q_at, u64 k_at, Barriers &bars, Ring &ring, const Seen &seen, Sight sees, int tile) {
    int stage = ring.keys % STAGES;
    barrier_wait(&bars.k_full[stage], ring.keys / STAGES % 2);
    products_begin();
    product_by_rows<WIDTH, QUERIES, KEYS>(s, q_at, k_at + further(stage * K_BYTES));
    products_commit();
    products_wait<0>();
    settled(s);
    if (threadIdx.x % WARP == 0) barrier_arrive(&bars.k_empty[stage]);
    ring.keys++;
    if (sees == SOME) apply_mask(s, seen, tile * KEYS);
}

__device__ __forceinline__ void write_threshold(const Problem &p, const Forward &o, const Dot &t, const Piece &x, int first, float (&out)[VALUES / 2],
                                                const float (&top)[2], const float (&total)[2], const float (&tau)[2]) {
    float one[2] = {1, 1}, statistic[2] = {tau[0] + top[0] * TO_Z(p), tau[1] + top[1] * TO_Z(p)};
    store_rows(out, one, o.out.data + x.at.b * o.out.b + x.at.h * o.out.h + first * o.out.n, o.out.n, p.queries - first, p.value_width);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int row = own_row() + 8 * r;
        if (threadIdx.x % 4 != 0 || first + row >= p.queries) continue;
        i64 at = ((i64)x.at.b * p.heads + x.at.h) * p.queries + first + row;
        bool empty = total[r] == 0;
        if (o.lse) o.lse[at] = empty ? NEG_INF : top[r] * (float)p.scale + logf(total[r]);
        if (o.threshold) o.threshold[at] = empty ? 0.0f : statistic[r];
    }
    note_undefined(p, t, x.at.b, x.at.h, first, out, statistic);
}

__device__ __forceinline__ void compute_threshold(const Problem &p, const Forward &o, const Dot &t, u8 *q, u8 *k, u8 *v, Barriers &bars, float *lists) {
    int group = threadIdx.x / WARPGROUP - 1;
    bool leads = threadIdx.x % WARP == 0;
    float scale2 = (float)(p.scale * (double)LOG2_E), to_z = TO_Z(p);
    u64 q_at = matrix(shared_address(q) + group * SIDE * ROW_BYTES, 0);
    u64 k_at = matrix(shared_address(k), 0), v_at = matrix(shared_address(v), KEYS * ROW_BYTES);
    Ring ring = {0, 0, 0, 0};
    for (int n = blockIdx.x; n < pieces<QUERIES>(p); n += gridDim.x) {
        Piece x = piece_of<QUERIES, KEYS>(p, t, n);
        int first = x.i0 + group * SIDE;
        float s[KEYS / 2], out[VALUES / 2];
        float tau[2] = {0, 0};
        Running rows;
        rows.clear();
#pragma unroll
        for (int d = 0; d < VALUES / 2; d++) out[d] = 0;
        Sight sees, first_sees;
        int first_tile = tile_before<KEYS>(t, x, x.span.last, first_sees);
        if (first_tile >= 0) {
            Seen seen = seen_by(p, x, first);
            barrier_wait(&bars.q_full, ring.blocks++ % 2);
            sees = first_sees;
            Largest largest[2];
            for (int tile = first_tile; tile >= 0; tile = tile_before<KEYS>(t, x, tile, sees)) {
                scores_of(s, q_at, k_at, bars, ring, seen, sees, tile);
#pragma unroll
                for (int c = 0; c < KEYS / 2; c++) largest[c / 2 % 2].add(s[c]);
                float factor[2];
                rows.take(s, scale2, factor);
            }
            rows.join();
            Search search[2];
            float from[2];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                bool nothing = rows.top[r] == NEG_INF, undefined = rows.total[r] != rows.total[r];
                from[r] = nothing ? 0.0f : rows.top[r] * to_z;
                search[r].begin(-1, nothing || undefined);
                search[r].close_in([&](Above &above) {
                    above.add(largest[r].first * to_z - from[r], search[r].tau);
                    above.add(largest[r].second * to_z - from[r], search[r].tau);
                }, true);
                // Less what rounding may have added.
                search[r].begin(undefined ? NOT_A_NUMBER : fmaxf(search[r].tau - 1e-5f, -1), nothing || undefined);
            }
            for (int pass = 0;; pass++) {
                // What all warps say before the block goes on.
                bool moves = pass == 0 || (pass < PASSES && __any_sync(ALL, !search[0].done || !search[1].done));
                if (leads && group == 0 && threadIdx.x % WARPGROUP == 0) bars.votes[(ring.votes + 1) % 3] = 0;
                if (leads && moves) *(volatile int *)&bars.votes[ring.votes % 3] = 1;
                if (leads) barrier_arrive(&bars.voted);
                barrier_wait(&bars.voted, ring.votes % 2);
                bool again = __shfl_sync(ALL, leads ? *(volatile int *)&bars.votes[ring.votes % 3] : 0, 0); // the lane that arrived reads
                ring.votes++;
                if (!again) break;
                sees = first_sees;
                if (pass == 0) {
                    Collected collected(lists + group * 2 * ROOM * WARPGROUP);
                    for (int tile = first_tile; tile >= 0; tile = tile_before<KEYS>(t, x, tile, sees)) {
                        scores_of(s, q_at, k_at, bars, ring, seen, sees, tile);
#pragma unroll
                        for (int c = 0; c < KEYS / 2; c++) collected.add(s[c] * to_z - from[c / 2 % 2], search[c / 2 % 2].tau, c / 2 % 2);
                    }
#pragma unroll
                    for (int r = 0; r < 2; r++) collected.close_in(search[r], r);
                } else {
                    Above above[2];
                    for (int tile = first_tile; tile >= 0; tile = tile_before<KEYS>(t, x, tile, sees)) {
                        scores_of(s, q_at, k_at, bars, ring, seen, sees, tile);
#pragma unroll
                        for (int c = 0; c < KEYS / 2; c++) above[c / 2 % 2].add(s[c] * to_z - from[c / 2 % 2], search[c / 2 % 2].tau);
                    }
#pragma unroll
                    for (int r = 0; r < 2; r++) search[r].step(above[r].of_row());
                }
            }
            u32 weights[KEYS / 16][4];
            sees = first_sees;
            for (int tile = first_tile; tile >= 0; tile = tile_before<KEYS>(t, x, tile, sees)) {
                scores_of(s, q_at, k_at, bars, ring, seen, sees, tile);
                int stage = ring.values % STAGES;
#pragma unroll
                for (int c = 0; c < KEYS / 2; c++) s[c] = weight_of(above(s[c] * to_z - from[c / 2 % 2] - search[c / 2 % 2].tau));
                as_left(s, weights);
                barrier_wait(&bars.v_full[stage], ring.values / STAGES % 2);
                products_begin();
                product_across<KEYS>(out, weights, v_at + further(stage * V_BYTES));
                products_commit();
                products_wait<0>();
                settled(out);
                if (leads) barrier_arrive(&bars.v_empty[stage]);
                ring.values++;
            }
            if (leads) barrier_arrive(&bars.q_empty);
            tau[0] = search[0].tau, tau[1] = search[1].tau;
        }
        write_threshold(p, o, t, x, first, out, rows.top, rows.total, tau);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    dot_forward(const __grid_constant__ Problem p, const __grid_constant__ Forward o, const __grid_constant__ Dot t, const __grid_constant__ TensorMap q_map,
                const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
    SHARED_MEMORY(memory);
    u8 *q = memory + (0 - shared_address(memory)) % GROUP_BYTES, *k = q + Q_BYTES, *v = k + STAGES * K_BYTES;
    Barriers &bars = *(Barriers *)(v + STAGES * V_BYTES);
    if (threadIdx.x == 0) {
        barrier_init(&bars.q_full, 1), barrier_init(&bars.q_empty, 4 * CONSUMERS), barrier_init(&bars.voted, 4 * CONSUMERS);
        for (int n = 0; n < STAGES; n++) {
            barrier_init(&bars.k_full[n], 1), barrier_init(&bars.k_empty[n], 4 * CONSUMERS);
            barrier_init(&bars.v_full[n], 1), barrier_init(&bars.v_empty[n], 4 * CONSUMERS);
        }
        for (int n = 0; n < 3; n++) bars.votes[n] = 0;
        barriers_ready();
    }
    __syncthreads();
    if (threadIdx.x < WARPGROUP) {
        fewer_registers<CONSUMERS == 2 ? 24 : 32>();
        if (threadIdx.x == 0) copy_threshold(p, t, q_map, k_map, v_map, q, k, v, bars);
    } else {
        more_registers<CONSUMERS == 2 ? 240 : 160>();
        compute_threshold(p, o, t, q, k, v, bars, (float *)(&bars + 1));
    }
}

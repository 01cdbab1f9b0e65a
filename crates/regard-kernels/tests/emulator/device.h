// A GPU's block on a CPU: threads are fibers that a seeded scheduler switches between, and Hopper's
// instructions are functions that do what NVIDIA's PTX ISA says of them. Copies and products happen at
// any time between being asked for and being waited for, drawn from the seed; memory that a copy will
// write holds NaN until then. A block in which nothing can go on is a deadlock and ends the program.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <setjmp.h>
#include <ucontext.h>
#include <vector>

#define EMULATED
#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static // blocks run one after another
#define __grid_constant__
#define __launch_bounds__(...)
#define asm(...) emulator::convert(y, x)
#define threadIdx (emulator::current->thread)
#define blockIdx (emulator::current->block)
#define gridDim (emulator::current->grid)
#define blockDim (emulator::current->size)
#define SHARED_MEMORY(name) unsigned char *name = emulator::shared + emulator::LEAD

struct Three {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
// Hints to the caches.
template <class X> X __ldcs(const X *at) { return *at; }
template <class X> X __ldg(const X *at) { return *at; }
template <class X> void __stcs(X *at, X x) { *at = x; }
inline float __int_as_float(int x) {
    float y;
    memcpy(&y, &x, 4);
    return y;
}
inline float __uint_as_float(unsigned x) { return __int_as_float((int)x); }

namespace emulator {

[[noreturn]] inline void fail(const char *what) {
    printf("the emulator: %s\n", what);
    exit(1);
}

inline uint64_t state = 1;
inline uint32_t draw() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33);
}

// Shared memory begins at an address that no tile may begin at.
const int LEAD = 16;
alignas(1024) inline unsigned char shared[240 << 10];

struct Fiber {
    Three thread, block, grid, size;
    ucontext_t context;
    // Where it goes on. A jump asks nothing of the kernel, which saving a context does.
    jmp_buf place;
    std::unique_ptr<char[]> stack;
    bool begun = false, done = false;
    uint64_t products = 0;
};
inline Fiber *current;
const size_t STACK = 64 << 10;
inline jmp_buf scheduler;
inline uint64_t changes;

// Back to the scheduler, until it comes to this fiber again.
inline void leave() {
    if (_setjmp(current->place) == 0) _longjmp(scheduler, 1);
}

inline void wait_for(const std::function<bool()> &ready) {
    while (!ready()) leave();
    changes++;
}

// Lets others go on, or not.
inline void pause() {
    if (draw() % 2 == 0) return;
    changes++;
    leave();
}

// Threads that wait for each other.
struct Meeting {
    unsigned here = 0;
    uint64_t turn = 0;
    void arrive(unsigned all) {
        if (++here > all) fail("more threads arrive at a barrier than it has");
        changes++;
        if (here == all) here = 0, turn++;
    }
    void meet(unsigned all) {
        uint64_t before = turn;
        arrive(all);
        wait_for([&] { return turn != before; });
    }
};

struct Barrier {
    int count = 0, pending = 0, bytes = 0;
    unsigned phase = 0;
    void settle() {
        changes++;
        if (pending < 0) fail("more arrive at an mbarrier than it counts");
        if (pending == 0 && bytes == 0) pending = count, phase ^= 1;
    }
};

// One product of a warpgroup.
struct Product {
    float *d[128];
    const uint32_t *a[128];
    uint64_t a_at = 0, b_at = 0;
    int n = 0, add = 0, across_a = 0, across_b = 0, threads = 0;
    bool in_registers = false;
};

struct Warpgroup {
    std::vector<Product> products; // of which the first `done` are
    uint64_t first = 0;            // the number of products[0]
    std::vector<uint64_t> groups;  // the ends of committed groups that are not done
    Meeting meeting;
};

inline std::map<const void *, Barrier> barriers;
inline std::vector<std::function<void()>> copies;
inline std::vector<Meeting> warps, turns;
inline std::vector<uint64_t> slots;
inline std::vector<Warpgroup> warpgroups;

inline uint32_t address(const void *at) { return (uint32_t)((const unsigned char *)at - shared) + 4096; }
inline unsigned char *at_address(uint32_t address) {
    if (address < 4096 || address - 4096 >= sizeof shared) fail("a product reads outside of shared memory");
    return shared + (address - 4096);
}
inline uint32_t swizzled(uint32_t address) { return address ^ (address >> 7 & 7) << 4; }

inline void convert(unsigned short &y, const float &x) {
#if STORED != F16
    uint32_t bits;
    memcpy(&bits, &x, 4);
    y = x != x ? 0x7fff : (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#else
    _Float16 h = (_Float16)x;
    memcpy(&y, &h, 2);
#endif
}
inline void convert(float &y, const unsigned short &x) {
#if STORED != F16
    uint32_t bits = (uint32_t)x << 16;
    memcpy(&y, &bits, 4);
#else
    _Float16 h;
    memcpy(&h, &x, 2);
    y = (float)h;
#endif
}

// A number of a matrix that a descriptor names, as the PTX ISA lays out its swizzled canonical layouts.
inline float number(uint64_t matrix, bool across, int mn, int k) {
    if (matrix >> 62 != 1) fail("a matrix is not swizzled by 128 bytes");
    uint32_t start = (matrix & 0x3fff) << 4, leading = (matrix >> 16 & 0x3fff) << 4, stride = (matrix >> 32 & 0x3fff) << 4;
    uint32_t at = across ? start + mn / 64 * leading + mn % 64 * 2 + k / 8 * stride + k % 8 * 128
                         : start + mn / 8 * stride + mn % 8 * 128 + k * 2;
    unsigned short stored;
    memcpy(&stored, at_address(swizzled(at)), 2);
    float x;
    convert(x, stored);
    return x;
}

inline void compute(Product &p) {
    std::vector<float> a(64 * 16), b(p.n * 16);
    for (int n = 0; n < p.n; n++)
        for (int k = 0; k < 16; k++) b[n * 16 + k] = number(p.b_at, p.across_b, n, k);
    for (int m = 0; m < 64; m++)
        for (int k = 0; k < 16; k++) {
            if (!p.in_registers) {
                a[m * 16 + k] = number(p.a_at, p.across_a, m, k);
                continue;
            }
            // Registers: 0 and 1 are rows 8 apart, 2 and 3 the same of the next 8 columns.
            int thread = m / 16 * 32 + m % 8 * 4 + k % 8 / 2, word = m % 16 / 8 + k / 8 * 2;
            unsigned short stored = (unsigned short)(p.a[thread][word] >> 16 * (k % 2));
            convert(a[m * 16 + k], stored);
        }
    for (int m = 0; m < 64; m++)
        for (int n = 0; n < p.n; n++) {
            float sum = 0;
            for (int k = 0; k < 16; k++) sum += a[m * 16 + k] * b[n * 16 + k];
            int thread = m / 16 * 32 + m % 8 * 4 + n % 8 / 2, at = n / 8 * 4 + m % 16 / 8 * 2 + n % 2;
            float &d = p.d[thread][at];
            d = p.add ? d + sum : sum;
        }
}

inline Warpgroup &warpgroup() { return warpgroups[threadIdx.x / 128]; }

inline Product &next_product(int n, float *d) {
    Warpgroup &w = warpgroup();
    uint64_t at = current->products++ - w.first;
    while (w.products.size() <= at) w.products.emplace_back();
    Product &p = w.products[at];
    if (p.threads > 0 && p.n != n) fail("the threads of a warpgroup ask for different products");
    p.n = n, p.d[threadIdx.x % 128] = d, p.threads++;
    return p;
}

inline void complete(Warpgroup &w, size_t left) {
    while (w.groups.size() > left) {
        while (w.first < w.groups[0]) {
            if (w.products[0].threads != 128) fail("a product was not asked for by all of its warpgroup");
            compute(w.products[0]);
            w.products.erase(w.products.begin());
            w.first++;
        }
        w.groups.erase(w.groups.begin());
    }
}

template <class X> X shuffle(X x, unsigned from) {
    unsigned warp = threadIdx.x / 32;
    memcpy(&slots[threadIdx.x], &x, sizeof x);
    warps[warp].meet(32);
    memcpy(&x, &slots[warp * 32 + from], sizeof x);
    warps[warp].meet(32);
    return x;
}

inline std::function<void()> entry;
// A fiber does its thread of one block, and is used again for the next.
inline void begin() {
    for (;;) {
        entry();
        current->done = true;
        changes++;
        leave();
    }
}

__attribute__((noinline)) inline void go_on(Fiber &fiber) {
    current = &fiber;
    if (_setjmp(scheduler) != 0) return;
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
}

// Runs a block's threads until all are done.
inline void run_block(Three block, Three grid, unsigned threads) {
    // Stacks are used again: a launch has many blocks.
    static std::vector<std::unique_ptr<Fiber>> fibers;
    barriers.clear(), copies.clear();
    warps.assign(threads / 32, {}), turns.assign(16, {});
    slots.assign(threads, 0), warpgroups.assign((threads + 127) / 128, {});
    for (auto &x : shared) x = 0xff;
    for (unsigned n = 0; n < threads; n++) {
        if (fibers.size() <= n) {
            fibers.push_back(std::make_unique<Fiber>());
            Fiber &fiber = *fibers[n];
            fiber.stack.reset(new char[STACK]);
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.get();
            fiber.context.uc_stack.ss_size = STACK;
            fiber.context.uc_link = nullptr;
            makecontext(&fiber.context, begin, 0);
        }
        Fiber &fiber = *fibers[n];
        fiber.thread = {n, 0, 0}, fiber.block = block, fiber.grid = grid, fiber.size = {threads, 1, 1};
        fiber.done = false, fiber.products = 0;
    }
    // In some blocks copies take as long as anything else goes on, in others they come at any time. A step
    // that shares no factor with the number of threads comes to all of them.
    bool late = draw() % 2;
    const unsigned steps[] = {1, 5, 7, 11, 13, 29, 31, 127};
    for (;;) {
        uint64_t before = changes;
        bool any = false;
        unsigned from = draw() % threads, step = steps[draw() % 8];
        while (std::gcd(step, threads) > 1) step = steps[draw() % 8];
        for (unsigned n = 0; n < threads; n++) {
            Fiber &fiber = *fibers[(n * step + from) % threads];
            if (fiber.done) continue;
            any = true;
            go_on(fiber);
        }
        if (!any) break;
        bool stuck = changes == before;
        if (stuck && copies.empty()) fail("nothing can go on: a deadlock");
        if (!copies.empty() && (stuck || (!late && draw() % 4 == 0))) {
            size_t which = draw() % copies.size();
            auto copy = copies[which];
            copies.erase(copies.begin() + which);
            copy();
            changes++;
        }
    }
    if (!copies.empty()) fail("a block ends before its copies");
}

template <class F> void launch(Three grid, unsigned threads, F kernel) {
    entry = kernel;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) run_block({x, y, z}, grid, threads);
}

} // namespace emulator

template <class X> X __shfl_xor_sync(unsigned, X x, unsigned with) { return emulator::shuffle(x, threadIdx.x % 32 ^ with); }
template <class X> X __shfl_sync(unsigned, X x, unsigned from) { return emulator::shuffle(x, from); }
inline unsigned __ballot_sync(unsigned, bool x) {
    unsigned all = (unsigned)x << threadIdx.x % 32;
    for (unsigned with = 16; with > 0; with /= 2) all |= __shfl_xor_sync(~0u, all, with);
    return all;
}
inline bool __all_sync(unsigned, bool x) { return __ballot_sync(~0u, x) == ~0u; }
inline bool __any_sync(unsigned, bool x) { return __ballot_sync(~0u, x); }
inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline void __syncwarp() { emulator::warps[threadIdx.x / 32].meet(32); }
inline void __syncthreads() { emulator::turns[0].meet(blockDim.x); }

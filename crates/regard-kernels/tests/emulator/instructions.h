// The functions of text/hopper.cu as the emulator has them.

inline u32 shared_address(const void *at) { return emulator::address(at); }
inline void barrier_init(u64 *barrier, int count) { emulator::barriers[barrier] = {count, count, 0, 0}; }
inline void barriers_ready() {}
inline emulator::Barrier &known(u64 *barrier) {
    auto found = emulator::barriers.find(barrier);
    if (found == emulator::barriers.end()) emulator::fail("an mbarrier was not initialized");
    return found->second;
}
inline void barrier_arrive(u64 *barrier) {
    emulator::Barrier &x = known(barrier);
    x.pending--;
    x.settle();
}
inline void barrier_expect(u64 *barrier, int bytes) {
    emulator::Barrier &x = known(barrier);
    x.bytes += bytes, x.pending--;
    x.settle();
}
inline void barrier_wait(u64 *barrier, u32 parity) {
    emulator::Barrier &x = known(barrier);
    emulator::wait_for([&] { return x.phase != parity; });
}

// The emulator's own map: address, sizes, strides in bytes, rows of a box.
inline TensorMap map_of(const void *data, i64 d, i64 n, i64 h, i64 b, i64 sn, i64 sh, i64 sb, int rows) {
    return {{(u64)data, (u64)d, (u64)n, (u64)h, (u64)b, (u64)sn * 2, (u64)sh * 2, (u64)sb * 2, (u64)rows}};
}
inline void copy_box(void *to, const TensorMap &map, u64 *barrier, int d, int n, int h, int b) {
    if (emulator::address(to) % 1024) emulator::fail("a swizzled tile does not begin at 1024 bytes");
    for (u64 at = 0; at < map.words[8] * 128; at++) ((u8 *)to)[at] = 0xff;
    emulator::copies.push_back([=] {
        const u64 *m = map.words;
        for (i64 r = 0; r < (i64)m[8]; r++)
            for (i64 c = 0; c < 64; c++) {
                bool inside = d + c < (i64)m[1] && n + r < (i64)m[2] && h < (i64)m[3] && b < (i64)m[4];
                unsigned short x = inside ? *(const unsigned short *)(m[0] + (d + c) * 2 + (n + r) * m[5] + h * m[6] + b * m[7]) : 0;
                memcpy(emulator::at_address(emulator::swizzled(emulator::address(to) + r * 128 + c * 2)), &x, 2);
            }
        emulator::Barrier &x = known(barrier);
        x.bytes -= (int)m[8] * 128;
        x.settle();
    });
}
inline void copy_bytes(void *to, const void *from, u64 *barrier, int bytes) {
    if ((u64)from % 16 || bytes % 16 || emulator::address(to) % 16) emulator::fail("a copy of bytes is not aligned");
    memset(to, 0xff, bytes);
    emulator::copies.push_back([=] {
        memcpy(to, from, bytes);
        emulator::Barrier &x = known(barrier);
        x.bytes -= bytes;
        x.settle();
    });
}

inline void turn_wait(int number, int threads) { emulator::turns[number].meet(threads); }
inline void turn_pass(int number, int threads) { emulator::turns[number].arrive(threads); }
template <int COUNT> void fewer_registers() {}
template <int COUNT> void more_registers() {}

inline void products_begin() {}
inline void products_commit() {
    emulator::Warpgroup &w = emulator::warpgroup();
    w.meeting.meet(128);
    u64 end = emulator::current->products;
    if (w.groups.empty() || w.groups.back() < end) {
        if (!(w.groups.empty() && w.first == end)) w.groups.push_back(end);
        if (emulator::draw() % 2) emulator::complete(w, 0);
    }
    w.meeting.meet(128);
}
template <int LEFT> void products_wait() {
    emulator::Warpgroup &w = emulator::warpgroup();
    w.meeting.meet(128);
    emulator::complete(w, LEFT);
    w.meeting.meet(128);
}
template <int N> void settled(float (&)[N]) {}

template <int ACROSS_A, int ACROSS_B, int N> void product(float (&d)[N], u64 a, u64 b, int add) {
    emulator::Product &p = emulator::next_product(2 * N, d);
    if (p.threads > 1 && (p.a_at != a || p.b_at != b || p.add != add)) emulator::fail("threads disagree about a product");
    p.a_at = a, p.b_at = b, p.add = add, p.across_a = ACROSS_A, p.across_b = ACROSS_B;
}
template <int ACROSS_B, int N> void product(float (&d)[N], const u32 (&a)[4], u64 b, int add) {
    emulator::Product &p = emulator::next_product(2 * N, d);
    if (p.threads > 1 && (p.b_at != b || p.add != add)) emulator::fail("threads disagree about a product");
    p.in_registers = true, p.a[threadIdx.x % 128] = a;
    p.b_at = b, p.add = add, p.across_b = ACROSS_B;
}

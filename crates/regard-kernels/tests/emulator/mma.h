// The functions of text/mma.cu as the emulator has them.

inline void gather_matrices(u32 (&to)[4], const void *row, bool turned) {
    // Each lane's row is known to the others by its address.
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    emulator::slots[threadIdx.x] = (u64)row;
    emulator::warps[warp].meet(32);
    for (unsigned m = 0; m < 4; m++) {
        unsigned short two[2];
        for (unsigned c = 0; c < 2; c++) {
            unsigned r = turned ? lane % 4 * 2 + c : lane / 4, column = turned ? lane / 4 : lane % 4 * 2 + c;
            u64 at = emulator::slots[warp * 32 + m * 8 + r];
            if (at % 16) emulator::fail("a row of a matrix does not begin at 16 bytes");
            memcpy(&two[c], (const void *)(at + 2 * column), 2);
        }
        to[m] = two[0] | (u32)two[1] << 16;
    }
    emulator::warps[warp].meet(32);
}
inline void load_matrices(u32 (&to)[4], const void *row) { gather_matrices(to, row, false); }
inline void load_matrices_turned(u32 (&to)[4], const void *row) { gather_matrices(to, row, true); }

// Fragments of m16n8k16 as the PTX ISA lays them out.
inline void warp_product(float *d, const u32 (&a)[4], u32 b0, u32 b1) {
    static u32 all_a[1024][4], all_b[1024][2];
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    memcpy(all_a[threadIdx.x], a, 16);
    all_b[threadIdx.x][0] = b0, all_b[threadIdx.x][1] = b1;
    emulator::warps[warp].meet(32);
    auto half = [](u32 word, int high) {
        float x;
        emulator::convert(x, (unsigned short)(word >> 16 * high));
        return x;
    };
    for (int n = 0; n < 4; n++) {
        int row = lane / 4 + n / 2 * 8, column = lane % 4 * 2 + n % 2;
        float sum = 0;
        for (int k = 0; k < 16; k++) {
            float x = half(all_a[warp * 32 + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k % 2);
            sum += x * half(all_b[warp * 32 + column * 4 + k % 8 / 2][k / 8], k % 2);
        }
        d[n] += sum;
    }
    emulator::warps[warp].meet(32);
}

// Copies happen when they are waited for, and leave NaN until then.
struct Pending {
    void *to;
    const void *from;
    bool there;
};
inline std::map<unsigned, std::vector<std::vector<Pending>>> pending;
inline void copy_sixteen(void *to, const void *from, bool there) {
    if ((u64)to % 16 || (u64)from % 16) emulator::fail("a copy of sixteen bytes is not aligned");
    auto &groups = pending[threadIdx.x];
    if (groups.empty()) groups.emplace_back();
    memset(to, 0xff, 16);
    groups.back().push_back({to, from, there});
}
inline void copies_commit() {
    auto &groups = pending[threadIdx.x];
    if (groups.empty()) groups.emplace_back();
    groups.emplace_back();
}
template <int LEFT> void copies_wait() {
    auto &groups = pending[threadIdx.x];
    while (groups.size() > LEFT + 1) {
        for (auto &x : groups[0]) {
            if (x.there) memcpy(x.to, x.from, 16);
            else memset(x.to, 0, 16);
        }
        groups.erase(groups.begin());
    }
}

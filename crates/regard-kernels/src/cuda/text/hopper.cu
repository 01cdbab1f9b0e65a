// Hopper's own instructions by name: barriers of shared memory, tiles copied by the tensor memory
// accelerator, products by a warpgroup. Tiles lie in panels of 64 numbers a row, 128 bytes each, whose
// 16-byte pieces the hardware permutes within 8 rows: bits 4–6 of an address xor bits 7–9 (128B swizzle).
// `EMULATED`: the tests' emulator brings functions of the same names that a CPU runs.

struct alignas(64) TensorMap {
    u64 words[16];
};

#define ROW_BYTES 128   // of a panel
#define GROUP_BYTES 1024 // eight rows: what the permutation repeats after

// A matrix in shared memory as a product reads it: where it begins, how far the next 64 numbers along
// its rows lie where a product reads across rows (`leading`), how far the next 8 rows.
__device__ __forceinline__ u64 matrix(u32 at, u32 leading) {
    return (u64)((at & 0x3ffff) >> 4) | (u64)(leading >> 4) << 16 | (u64)(GROUP_BYTES >> 4) << 32 | (u64)1 << 62;
}

// Descriptors count in 16 bytes.
__device__ __forceinline__ constexpr u64 further(int bytes) { return (u64)(bytes >> 4); }

#ifndef EMULATED

#define SHARED_MEMORY(name) extern __shared__ u8 name[]

__device__ __forceinline__ u32 shared_address(const void *at) { return (u32)__cvta_generic_to_shared(at); }

__device__ __forceinline__ void barrier_init(u64 *barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}
// Makes initialized barriers known to the copies' engine.
__device__ __forceinline__ void barriers_ready() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void barrier_arrive(u64 *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void barrier_expect(u64 *barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}
// Waits for the end of the phase of this parity; the phase before the first has parity 1.
__device__ __forceinline__ void barrier_wait(u64 *barrier, u32 parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "AGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra OVER;\n"
                 "bra AGAIN;\n"
                 "OVER:\n"
                 "}" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}

// A box of a map whose corner is at these coordinates; what lies outside the array comes as zeros.
__device__ __forceinline__ void copy_box(void *to, const TensorMap &map, u64 *barrier, int d, int n, int h, int b) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(
                     shared_address(to)),
                 "l"(&map), "r"(shared_address(barrier)), "r"(d), "r"(n), "r"(h), "r"(b)
                 : "memory");
}
// Bytes in a row; addresses and their number are multiples of 16.
__device__ __forceinline__ void copy_bytes(void *to, const void *from, u64 *barrier, int bytes) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// Barriers of some warps, by number; 0 is that of `__syncthreads`.
__device__ __forceinline__ void turn_wait(int number, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ __forceinline__ void turn_pass(int number, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

template <int COUNT> __device__ __forceinline__ void fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT)); }
template <int COUNT> __device__ __forceinline__ void more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT)); }

// Before a product reads registers that were written since the last one.
__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void products_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }
// Keeps the compiler from moving uses of these registers to before a wait.
template <int N> __device__ __forceinline__ void settled(float (&x)[N]) {
#pragma unroll
    for (int n = 0; n < N; n++) asm volatile("" : "+f"(x[n])::"memory");
}

#else
#include "instructions.h"
#endif

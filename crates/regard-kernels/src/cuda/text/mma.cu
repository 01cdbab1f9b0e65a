// A warp's own products and copies, which every GPU since Ampere has.

#ifndef EMULATED

// Four 8 × 8 matrices of 16-bit numbers; lane n gives the address of row n % 8 of matrix n / 8. A lane gets
// columns 2 (lane % 4) and the next of row lane / 4 of each; turned, rows and columns change places.
__device__ __forceinline__ void load_matrices(u32 (&to)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((u32)__cvta_generic_to_shared(row))
                 : "memory");
}
__device__ __forceinline__ void load_matrices_turned(u32 (&to)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((u32)__cvta_generic_to_shared(row))
                 : "memory");
}

// d += a b: 16 rows, 8 columns, 16 deep. Four numbers of d from `d` on are this lane's.
__device__ __forceinline__ void warp_product(float *d, const u32 (&a)[4], u32 b0, u32 b1) {
#if STORED != F16
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#endif
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Sixteen bytes to shared memory, or zeros.
__device__ __forceinline__ void copy_sixteen(void *to, const void *from, bool there) {
    int bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

#define SHARED_MEMORY(name) extern __shared__ __align__(16) u8 name[]

#else
#include "mma.h"
#endif

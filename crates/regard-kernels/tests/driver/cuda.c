// A driver without a GPU: memory is the host's, kernels do nothing but be written down, and what FAKE_CUDA
// names goes wrong. Results and checks are those that NVIDIA documents for the real one.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int R;
enum { FINE = 0, INVALID = 1, NO_MEMORY = 2, NO_IMAGE = 200, LAUNCH_FAILED = 719 };

static int is(const char *what) {
    const char *fault = getenv("FAKE_CUDA");
    return fault && !strcmp(fault, what);
}

// Of a Hopper's 228 KiB a block gets all but one, of an Ada's 100 likewise.
static int most_shared() { return is("small") ? 101376 : 232448; }

R cuInit(unsigned flags) { return FINE; }
R cuDriverGetVersion(int *version) { return *version = 13000, FINE; }
R cuDeviceGetCount(int *count) { return *count = is("no GPU") ? 0 : 1, FINE; }
R cuDeviceGet(int *device, int ordinal) { return *device = ordinal, FINE; }
R cuDeviceGetName(char *name, int length, int device) { return snprintf(name, length, "a fake"), FINE; }
R cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = 1 << 30, FINE; }
R cuDeviceGetAttribute(int *value, int which, int device) {
    *value = which == 75 ? (is("old") ? 7 : 9) : which == 76 ? (is("old") ? 5 : 0) : which == 97 ? most_shared() : 132;
    return FINE;
}
R cuDevicePrimaryCtxRetain(void **context, int device) { return *context = (void *)1, FINE; }
R cuDevicePrimaryCtxRelease_v2(int device) { return FINE; }
// Another's context is the thread's when everything begins, or none.
static void *current = (void *)0x77;
static int begun;
R cuCtxGetCurrent(void **context) {
    if (!begun++ && is("fresh")) current = 0;
    return *context = current, FINE;
}
R cuCtxSetCurrent(void *context) { return current = context, printf("context %p\n", context), fflush(stdout), FINE; }
R cuStreamCreate(void **stream, unsigned flags) { return *stream = (void *)0x51, FINE; }
R cuStreamDestroy_v2(void *stream) { return stream == (void *)0x51 ? FINE : INVALID; }
R cuStreamSynchronize(void *stream) { return FINE; }
R cuDeviceGetDefaultMemPool(void **pool, int device) { return *pool = (void *)2, FINE; }
R cuMemPoolSetAttribute(void *pool, int which, void *value) { return FINE; }
R cuMemAllocAsync(uint64_t *at, size_t bytes, void *stream) {
    if (is("memory")) return NO_MEMORY;
    return *at = (uint64_t)aligned_alloc(256, (bytes + 255) / 256 * 256), FINE;
}
R cuMemFreeAsync(uint64_t at, void *stream) { return free((void *)at), FINE; }
R cuMemsetD8Async(uint64_t at, unsigned char value, size_t n, void *stream) {
    printf("fill %zu bytes\n", n);
    return memset((void *)at, value, n), FINE;
}
R cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *stream) {
    printf("copy from %p\n", from);
    return memcpy((void *)to, from, n), FINE;
}
R cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *stream) { return memcpy(to, (void *)from, n), FINE; }
R cuModuleLoadData(void **module, const void *image) {
    if (is("slow") && !memcmp(image, "tiles", 5)) sleep(2);
    return *module = (void *)3, is("image") ? NO_IMAGE : FINE;
}
R cuModuleUnload(void *module) { return FINE; }
R cuModuleGetFunction(void **function, void *module, const char *name) { return *function = strdup(name), FINE; }
R cuFuncSetAttribute(void *function, int which, int value) { return value > most_shared() ? INVALID : FINE; }
R cuStreamIsCapturing(void *stream, int *status) { return *status = is("capturing"), FINE; }
R cuThreadExchangeStreamCaptureMode(int *mode) { return FINE; }
// Every address of the host's is one of pinned memory, or none is.
R cuPointerGetAttribute(void *value, int which, uint64_t at) { return is("pinned") ? (*(int *)value = 1, FINE) : INVALID; }
R cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz, unsigned shared, void *stream,
                 void **arguments, void **extra) {
    if (y > 65535 || z > 65535) return INVALID;
    printf("launch %s of %u blocks on stream %p\n", (char *)function, x * y * z, stream);
    fflush(stdout);
    return is("launch") ? LAUNCH_FAILED : FINE;
}
R cuTensorMapEncodeTiled(void *map, int kind, unsigned rank, void *data, const uint64_t *sizes, const uint64_t *strides, const unsigned *box,
                         const unsigned *steps, int interleave, int swizzle, int promotion, int fill) {
    if ((uint64_t)map % 64 || (uint64_t)data % 16 || rank != 4 || (kind != 6 && kind != 9)) return INVALID;
    for (unsigned n = 0; n < rank; n++)
        if (sizes[n] == 0 || sizes[n] > (1ull << 32) || box[n] == 0 || box[n] > 256 || steps[n] != 1) return INVALID;
    for (unsigned n = 0; n + 1 < rank; n++)
        if (strides[n] == 0 || strides[n] % 16 || strides[n] >= (1ull << 40)) return INVALID;
    return box[0] * 2 > 128 || swizzle != 3 || interleave ? INVALID : FINE;
}
R cuGetErrorString(R error, const char **text) {
    *text = error == LAUNCH_FAILED ? "unspecified launch failure" : error == NO_MEMORY ? "out of memory" : "invalid argument";
    return FINE;
}
R cuGetErrorName(R error, const char **text) {
    *text = error == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : error == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_INVALID_VALUE";
    return FINE;
}

// Picked by index, and added up by index.

extern "C" __global__ void rows(const T *table, const i64 *index, T *to, i64 count, i64 width, i64 n) {
    EACH(at, count) {
        i64 row = index[at / width];
        to[at] = row >= 0 && row < n ? table[row * width + at % width] : NOT_A_NUMBER;
    }
}

#define AT_ONCE 8

// A warp has a row of the table: it looks for its index, and adds what it finds in order.
extern "C" __global__ void add_rows(const T *from, const i64 *index, T *to, i64 count, i64 width, i64 n, i64 padding) {
    i64 row = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    u32 lane = threadIdx.x % WARP;
    if (row >= n) return; // the whole warp
    for (i64 first = 0; first < width; first += AT_ONCE * WARP) {
        T sums[AT_ONCE];
        for (int c = 0; c < AT_ONCE; c++) sums[c] = 0;
        for (i64 start = 0; start < count && row != padding; start += WARP) {
            u32 found = __ballot_sync(ALL, start + lane < count && index[start + lane] == row);
            for (; found; found &= found - 1) {
                const T *x = from + (start + __ffs(found) - 1) * width + first;
                for (int c = 0; c < AT_ONCE; c++)
                    if (first + c * WARP + lane < width) sums[c] += x[c * WARP + lane];
            }
        }
        for (int c = 0; c < AT_ONCE; c++)
            if (first + c * WARP + lane < width) to[row * width + first + c * WARP + lane] = sums[c];
    }
}

// [outer, n, inner] by indices [outer, picks, inner].
extern "C" __global__ void gather(const T *x, const i64 *index, T *to, i64 count, i64 n, i64 inner, i64 picks) {
    EACH(at, count) {
        i64 j = index[at];
        to[at] = j >= 0 && j < n ? x[(at / inner / picks * n + j) * inner + at % inner] : NOT_A_NUMBER;
    }
}
// A thread has a column of an outer row, and adds its picks in order to zeros.
extern "C" __global__ void gather_backward(const T *g, const i64 *index, T *to, i64 count, i64 n, i64 inner, i64 picks) {
    EACH(at, count) {
        i64 outer = at / inner, column = at % inner;
        for (i64 pick = 0; pick < picks; pick++) {
            i64 from = (outer * picks + pick) * inner + column, j = index[from];
            if (j >= 0 && j < n) to[(outer * n + j) * inner + column] += g[from];
        }
    }
}

struct Slide {
    i64 kernel[2], stride[2], padding[2], dilation[2], size[2], places[2];
};

extern "C" __global__ void unfold(Slide s, const T *images, T *to, i64 count) {
    EACH(at, count) {
        i64 ox = at % s.places[1], oy = at / s.places[1] % s.places[0], rest = at / (s.places[0] * s.places[1]);
        i64 kx = rest % s.kernel[1], ky = rest / s.kernel[1] % s.kernel[0], image = rest / (s.kernel[0] * s.kernel[1]);
        i64 y = oy * s.stride[0] + ky * s.dilation[0] - s.padding[0], x = ox * s.stride[1] + kx * s.dilation[1] - s.padding[1];
        bool inside = y >= 0 && y < s.size[0] && x >= 0 && x < s.size[1];
        to[at] = inside ? images[(image * s.size[0] + y) * s.size[1] + x] : 0;
    }
}
extern "C" __global__ void fold(Slide s, const T *columns, T *to, i64 count) {
    EACH(at, count) {
        i64 x = at % s.size[1], y = at / s.size[1] % s.size[0], image = at / (s.size[0] * s.size[1]);
        T sum = 0;
        for (i64 ky = 0; ky < s.kernel[0]; ky++)
            for (i64 kx = 0; kx < s.kernel[1]; kx++) {
                i64 py = y + s.padding[0] - ky * s.dilation[0], px = x + s.padding[1] - kx * s.dilation[1];
                if (py < 0 || px < 0 || py % s.stride[0] || px % s.stride[1]) continue;
                i64 oy = py / s.stride[0], ox = px / s.stride[1];
                if (oy < s.places[0] && ox < s.places[1])
                    sum += columns[(((image * s.kernel[0] + ky) * s.kernel[1] + kx) * s.places[0] + oy) * s.places[1] + ox];
            }
        to[at] = sum;
    }
}

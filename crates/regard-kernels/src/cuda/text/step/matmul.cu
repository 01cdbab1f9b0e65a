// Stacks of matrices in full precision: 64 × 64 numbers of the product to a block, 4 × 4 to a thread.

#define TILE 64
#define DEPTH 16
#define THREADS 256

// to[i] = a[i] · b[i] + base, operands at any strides; the base's rows `base_row` apart, none where it is null.
extern "C" __global__ void matmul(Walk w, const T *a, const T *b, const T *base, T *to, i64 m, i64 n, i64 k, i64 a_row, i64 a_column, i64 b_row,
                                  i64 b_column, i64 base_row) {
    __shared__ T left[DEPTH][TILE + 1], right[DEPTH][TILE + 1];
    i64 across = (n + TILE - 1) / TILE, down = (m + TILE - 1) / TILE;
    i64 item = blockIdx.x / (across * down), row = blockIdx.x / across % down * TILE, column = blockIdx.x % across * TILE;
    Places at = places(w, item);
    a += at.at[0], b += at.at[1], to += item * m * n;
    u32 y = threadIdx.x / 16, x = threadIdx.x % 16;
    T sums[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sums[i][j] = 0;
    for (i64 start = 0; start < k; start += DEPTH) {
        __syncthreads();
        for (int part = 0; part < TILE * DEPTH / THREADS; part++) {
            u32 place = part * THREADS + threadIdx.x;
            // Neighbors read neighbors, whichever way the matrix lies.
            u32 i = a_column == 1 ? place / DEPTH : place % TILE, p = a_column == 1 ? place % DEPTH : place / TILE;
            left[p][i] = row + i < m && start + p < k ? a[(row + i) * a_row + (start + p) * a_column] : 0;
            u32 j = b_column == 1 ? place % TILE : place / DEPTH, q = b_column == 1 ? place / TILE : place % DEPTH;
            right[q][j] = column + j < n && start + q < k ? b[(start + q) * b_row + (column + j) * b_column] : 0;
        }
        __syncthreads();
        for (int p = 0; p < DEPTH; p++) {
            T l[4], r[4];
            for (int i = 0; i < 4; i++) l[i] = left[p][y + 16 * i], r[i] = right[p][x + 16 * i];
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sums[i][j] += l[i] * r[j];
        }
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            i64 r = row + y + 16 * i, c = column + x + 16 * j;
            if (r < m && c < n) to[r * n + c] = sums[i][j] + (base ? base[r * base_row + c] : 0);
        }
}

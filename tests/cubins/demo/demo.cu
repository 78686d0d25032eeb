// The kernels of `nv demo`. Remake: see README.md in this folder.

// c[i] = a[i] + b[i]
extern "C" __global__ void vector_add(const float *a, const float *b, float *c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

// partial[block] = sum of the block's share of a, through a tree in shared memory; 256 threads a block.
extern "C" __global__ void reduce_sum(const unsigned *a, unsigned *partial, unsigned n) {
    __shared__ unsigned tree[256];
    unsigned t = threadIdx.x, sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += a[i];
    tree[t] = sum;
    __syncthreads();
    for (unsigned half = 128; half; half >>= 1) {
        if (t < half) tree[t] += tree[t + half];
        __syncthreads();
    }
    if (t == 0) partial[blockIdx.x] = tree[0];
}

// c = a * b for n x n row-major matrices, in 16 x 16 tiles of shared memory; n is a multiple of 16.
extern "C" __global__ void matrix_multiply(const float *a, const float *b, float *c, unsigned n) {
    __shared__ float ta[16][16], tb[16][16];
    unsigned x = threadIdx.x, y = threadIdx.y;
    unsigned col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0;
    for (unsigned k = 0; k < n; k += 16) {
        ta[y][x] = a[row * n + k + x];
        tb[y][x] = b[(k + y) * n + col];
        __syncthreads();
        for (unsigned i = 0; i < 16; i++) sum = fmaf(ta[y][i], tb[i][x], sum);
        __syncthreads();
    }
    c[row * n + col] = sum;
}

// out[i] = a walk through a per-thread array that no register can hold: it lives in local memory.
extern "C" __global__ void local_walk(const unsigned *steps, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned cell[64];
    for (unsigned k = 0; k < 64; k++) cell[k] = k * 2654435761u + i;
    unsigned at = i & 63;
    for (unsigned k = 0; k < n; k++) {
        cell[at] += steps[k] ^ i;
        at = (cell[at] >> 5) & 63;
    }
    unsigned sum = 0;
    for (unsigned k = 0; k < 64; k++) sum = sum * 31 + cell[k];
    out[i] = sum;
}

// Kernels whose results tell in what order, how often and with what they ran.
#include <cooperative_groups.h>

// p[i] = p[i] * factor + term: no two of these with different numbers can be swapped.
extern "C" __global__ void step(unsigned *p, unsigned factor, unsigned term) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i] = p[i] * factor + term;
}

// out[block] = how many blocks there are.
extern "C" __global__ void blocks(unsigned *out) {
    if (threadIdx.x == 0) out[blockIdx.x] = gridDim.x;
}

// Every block adds one, and after the barrier reads what all of them have added: out[block] += the sum.
extern "C" __global__ void meet(unsigned *count, unsigned *out) {
    if (threadIdx.x == 0) atomicAdd(count, 1u);
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) out[blockIdx.x] += *(volatile unsigned *)count;
}

// By way of an array that no register can hold: p[i] = p[i] * 33 + i where n is 64.
extern "C" __global__ void local_step(unsigned *p, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = p[i], at = (v + i) & 63, then = (at + 7) & 63;
    unsigned cell[64];
    for (unsigned k = 0; k < 64; k++) cell[k] = k;
    cell[at] = v * 32;
    cell[then] = v;
    unsigned sum = 0;
    for (unsigned k = 0; k < n; k++) sum += cell[(k + at) & 63] - ((k + at) & 63);
    p[i] = sum + at + then + i;
}

// Stops where p[at] is 7.
extern "C" __global__ void stop_at_seven(unsigned *p, unsigned at) {
    if (p[at] == 7) asm("trap;");
    p[at] += 1;
}

// Kernels that need what the vendor's library links in: each of them alone in a file, by the macro WHICH.
#include <cassert>
#include <cstdio>
#if WHICH == 1
extern "C" __global__ void prints(int n) { printf("%d of %s\n", n, "block"); }
#elif WHICH == 2
extern "C" __global__ void allocates(int **out, int n) { out[threadIdx.x] = (int *)malloc(n); }
#elif WHICH == 3
extern "C" __global__ void asserts(const int *in) { assert(in[threadIdx.x] != 5); }
#endif

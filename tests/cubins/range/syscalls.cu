// Kernels that call what the vendor's library provides: printf and assert by 1, malloc by 2.
#include <cassert>
#include <cstdio>
typedef unsigned u32;
#if WHICH == 1
__device__ char name[16] = "before";
static __device__ __noinline__ void line(u32 t, int value, const char *own) {
    printf("%u.%03u: %s %s %s |%6.2f|%-5d|%c %#llx %%\n", blockIdx.x, t, value & 1 ? "odd" : "even", name, own, value * 0.25, value, 'a' + t % 26, 0x123456789abull + value);
}
// A line from every eighth thread; one string is the kernel's, one the host's, one the thread's own.
extern "C" __global__ void prints(const int *in) {
    u32 t = threadIdx.x;
    if (t % 8) return;
    char own[8] = {'t', (char)('0' + t / 1000), (char)('0' + t / 100 % 10), (char)('0' + t / 10 % 10), (char)('0' + t % 10), 0};
    line(t, in[t], own);
}
// More than the log holds.
extern "C" __global__ void prints_much(int lines) {
    for (int i = 0; i < lines; i++) printf("%d %d\n", blockIdx.x * blockDim.x + threadIdx.x, i);
}
extern "C" __global__ void asserts(const int *in) { assert(in[threadIdx.x] != 5 && "five"); }
#elif WHICH == 2
extern "C" __global__ void allocates(int **out, int n) { out[threadIdx.x] = (int *)malloc(n); }
#endif

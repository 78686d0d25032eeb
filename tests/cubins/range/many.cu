// 128 kernels in one file. Each keeps another number of values in registers, has another amount of shared memory and
// reads another place of a table in constant memory.
typedef unsigned u32;
__constant__ u32 constants[128] = {17, 4, 99};

template <int N> __device__ __forceinline__ void kernel(const u32 *in, u32 *out) {
    __shared__ u32 s[32 + 4 * N];
    u32 t = threadIdx.x, v[1 + N % 24];
#pragma unroll
    for (int i = 0; i < 1 + N % 24; i++) v[i] = in[i * 32 + t];
    s[31 + 4 * N - t] = v[N % 24] + N;
    __syncthreads();
    u32 sum = s[4 * N + t] + constants[N] * 1000;
#pragma unroll
    for (int i = 0; i < 1 + N % 24; i++) sum = sum * 3 + v[i];
    out[t] = sum;
}
#define K(n) extern "C" __global__ void k##n(const u32 *in, u32 *out) { kernel<n>(in, out); }
#define K10(d) K(d##0) K(d##1) K(d##2) K(d##3) K(d##4) K(d##5) K(d##6) K(d##7) K(d##8) K(d##9)
K(0) K(1) K(2) K(3) K(4) K(5) K(6) K(7) K(8) K(9)
K10(1) K10(2) K10(3) K10(4) K10(5) K10(6) K10(7) K10(8) K10(9) K10(10) K10(11)
K(120) K(121) K(122) K(123) K(124) K(125) K(126) K(127)

// What a kernel may ask for, one kernel a question (tests/src/conformance/range.rs).
#include <cooperative_groups.h>
#include <mma.h>
namespace cg = cooperative_groups;
typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;

// Dynamic shared memory, every byte written and read by another thread. Four words a block.
extern "C" __global__ void dynamic_shared(u32 *out, u32 bytes) {
    extern __shared__ u8 s[];
    u32 *o = out + 4 * blockIdx.x;
    for (u32 i = threadIdx.x; i < bytes; i += blockDim.x) s[i] = (u8)(i * 7 + blockIdx.x);
    __syncthreads();
    u32 sum = 0;
    for (u32 i = threadIdx.x; i < bytes; i += blockDim.x) sum += s[bytes - 1 - i];
    atomicAdd(o + 2, sum);
    if (threadIdx.x == 0) {
        u32 size;
        asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
        o[0] = s[0], o[1] = s[bytes - 1], o[3] = size;
    }
}

// As many values at once as a thread has registers.
extern "C" __global__ void registers(const u32 *in, u32 *out, u32 rounds) {
    u32 v[236];
#pragma unroll
    for (int i = 0; i < 236; i++) v[i] = in[i] + threadIdx.x;
    for (u32 j = 0; j < rounds; j++) {
#pragma unroll
        for (int i = 0; i < 236; i++) v[i] = v[i] * v[(i + 1) % 236] + j;
    }
    u32 sum = 0;
#pragma unroll
    for (int i = 0; i < 236; i++) sum = sum * 3 + v[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Arrays on the stack, and a walk through them that no compiler foresees.
template <int N> __device__ void stack(const u32 *steps, u32 *out, u32 count) {
    u32 v[N], t = blockIdx.x * blockDim.x + threadIdx.x, at = t;
    for (int i = 0; i < N; i += 64) v[i + (t & 63)] = i + t;
    for (u32 j = 0; j < count; j++) {
        at = (at + steps[j & 63]) % (N / 64);
        v[at * 64 + (t & 63)] += j;
    }
    u32 sum = 0;
    for (int i = 0; i < N; i += 64) sum = sum * 5 + v[i + (t & 63)];
    out[t] = sum;
}
extern "C" __global__ void stack_1k(const u32 *steps, u32 *out, u32 count) { stack<256>(steps, out, count); }
extern "C" __global__ void stack_3k(const u32 *steps, u32 *out, u32 count) { stack<768>(steps, out, count); }
extern "C" __global__ void stack_8k(const u32 *steps, u32 *out, u32 count) { stack<2048>(steps, out, count); }
extern "C" __global__ void stack_7k(const u32 *steps, u32 *out, u32 count) { stack<1792>(steps, out, count); }
extern "C" __global__ void stack_60k(const u32 *steps, u32 *out, u32 count) { stack<15360>(steps, out, count); }

// 20,000 bytes of one argument between two others.
struct Big { u8 b[20000]; };
extern "C" __global__ void big_argument(const u32 *at, const __grid_constant__ Big big, u32 *out, u64 last) {
    out[threadIdx.x] = big.b[at[threadIdx.x] % 20000] + (u32)(last >> 32);
}

#define P5(n) u32 p##n##0, u32 p##n##1, u32 p##n##2, u32 p##n##3, u32 p##n##4
#define P25(n) P5(n##0), P5(n##1), P5(n##2), P5(n##3), P5(n##4)
#define S5(n) f(f(f(f(f(s, p##n##0), p##n##1), p##n##2), p##n##3), p##n##4)
#define S25(n) s = S5(n##0); s = S5(n##1); s = S5(n##2); s = S5(n##3); s = S5(n##4);
__device__ __forceinline__ u32 f(u32 s, u32 p) { return s * 31 + p; }
// 200 parameters, the last of them a pointer.
extern "C" __global__ void many_arguments(P25(a), P25(b), P25(c), P25(d), P25(e), P25(f), P25(g), P5(h0), P5(h1), P5(h2), P5(h3), u32 h40, u32 h41, u32 h42, u32 h43, u32 *out) {
    u32 s = 0;
    S25(a) S25(b) S25(c) S25(d) S25(e) S25(f) S25(g)
    s = S5(h0); s = S5(h1); s = S5(h2); s = S5(h3);
    s = f(f(f(f(s, h40), h41), h42), h43);
    out[threadIdx.x] = s;
}

// All blocks meet several times; each round needs what the others wrote in the one before.
extern "C" __global__ void grid_sync(u32 *a, u32 *b, u32 rounds) {
    cg::grid_group grid = cg::this_grid();
    u32 n = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
    for (u32 r = 0; r < rounds; r++) {
        u32 *from = r & 1 ? b : a, *to = r & 1 ? a : b;
        to[t] = from[(t + blockDim.x) % n] + from[t] + r;
        grid.sync();
    }
}

// Two groups of warps, each with a barrier of its own; then 15 barriers in turn.
extern "C" __global__ void named_barriers(u32 *out) {
    __shared__ u32 s[256];
    u32 t = threadIdx.x;
    for (u32 round = 0; round < 8; round++) {
        s[t] = t * 3 + round;
        if (t < 128) asm volatile("bar.sync 5, 128;" ::: "memory");
        else asm volatile("bar.sync 15, 128;" ::: "memory");
        u32 other = s[(t & 128) | ((t + 37) & 127)];
        if (t < 128) asm volatile("bar.sync 6, 128;" ::: "memory");
        else asm volatile("bar.sync 14, 128;" ::: "memory");
        if (round == 7) out[t] = other;
    }
    for (u32 id = 1; id < 16; id++) {
        s[t] = t + id;
        asm volatile("bar.sync %0, 256;" ::"r"(id) : "memory");
        out[256 * id + t] = s[255 - t];
        __syncthreads();
    }
}

// Variables that the host reads and writes.
__constant__ u32 coefficients[64] = {3, 1, 4, 1, 5, 9, 2, 6};
__constant__ float scale = 0.5f;
__device__ u32 counter = 7;
__device__ u64 table[1000];
__device__ struct { u32 a; float b; } pair = {11, 2.5f};
extern "C" __global__ void variables(u32 *out, float *scaled) {
    u32 t = threadIdx.x;
    out[t] = coefficients[t & 63] + coefficients[(t + 1) & 63];
    scaled[t] = t * scale + pair.b + pair.a;
    table[t] += out[t];
    atomicAdd(&counter, 1);
}

// Functions by a number that comes from memory.
typedef u32 (*Operation)(u32, u32);
__device__ __noinline__ u32 add(u32 a, u32 b) { return a + b; }
__device__ __noinline__ u32 multiply(u32 a, u32 b) { return a * b; }
__device__ __noinline__ u32 mix(u32 a, u32 b) { return (a ^ b) * 2654435761u; }
__device__ Operation operations[] = {add, multiply, mix};
extern "C" __global__ void function_table(const u32 *which, u32 *out) {
    u32 t = threadIdx.x;
    out[t] = operations[which[t] % 3](t + 5, t * 9 + 1);
}

// Recursion whose depth comes from memory: what the stack needs is not in the file.
__device__ __noinline__ u32 ackermann_like(u32 n, u32 salt) {
    volatile u32 here[12];
    for (int i = 0; i < 12; i++) here[i] = n * salt + i;
    if (n == 0) return salt;
    u32 below = ackermann_like(n - 1, salt + 1);
    return below * 3 + here[n % 12];
}
extern "C" __global__ void recursion(const u32 *depth, u32 *out) {
    out[threadIdx.x] = ackermann_like(depth[threadIdx.x], threadIdx.x);
}

// Virtual calls on objects of kinds that come from memory.
struct Shape { __device__ virtual u32 area(u32 by) const = 0; };
struct Square : Shape { u32 a; __device__ Square(u32 a) : a(a) {} __device__ u32 area(u32 by) const override { return a * a * by; } };
struct Strip : Shape { u32 a, b; __device__ Strip(u32 a, u32 b) : a(a), b(b) {} __device__ u32 area(u32 by) const override { return a * b + by; } };
extern "C" __global__ void virtual_calls(const u32 *which, u32 *out) {
    u32 t = threadIdx.x;
    Square square(t + 2);
    Strip strip(t, 7);
    const Shape *shape = which[t] & 1 ? static_cast<const Shape *>(&square) : &strip;
    out[t] = shape->area(3);
}

// One tile of 16x8x16 in half precision, summed in single precision: A by rows, B by columns.
extern "C" __global__ void tensor(const u32 *a, const u32 *b, float *c) {
    u32 lane = threadIdx.x, g = lane / 4, t = lane % 4;
    u32 a0 = a[g * 8 + t], a1 = a[(g + 8) * 8 + t], a2 = a[g * 8 + t + 4], a3 = a[(g + 8) * 8 + t + 4];
    u32 b0 = b[g * 8 + t], b1 = b[g * 8 + t + 4];
    float d0 = 1, d1 = 2, d2 = 3, d3 = 4;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    c[g * 8 + 2 * t] = d0, c[g * 8 + 2 * t + 1] = d1, c[(g + 8) * 8 + 2 * t] = d2, c[(g + 8) * 8 + 2 * t + 1] = d3;
}

// Copies that go on beside the threads, two in flight.
extern "C" __global__ void async_copy(const u64 *in, u64 *out, u32 n) {
    __shared__ u64 s[2][64];
    u32 t = threadIdx.x;
    u64 sum = 0;
    for (u32 i = 0; i <= n; i++) {
        if (i < n) {
            u32 to = (u32)__cvta_generic_to_shared(&s[i & 1][t]);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(in + i * 64 + t) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (i > 0) {
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            __syncthreads();
            sum = sum * 3 + s[(i - 1) & 1][63 - t];
            __syncthreads();
        }
    }
    out[t] = sum;
}

// Shuffles among the lanes of a tile, a vote of the warp.
extern "C" __global__ void tiles(const u32 *in, u32 *out) {
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    u32 v = in[threadIdx.x];
    u32 odd = __ballot_sync(0xffffffff, v & 1);
    for (int k = 4; k; k >>= 1) v += tile.shfl_xor(v, k);
    out[threadIdx.x] = v ^ odd;
}

// A count of blocks; each block adds one at the place that its index gives.
extern "C" __global__ void count_blocks(u64 *counts) {
    if (threadIdx.x == 0) atomicAdd(counts + (blockIdx.x ^ blockIdx.y ^ blockIdx.z) % 61, 1ull);
}
// Ends at once, except for the last block.
extern "C" __global__ void last_block(u32 *out) {
    if (blockIdx.x == gridDim.x - 1 && blockIdx.y == gridDim.y - 1 && blockIdx.z == gridDim.z - 1) out[0] = blockIdx.x, out[1] = blockIdx.y, out[2] = blockIdx.z;
}

#if __CUDA_ARCH__ >= 900
// Rank, shape and number of the cluster, and a word from the next block's shared memory: eight words a block.
__device__ void cluster(u32 *out) {
    cg::cluster_group c = cg::this_cluster();
    __shared__ u32 s;
    u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    if (threadIdx.x == 0) s = block * 11 + 5;
    c.sync();
    u32 next = *c.map_shared_rank(&s, (c.block_rank() + 1) % c.num_blocks());
    c.sync();
    if (threadIdx.x == 0) {
        u32 *o = out + 8 * block, x, y, z;
        asm("mov.u32 %0, %%clusterid.x;" : "=r"(x));
        asm("mov.u32 %0, %%clusterid.y;" : "=r"(y));
        asm("mov.u32 %0, %%clusterid.z;" : "=r"(z));
        o[0] = c.block_rank(), o[1] = c.num_blocks(), o[2] = next, o[3] = x, o[4] = y, o[5] = z;
        dim3 d = c.dim_blocks(), i = c.block_index();
        o[6] = d.x | d.y << 8 | d.z << 16, o[7] = i.x | i.y << 8 | i.z << 16;
    }
}
// Votes of tiles: each has a mask of its own.
extern "C" __global__ void votes(const u32 *in, u32 *out) {
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    out[threadIdx.x] = tile.ballot(in[threadIdx.x] & 1);
}
extern "C" __global__ void clusters(u32 *out) { cluster(out); }
extern "C" __global__ void __cluster_dims__(2, 2, 1) clusters_of_4(u32 *out) { cluster(out); }
#endif

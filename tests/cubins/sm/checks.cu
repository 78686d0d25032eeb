// Kernels that each exercise one part of the instruction set; the tests compute every element on the CPU.
// Remake: see README.md in this folder.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)

// 32 results for each pair of words.
KERNEL ints(const u32 *a, const u32 *b, u32 *o) {
    u32 x = a[I], y = b[I];
    u32 *r = o + 32 * I;
    r[0] = x / (y | 1); r[1] = x % (y | 1); r[2] = (int)x / (int)(y | 1); r[3] = (int)x % (int)(y | 1);
    r[4] = __umulhi(x, y); r[5] = __mulhi((int)x, (int)y); r[6] = __popc(x); r[7] = __clz(x);
    r[8] = __brev(x); r[9] = __ffs(x); r[10] = __byte_perm(x, y, 0x9362); r[11] = __funnelshift_l(x, y, y >> 27);
    r[12] = __funnelshift_r(x, y, y & 63); r[13] = __funnelshift_lc(x, y, y & 63); r[14] = min((int)x, (int)y); r[15] = max(x, y);
    r[16] = abs((int)x); r[17] = (int)x >> (y & 31); r[18] = __dp4a((int)x, (int)y, 77); r[19] = __usad(x, y, 5);
    r[20] = __sad((int)x, (int)y, x); r[21] = (x & y) | (~x & ~y & 0xff00ff); r[22] = x * 10 + y * 3 - 7; r[23] = (short)x * (short)y;
    r[24] = (signed char)(x >> 8) + (unsigned char)(y >> 16); r[25] = x < y ? x - y : y; r[26] = __vabsdiffu4(x, y);
    r[27] = ((int)x >> 3) & 0x3ff; r[28] = (x << 7) >> 20; r[29] = __clz((int)(x & 0xffff)); r[30] = (int)(x << 20) >> 25; r[31] = __vadd2(x, y);
}

KERNEL longs(const u64 *a, const u64 *b, u64 *o) {
    u64 x = a[I], y = b[I];
    u64 *r = o + 16 * I;
    r[0] = x / (y | 1); r[1] = x % (y | 1); r[2] = (s64)x / (s64)(y | 1); r[3] = (s64)x % (s64)(y | 1);
    r[4] = x * y; r[5] = __umul64hi(x, y); r[6] = __mul64hi((s64)x, (s64)y); r[7] = x << (y & 63);
    r[8] = x >> (y & 63); r[9] = (s64)x >> (y & 63); r[10] = min((s64)x, (s64)y); r[11] = max(x, y);
    r[12] = __clzll(x) + __popcll(y) + __ffsll(x); r[13] = x - y - (x < y); r[14] = __brevll(x); r[15] = (s64)(int)x * (s64)(int)y + x;
}

// 32 results for each pair of floats, as bits.
KERNEL floats(const float *a, const float *b, u32 *o) {
    float x = a[I], y = b[I];
    u32 *r = o + 32 * I;
#define F(n, e) r[n] = __float_as_uint(e)
    F(0, x + y); F(1, x * y); F(2, fmaf(x, y, 1.5f)); F(3, x / y); F(4, sqrtf(fabsf(x))); F(5, 1.0f / x);
    F(6, __fadd_rz(x, y)); F(7, __fadd_rd(x, y)); F(8, __fadd_ru(x, y)); F(9, __fmul_rz(x, y)); F(10, __fmul_rd(x, y)); F(11, __fmul_ru(x, y));
    F(12, __fmaf_rz(x, y, x)); F(13, fminf(x, y)); F(14, fmaxf(x, y)); F(15, rintf(x)); F(16, floorf(x)); F(17, ceilf(x)); F(18, truncf(x));
    r[19] = (int)x; r[20] = (u32)y; r[21] = __float2int_rn(x); r[22] = __float2int_ru(x); r[23] = (short)x; r[24] = (unsigned char)fabsf(y);
    F(25, (float)(int)__float_as_uint(x)); F(26, (float)__float_as_uint(y)); F(27, __uint2float_rz(__float_as_uint(x)));
    F(28, __saturatef(x)); F(29, (float)(s64)(x * 1e10f)); F(30, copysignf(x, y)); r[31] = (x < y) | (x <= y) << 1 | (x != y) << 2 | isnan(x) << 3 | isinf(y) << 4 | !(x > y) << 5;
}

KERNEL doubles(const double *a, const double *b, u64 *o) {
    double x = a[I], y = b[I];
    u64 *r = o + 24 * I;
#define D(n, e) r[n] = __double_as_longlong(e)
    D(0, x + y); D(1, x * y); D(2, fma(x, y, 1.5)); D(3, x / y); D(4, sqrt(fabs(x))); D(5, 1.0 / x);
    D(6, __dadd_rz(x, y)); D(7, __dmul_rd(x, y)); D(8, __fma_ru(x, y, x)); D(9, fmin(x, y)); D(10, fmax(x, y));
    D(11, rint(x)); D(12, floor(x)); D(13, ceil(x)); D(14, trunc(x)); r[15] = (int)x; r[16] = (u64)(s64)x; r[17] = (u64)fabs(y);
    r[18] = __float_as_uint((float)x); r[19] = __float_as_uint(__double2float_rz(y)); D(20, (double)(float)x); D(21, (double)(s64)r[16]);
    D(22, (double)(int)r[15]); r[23] = (x < y) | (x <= y) << 1 | (x != y) << 2 | isnan(x) << 3;
}

// Library functions: compared with a tolerance.
KERNEL mathf(const float *a, float *o) {
    float x = a[I];
    float *r = o + 12 * I;
    r[0] = sinf(x); r[1] = cosf(x); r[2] = tanf(x); r[3] = expf(x); r[4] = logf(fabsf(x)); r[5] = powf(fabsf(x), 1.7f);
    r[6] = rsqrtf(fabsf(x)); r[7] = __sinf(x); r[8] = __expf(x); r[9] = tanhf(x); r[10] = cbrtf(x); r[11] = erff(x);
}
KERNEL mathd(const double *a, double *o) {
    double x = a[I];
    double *r = o + 8 * I;
    r[0] = sin(x); r[1] = cos(x); r[2] = exp(x); r[3] = log(fabs(x)); r[4] = pow(fabs(x), 1.7); r[5] = tanh(x); r[6] = cbrt(x); r[7] = fmod(x, 3.0);
}

KERNEL halves(const u32 *a, const u32 *b, u32 *o) {
    u32 x = a[I], y = b[I];
    half2 h = *(half2 *)&x, k = *(half2 *)&y;
    __nv_bfloat162 g = *(__nv_bfloat162 *)&x, l = *(__nv_bfloat162 *)&y;
    u32 *r = o + 16 * I;
#define H(n, e) do { auto t = e; r[n] = *(u32 *)&t; } while (0)
    H(0, __hadd2(h, k)); H(1, __hmul2(h, k)); H(2, __hfma2(h, k, h)); H(3, __hmin2(h, k)); H(4, __hmax2(h, k)); H(5, __hsub2(h, k));
    H(6, __hgt2(h, k)); r[7] = __hbeq2(h, k) | __heq(h.x, k.x) << 1 | __hlt(h.y, k.y) << 2;
    r[8] = __float_as_uint(__half2float(h.x)); r[9] = __float_as_uint(__half2float(h.y)); H(10, __floats2half2_rn(__uint_as_float(x), __uint_as_float(y)));
    H(11, __floats2bfloat162_rn(__uint_as_float(x), __uint_as_float(y))); H(12, __hfma2(g, l, g)); H(13, __hmax2(g, l)); r[14] = __half2int_rz(h.x);
    r[15] = __half_as_ushort(__double2half((double)__uint_as_float(y))) | __half_as_ushort(__int2half_rn((int)x)) << 16;
}

// Shuffles, votes, matches and reductions, also by parts of the warp that run apart.
KERNEL warps(const int *a, int *o) {
    int v = a[I], lane = threadIdx.x & 31;
    int *r = o + 16 * I;
    const u32 all = 0xffffffffu;
    r[0] = __shfl_sync(all, v, 5); r[1] = __shfl_up_sync(all, v, 3); r[2] = __shfl_down_sync(all, v, 7, 16); r[3] = __shfl_xor_sync(all, v, 9);
    r[4] = __ballot_sync(all, v > 0); r[5] = __any_sync(all, v == 3) | __all_sync(all, v > -100) << 1;
    r[6] = __match_any_sync(all, v & 3); int p; r[7] = __match_all_sync(all, v & ~0xff, &p); r[8] = p;
    r[9] = __reduce_add_sync(all, v); r[10] = __reduce_min_sync(all, v); r[11] = __reduce_xor_sync(all, (u32)v);
    u32 odd = __ballot_sync(all, lane & 1);
    if (lane & 1) {
        int w = v;
        for (int k = 0; k < (lane & 3); k++) w = w * 3 + 1;
        r[12] = __shfl_sync(odd, w, 1) + __reduce_add_sync(odd, w);
    } else {
        r[12] = __shfl_sync(~odd, v, 2) - __reduce_max_sync(~odd, v);
    }
    // Both sides of a branch meet in one shuffle of the whole warp.
    if (v & 4) r[13] = __shfl_sync(all, v, 3); else r[13] = __shfl_sync(all, v, 3) + 1;
    int s = v;
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(all, s, d);
    r[14] = s;
    r[15] = __popc(__activemask()) + __shfl_sync(all, v, lane ^ 1, 8);
}

// Branches: nested loops with breaks and continues, a switch, early returns.
KERNEL branches(const u32 *a, u32 *o, u32 n) {
    u32 x = a[I], s = 0;
    if (x % 11 == 3) { o[I] = 12345; return; }
    for (u32 i = 0; i < x % 37; i++) {
        if ((x >> (i & 31)) & 1) continue;
        for (u32 j = i; j < n; j++) {
            s = s * 31 + (i ^ j);
            if (s % 13 == 5) break;
            if (s % 101 == 7) goto out;
        }
    }
out:
    switch (x & 15) {
    case 0: s += 3; break; case 1: s *= 5; break; case 2: s ^= x; break; case 3: s -= x; break; case 4: s = ~s; break; case 5: s <<= 3; break;
    case 6: s >>= 2; break; case 7: s += s >> 5; break; case 9: s |= 77; break; case 10: s &= ~1u; break; case 11: s = s * s; break;
    case 12: s %= 1000; break; default: s = s + x * 7;
    }
    while (s & 1) { s = s / 3 + 1; if (s < 8) break; }
    o[I] = s;
}

__device__ __noinline__ u64 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ u32 ackermann(u32 m, u32 n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
KERNEL recursion(const u32 *a, u64 *o) {
    u32 x = a[I];
    if (x & 1) o[I] = fib(x % 13); else o[I] = ackermann(2, x % 5) + fib(x % 7);
}

// Threads of a warp take a lock in turn.
KERNEL locks(u32 *lock, u32 *count, u32 *o) {
    bool done = false;
    u32 mine = 0;
    while (!done) {
        if (atomicCAS(lock, 0u, 1u) == 0u) {
            mine = *(volatile u32 *)count;
            *(volatile u32 *)count = mine + 1;
            __threadfence();
            atomicExch(lock, 0u);
            done = true;
        }
    }
    o[I] = mine;
}

KERNEL atomics(u32 *w, u64 *l, float *f, double *d, u32 *old) {
    __shared__ u32 s[4];
    __shared__ u64 sl;
    __shared__ float sf;
    if (threadIdx.x == 0) { s[0] = s[1] = s[2] = 0; s[3] = ~0u; sl = 0; sf = 0; }
    __syncthreads();
    u32 i = I;
    atomicAdd(&s[0], i); atomicMax(&s[1], i * 7 % 101); atomicXor(&s[2], i * 3); atomicMin(&s[3], i + 9); atomicAdd(&sl, (u64)i << 30); atomicAdd(&sf, (float)threadIdx.x);
    old[i] = atomicAdd(&w[0], 1u); atomicMin((int *)&w[1], -(int)i); atomicMax(&w[2], i); atomicAnd(&w[3], ~(1u << (i & 31))); atomicOr(&w[4], 1u << (i % 29)); atomicXor(&w[5], i);
    atomicInc(&w[6], 99u); atomicDec(&w[7], 50u); atomicSub(&w[8], 3u);
    atomicAdd(&l[0], (u64)i * 1000003); atomicMax((s64 *)&l[1], (s64)i - 20); atomicMin(&l[2], 1000 - (u64)i % 500); atomicAdd(f, 0.25f * (i & 7)); atomicAdd(d, 0.5 * i);
    u64 seen = l[3], next;
    do { next = seen; seen = atomicCAS(&l[3], next, next + i + 1); } while (seen != next);
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 *out = w + 16 + 8 * blockIdx.x;
        out[0] = s[0]; out[1] = s[1]; out[2] = s[2]; out[3] = s[3]; out[4] = (u32)sl; out[5] = (u32)(sl >> 32); out[6] = __float_as_uint(sf);
    }
}

// Named barriers: half of the block makes what the other half takes, and reductions over a barrier.
KERNEL barriers(const u32 *a, u32 *o) {
    extern __shared__ u32 slot[];
    u32 t = threadIdx.x, half = blockDim.x / 2, x = a[I];
    if (t < half) {
        for (int k = 0; k < 3; k++) {
            slot[t] = x * (k + 1);
            asm volatile("bar.arrive 1, %0;" ::"r"(blockDim.x) : "memory");
            asm volatile("bar.sync 2, %0;" ::"r"(blockDim.x) : "memory");
        }
        o[3 * I] = x;
    } else {
        u32 sum = 0;
        for (int k = 0; k < 3; k++) {
            asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x) : "memory");
            sum = sum * 5 + slot[blockDim.x - 1 - t];
            asm volatile("bar.arrive 2, %0;" ::"r"(blockDim.x) : "memory");
        }
        o[3 * I] = sum;
    }
    o[3 * I + 1] = __syncthreads_count(x & 1);
    o[3 * I + 2] = __syncthreads_and(x != 77) | __syncthreads_or(x == 78) << 1;
}

__constant__ u32 table[32] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
struct Pack { char c; short s; int i; s64 l; float f; double d; };
KERNEL params(Pack p, u32 n, const u32 *a, u64 *o) {
    u32 x = a[I];
    u64 local[8];
    for (int k = 0; k < 8; k++) local[k] = x * k + table[(x + k) & 15];
    u64 *generic = x & 1 ? local + (x & 3) : o + 4 * I;
    generic[1] = p.l + n;
    o[4 * I] = p.c + p.s * 3 + p.i;
    o[4 * I + 1] = local[(x >> 2) & 7];
    o[4 * I + 2] = (u64)(p.f * 2) + (u64)(p.d * 4);
    o[4 * I + 3] = generic[1];
}

typedef u32 (*op)(u32, u32);
__device__ __noinline__ u32 plus(u32 a, u32 b) { return a + b; }
__device__ __noinline__ u32 times(u32 a, u32 b) { return a * b; }
__device__ __noinline__ u32 mix(u32 a, u32 b) { return (a ^ b) * 2654435761u; }
__device__ op ops[3] = {plus, times, mix};
KERNEL pointers(const u32 *a, u32 *o) { u32 x = a[I]; o[I] = ops[x % 3](x, I) + ops[x % 2](x, 7); }

// Bytes and halves, 8- and 16-byte accesses, shared memory of mixed widths, asynchronous copies.
KERNEL widths(const uint4 *a, uint4 *o, unsigned char *bytes) {
    __shared__ uint4 s[128];
    __shared__ unsigned char c[512];
    u32 t = threadIdx.x;
    u32 at = (u32)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(at), "l"(a + I));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    c[4 * t] = t; c[4 * t + 1] = t * 3; *(short *)&c[4 * t + 2] = (short)(t * -5);
    __syncthreads();
    uint4 v = s[(t + 17) & 127];
    uint2 w = *(uint2 *)&s[(t + 3) & 127].z;
    v.x += c[(7 * t) & 511]; v.y += *(short *)&c[(4 * t + 62) & 510]; v.z += w.x; v.w ^= w.y;
    o[I] = v;
    bytes[2 * I] = (unsigned char)v.x; bytes[2 * I + 1] = c[t];
}

KERNEL grid_sync(u32 *a, u32 *o) {
    auto g = cg::this_grid();
    u32 n = (u32)g.size();
    for (u32 k = 0; k < 3; k++) {
        a[I] += k + 1;
        g.sync();
        o[I] = o[I] * 3 + a[(I * 7 + k) % n];
        g.sync();
    }
}

// One 16 x 8 product of halves by way of ldmatrix, one of bytes; fragments are put in their places by hand.
KERNEL tensor(const uint4 *a, const uint4 *b, const float *c, float *d, const u32 *ai, const u32 *bi, int *di) {
    __shared__ uint4 sa[32], sb[16];
    u32 t = threadIdx.x, g = t / 4, q = t % 4;
    sa[t] = a[t];
    if (t < 16) sb[t] = b[t];
    __syncwarp();
    u32 pa = (u32)__cvta_generic_to_shared(&sa[(t % 16) * 2 + t / 16]), pb = (u32)__cvta_generic_to_shared(&sb[t % 16]);
    u32 a0, a1, a2, a3, b0, b1;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(pb));
    float x = c[g * 8 + 2 * q], y = c[g * 8 + 2 * q + 1], z = c[(g + 8) * 8 + 2 * q], w = c[(g + 8) * 8 + 2 * q + 1];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(x), "+f"(y), "+f"(z), "+f"(w) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    d[g * 8 + 2 * q] = x; d[g * 8 + 2 * q + 1] = y; d[(g + 8) * 8 + 2 * q] = z; d[(g + 8) * 8 + 2 * q + 1] = w;
    int i0 = 1, i1 = 2, i2 = 3, i3 = 4;
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(i0), "+r"(i1), "+r"(i2), "+r"(i3) : "r"(ai[g * 8 + q]), "r"(ai[(g + 8) * 8 + q]), "r"(ai[g * 8 + 4 + q]), "r"(ai[(g + 8) * 8 + 4 + q]), "r"(bi[g * 8 + q]), "r"(bi[g * 8 + 4 + q]));
    di[g * 8 + 2 * q] = i0; di[g * 8 + 2 * q + 1] = i1; di[(g + 8) * 8 + 2 * q] = i2; di[(g + 8) * 8 + 2 * q + 1] = i3;
}

#if __CUDA_ARCH__ >= 900
KERNEL cluster_ring(u32 *o) {
    __shared__ u32 s[32];
    auto c = cg::this_cluster();
    s[threadIdx.x] = c.block_rank() * 100 + threadIdx.x;
    c.sync();
    u32 *r = c.map_shared_rank(s, (c.block_rank() + 1) % c.num_blocks());
    u32 v = r[31 - threadIdx.x];
    atomicAdd(&r[threadIdx.x], 1000u);
    c.sync();
    o[I] = v + s[threadIdx.x];
}
#endif

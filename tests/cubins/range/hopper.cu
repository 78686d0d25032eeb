// What only sm_90a has: matrix products of a warp group out of shared memory, and bulk copies into it.
typedef unsigned u32;
typedef unsigned long long u64;
typedef unsigned short u16;

// A descriptor of a matrix in shared memory: address, leading and stride offsets in units of 16 bytes, no swizzle.
__device__ u64 matrix(const void *at, u32 leading, u32 stride) {
    u64 a = (u32)__cvta_generic_to_shared(at);
    return (a & 0x3ffff) >> 4 | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32;
}

// C (64x8, single) = A (64x16, half) * B (16x8, half, by columns). Core matrices are 8 rows of 16 bytes.
extern "C" __global__ void __launch_bounds__(128) warp_group(const u16 *a, const u16 *b, float *c) {
    __shared__ alignas(128) u16 sa[64 * 16], sb[16 * 8];
    u32 t = threadIdx.x;
    for (u32 i = t; i < 64 * 16; i += 128) {
        u32 row = i / 16, col = i % 16;
        // Core matrix (row / 8, col / 8): those of one row of matrices are 128 bytes apart, rows 256.
        sa[(row / 8) * 128 + (col / 8) * 64 + (row % 8) * 8 + col % 8] = a[i];
    }
    for (u32 i = t; i < 16 * 8; i += 128) {
        u32 col = i / 16, k = i % 16; // b by columns
        sb[(k / 8) * 64 + col * 8 + k % 8] = b[i];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    float d[4] = {0, 0, 0, 0};
    u64 da = matrix(sa, 128, 256), db = matrix(sb, 128, 256);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 0;\n}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(da), "l"(db), "r"(1));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    u32 row = t / 32 * 16 + t % 32 / 4, col = t % 4 * 2;
    c[row * 8 + col] = d[0], c[row * 8 + col + 1] = d[1];
    c[(row + 8) * 8 + col] = d[2], c[(row + 8) * 8 + col + 1] = d[3];
}

// 4,096 bytes into shared memory by one bulk copy, whose end a barrier in shared memory tells; and out again.
extern "C" __global__ void bulk_copy(const u32 *in, u32 *out) {
    __shared__ alignas(128) u32 s[1024];
    __shared__ alignas(8) u64 barrier;
    u32 at = (u32)__cvta_generic_to_shared(s), bar = (u32)__cvta_generic_to_shared(&barrier), t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 4096;" ::"r"(bar));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];" ::"r"(at), "l"(in + 1024 * blockIdx.x), "r"(bar) : "memory");
    }
    asm volatile("{\n.reg .pred p;\nL1:\nmbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra L1;\n}" ::"r"(bar) : "memory");
    for (u32 i = t; i < 1024; i += blockDim.x) s[i] = s[i] * 3 + i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 4096;" ::"l"(out + 1024 * blockIdx.x), "r"(at) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

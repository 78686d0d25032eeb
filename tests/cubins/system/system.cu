// What kernels call for printf and assert: functions with the names nv_* stand in for the vendor's vprintf and
// __assertfail, and write what is to be printed into a log that the host reads (nv-host/src/system.rs).
typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;

constexpr u32 LOG_WORDS = 1 << 18, FORMAT_BYTES = 1024, STRING_BYTES = 256, ARGUMENTS = 32;
extern "C" {
__device__ u32 nv_log[LOG_WORDS];
__device__ u32 nv_log_used;
__device__ u32 nv_log_dropped;
}

// Words of one record, counted first and then written.
struct Record {
    u32 *to;
    u32 at;
    __device__ void word(u32 w) {
        if (to) to[at] = w;
        at++;
    }
    // Length, then the bytes in whole words.
    __device__ __noinline__ void string(const char *s, u32 most) {
        u32 n = 0;
#pragma unroll 1
        while (s && n < most && s[n]) n++;
        word(s ? n : ~0u);
#pragma unroll 1
        for (u32 i = 0; i < n; i += 4) {
            u32 w = 0;
#pragma unroll 1
            for (u32 k = 0; k < 4 && i + k < n; k++) w |= (u32)(u8)s[i + k] << 8 * k;
            word(w);
        }
    }
};

// The format, and an argument for each of its conversions: one word, or two for what is wide.
static __device__ __noinline__ u32 print(u32 *to, const char *f, const u8 *a) {
    Record r = {to, 1};
    r.word(1);
    r.string(f, FORMAT_BYTES);
    u32 at = 0, given = 0;
#pragma unroll 1
    for (u32 i = 0; i < FORMAT_BYTES && f[i] && given < ARGUMENTS; i++) {
        if (f[i] != '%') continue;
        bool wide = false;
#pragma unroll 1
        for (i++; i < FORMAT_BYTES && f[i]; i++) {
            char c = f[i];
            if (c == '*') {
                at = (at + 3) & ~3;
                r.word(*(const u32 *)(a + at));
                at += 4;
                given++;
                continue;
            }
            if (c == 'l' || c == 'j' || c == 'z' || c == 't') wide = true;
            bool modifier = c == 'l' || c == 'j' || c == 'z' || c == 't' || c == 'h' || c == '-' || c == '+' || c == ' ' || c == '#' || c == '.' || (c >= '0' && c <= '9');
            if (modifier) continue;
            bool whole = c == 'd' || c == 'i' || c == 'u' || c == 'o' || c == 'x' || c == 'X' || c == 'c';
            bool real = c == 'f' || c == 'F' || c == 'e' || c == 'E' || c == 'g' || c == 'G' || c == 'a' || c == 'A';
            if (whole && !wide) {
                at = (at + 3) & ~3;
                r.word(*(const u32 *)(a + at));
                at += 4;
                given++;
            } else if (whole || real || c == 'p' || c == 's') {
                at = (at + 7) & ~7;
                u64 value = *(const u64 *)(a + at);
                at += 8;
                given++;
                if (c == 's') r.string((const char *)value, STRING_BYTES);
                else r.word((u32)value), r.word((u32)(value >> 32));
            }
            break;
        }
    }
    return r.at;
}

static __device__ u32 *reserve(u32 words) {
    if (*(volatile u32 *)&nv_log_used <= LOG_WORDS) {
        u32 at = atomicAdd(&nv_log_used, words);
        if (at <= LOG_WORDS && words <= LOG_WORDS - at) return nv_log + at;
    }
    atomicAdd(&nv_log_dropped, 1);
    return 0;
}

extern "C" __device__ __noinline__ int nv_vprintf(const char *format, const void *arguments) {
    u32 words = print(0, format, (const u8 *)arguments);
    u32 *to = reserve(words);
    if (!to) return -1;
    print(to, format, (const u8 *)arguments);
    to[0] = words;
    return 0;
}

static __device__ __noinline__ u32 failure(u32 *to, const char *message, const char *file, u32 line, const char *function) {
    Record r = {to, 1};
    r.word(2);
    r.word(line);
    r.word(blockIdx.x), r.word(blockIdx.y), r.word(blockIdx.z);
    r.word(threadIdx.x), r.word(threadIdx.y), r.word(threadIdx.z);
    r.string(message, STRING_BYTES), r.string(file, STRING_BYTES), r.string(function, STRING_BYTES);
    return r.at;
}

extern "C" __device__ __noinline__ void nv_assertfail(const char *message, const char *file, u32 line, const char *function, u64) {
    u32 words = failure(0, message, file, line, function);
    if (u32 *to = reserve(words)) {
        failure(to, message, file, line, function);
        to[0] = words;
    }
    __threadfence_system();
    __trap();
}

// Never launched: a caller of all, for the linker to keep them and to count registers and stack.
extern "C" __global__ void nv_system(const char *s, const void *a) {
    nv_vprintf(s, a);
    nv_assertfail(s, s, 0, s, 1);
}

// A small program on the vendor's library, for `docs/trace-example.md`: it starts the library, copies 4 MiB to the
// GPU, launches one kernel, copies 4 MiB back and checks them. The few functions that it needs are declared here, so
// that no vendor header is needed. Build: cc -o example example.c -l:libcuda.so.1
// Run: ./example bench.sm_90.cubin
#include <stdio.h>
#include <stdlib.h>

extern int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
extern int cuModuleLoad(void **, const char *), cuModuleGetFunction(void **, void *, const char *);
extern int cuMemAlloc_v2(unsigned long long *, size_t), cuMemcpyHtoD_v2(unsigned long long, const void *, size_t);
extern int cuMemcpyDtoH_v2(void *, unsigned long long, size_t), cuCtxSynchronize(void);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);

#define CHECK(x) do { int r = (x); if (r) { printf("%s: error %d\n", #x, r); exit(1); } } while (0)

int main(int argc, char **argv) {
  void *context, *module, *vadd;
  int device, n = 1 << 20;
  unsigned long long a, b, y;
  size_t bytes = n * sizeof(float);
  float *host = malloc(bytes);
  CHECK(argc != 2);
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoad(&module, argv[1]));
  CHECK(cuModuleGetFunction(&vadd, module, "vadd"));
  CHECK(cuMemAlloc_v2(&a, bytes));
  CHECK(cuMemAlloc_v2(&b, bytes));
  CHECK(cuMemAlloc_v2(&y, bytes));
  for (int i = 0; i < n; i++) host[i] = i % 1000;
  CHECK(cuMemcpyHtoD_v2(a, host, bytes));
  CHECK(cuMemcpyHtoD_v2(b, host, bytes));
  void *arguments[] = {&a, &b, &y, &n};
  CHECK(cuLaunchKernel(vadd, n / 256, 1, 1, 256, 1, 1, 0, 0, arguments, 0));
  CHECK(cuCtxSynchronize());
  CHECK(cuMemcpyDtoH_v2(host, y, bytes));
  for (int i = 0; i < n; i++)
    if (host[i] != 2 * (i % 1000)) {
      printf("element %d is %g\n", i, host[i]);
      return 1;
    }
  printf("all %d elements are right\n", n);
  return 0;
}

// A kernel driver's stand-in, one layer below the recording library: it answers ioctls on descriptors of the files
// whose paths begin with NV_TRACE_DEV. Build: cc -shared -fPIC -o fake.so fake.c
#define _GNU_SOURCE
#include <errno.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t *at(void *p, int byte) { return (uint32_t *)((char *)p + byte); }

int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  char *p = va_arg(list, char *);
  va_end(list);
  char name[64], path[4096];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(name, path, sizeof path - 1);
  path[n < 0 ? 0 : n] = 0;
  const char *prefix = getenv("NV_TRACE_DEV");
  if (!prefix || strncmp(path, prefix, strlen(prefix))) {
    int (*next)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
    return next(fd, request, p);
  }
  if (strstr(path, "-uvm")) {
    if (request == 0x21) *at(p, 9260) = 0;
    return 0;
  }
  if ((uintptr_t)p < 4096) {
    errno = EFAULT;
    return -1;
  }
  static uint32_t handle = 0x5c000100;
  switch (request & 0xff) {
  case 0xd3: // NV_ESC_IOCTL_XFER_CMD
    return ioctl(fd, 0xc0000000ul | *at(p, 4) << 16 | 'F' << 8 | *at(p, 0), *(void **)(p + 8));
  case 0x2b: // NV_ESC_RM_ALLOC, the long form
    if (!*at(p, 8)) *at(p, 8) = handle++;
    *at(p, 40) = *at(p, 12) == 0xbad ? 0x22 : 0; // NV_ERR_INVALID_CLASS
    if (*at(p, 12) == 0xc86f) *at(*(void **)(p + 16), 0x84) = 0x20; // cid
    return 0;
  case 0x2a: // NV_ESC_RM_CONTROL: NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES, and what is not described
    *at(*(void **)(p + 16), 0) = 1;
    *at(p, 28) = 0;
    return 0;
  case 0x4e: // NV_ESC_RM_MAP_MEMORY
    *(uint64_t *)(p + 32) = 0x1000;
    *at(p, 40) = 0;
    return 0;
  case 0x57: // NV_ESC_RM_MAP_MEMORY_DMA
    *at(p, 56) = 0;
    return 0;
  default:
    return 0;
  }
}

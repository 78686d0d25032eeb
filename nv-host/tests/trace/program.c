// A program that uses the driver: what the test of `nv trace` records. NV_TRACE_DEV names its device nodes, which are
// ordinary files of 1 MiB. Build: cc -o program program.c
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENT 0xc1d00001u
#define DEVICE 0x5c000001u
#define CHECK(x) do { if (!(x)) { perror(#x); exit(9); } } while (0)

static int ctl, uvm;

static void alloc(uint32_t parent, uint32_t handle, uint32_t class, void *params) {
  struct { uint32_t root, parent, new, class; uint64_t params, rights; uint32_t size, flags, status, pad; } c =
      {CLIENT, parent, handle, class, (uintptr_t)params, 0, 0, 0, 0x55, 0};
  CHECK(ioctl(ctl, 0xc030462b, &c) == 0);
}

static void release(uint32_t handle) {
  uint32_t c[4] = {CLIENT, DEVICE, handle, 0};
  CHECK(ioctl(ctl, 0xc0104629, c) == 0);
}

// Maps a memory object for the process.
static void *map(uint32_t memory, uint64_t length, long offset) {
  struct { uint32_t client, device, memory, pad; uint64_t offset, length, linear; uint32_t status, flags; int fd, pad2; }
      c = {CLIENT, DEVICE, memory, 0, 0, length, 0, 0x55, 0, ctl, 0};
  CHECK(ioctl(ctl, 0xc038464e, &c) == 0);
  void *p = mmap(0, length, PROT_READ | PROT_WRITE, MAP_SHARED, ctl, offset);
  CHECK(p != MAP_FAILED);
  return p;
}

// Maps a memory object for the GPU, by RM.
static void map_dma(uint32_t memory, uint64_t length, uint64_t va) {
  struct { uint32_t client, device, dma, memory; uint64_t offset, length; uint32_t flags, flags2, kind, pad; uint64_t va;
           uint32_t status, pad2; } c = {CLIENT, DEVICE, 0x70, memory, 0, length, 0, 0, 0, 0, va, 0x55, 0};
  // As a structure that is too large for an ioctl number would be passed.
  struct { uint32_t cmd, size; uint64_t ptr; } x = {0x57, sizeof c, (uintptr_t)&c};
  CHECK(ioctl(ctl, 0xc01046d3, &x) == 0);
}

// The same, by UVM.
static void map_uvm(uint32_t memory, uint64_t length, uint64_t va) {
  static char c[9264];
  memset(c, 0, sizeof c);
  memcpy(c, &va, 8);
  memcpy(c + 8, &length, 8);
  *(uint32_t *)(c + 9252) = CLIENT;
  *(uint32_t *)(c + 9256) = memory;
  *(uint32_t *)(c + 9260) = 0x55;
  CHECK(ioctl(uvm, 0x21, c) == 0);
}

static void channel(uint32_t handle, uint64_t ring, uint32_t entries, uint32_t userd, uint64_t offset) {
  static char c[0x170];
  memset(c, 0, sizeof c);
  memcpy(c + 8, &ring, 8);
  memcpy(c + 16, &entries, 4);
  memcpy(c + 32, &userd, 4);
  memcpy(c + 64, &offset, 8);
  alloc(DEVICE, handle, 0xc86f, c);
}

static void any_call(void) {
  uint32_t params[2] = {0, 0};
  struct { uint32_t client, object, cmd, flags; uint64_t params; uint32_t size, status; } c =
      {CLIENT, DEVICE, 0x800280, 0, (uintptr_t)params, 4, 0x55};
  CHECK(ioctl(ctl, 0xc020462a, &c) == 0);
}

int main(int argc, char **argv) {
  char path[4096];
  const char *prefix = getenv("NV_TRACE_DEV");
  CHECK(prefix);
  snprintf(path, sizeof path, "%s%s", prefix, "ctl");
  CHECK((ctl = open(path, O_RDWR | O_CLOEXEC)) >= 0);
  snprintf(path, sizeof path, "%s%s", prefix, "-uvm");
  CHECK((uvm = openat(AT_FDCWD, path, O_RDWR)) >= 0);
  snprintf(path, sizeof path, "%s%s", prefix, "7");
  CHECK(open(path, O_RDWR) < 0 && errno == ENOENT);

  alloc(0, CLIENT, 0x41, 0);
  alloc(DEVICE, 0x5c0000ff, 0xbad, 0);
  CHECK(ioctl(ctl, 0xc020462a, (void *)8) < 0 && errno == EFAULT); // a bad pointer is the driver's business
  any_call();

  uint32_t *ring = map(0x5c000010, 0x1000, 0), *userd = map(0x5c000011, 0x1000, 0x1000), *words = map(0x5c000012, 0x2000, 0x2000);
  memset(userd, 0, 0x1000); // as the driver does; the ring may hold what a former owner left
  map_dma(0x5c000010, 0x1000, 0x200000000);
  map_uvm(0x5c000012, 0x2000, 0x200800000);
  map_uvm(0x5c000013, 0x2000, 0x200900000); // nothing maps it for the process
  channel(0x5c000020, 0x200000000, 8, 0x5c000011, 0x200);
  alloc(0x5c000020, 0x5c000021, 0xcbc0, 0);

  // Binds compute and launches a descriptor that lies elsewhere.
  uint32_t push[] = {0x20012000, 0xcbc0, 0x200120ad, 0x200801000 >> 8, 0x200120b0, 9};
  memcpy(words, push, sizeof push);
  FILE *file = fopen(argv[1], "rb");
  CHECK(argc == 2 && file && fread(words + 0x1000 / 4, 4, 96, file) == 96);
  fclose(file);
  ring[0] = 0x00800000, ring[1] = 2 | 6 << 10;
  ring[2] = 0x00900000, ring[3] = 2 | 5 << 10;
  ring[4] = 7, ring[5] = 0; // a control entry: NOP
  userd[(0x200 + 0x8c) / 4] = 3;
  any_call();

  // Goes round: 7 entries are more than the 5 that are left until the first slot.
  for (int i = 0; i < 8; i++) ring[2 * i] = 0x00800000 + 4 * 4, ring[2 * i + 1] = 2 | 2 << 10;
  userd[(0x200 + 0x8c) / 4] = 4;
  any_call();

  // A second channel whose GP_PUT nobody can see.
  channel(0x5c000030, 0x200000000, 8, 0x5c0000aa, 0);
  release(0x5c000030);

  // In a child none of the pages are trusted, and calls go on.
  pid_t child = fork();
  if (!child) {
    any_call();
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);

  // What is submitted last is seen as the object is freed; after munmap the memory is not looked at.
  ring[8] = 0x00800000 + 4 * 4, ring[9] = 2 | 2 << 10;
  userd[(0x200 + 0x8c) / 4] = 5;
  release(0x5c000020);
  CHECK(munmap(ring, 0x1000) == 0);
  CHECK(mmap(userd, 0x1000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == userd);
  any_call();
  CHECK(close(uvm) == 0);
  printf("done\n");
  return 3;
}

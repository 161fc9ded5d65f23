/* A file system with one file, "data", that everybody can open and nobody can read: as of a file server that no longer
 * answers, whoever reads waits in uninterruptible sleep until this process ends.
 *
 *   silent-file DIRECTORY    mounts it there and says "mounted" */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { file = 2, bytes = 1 << 20, forever = 1 << 30 };

static int device;
static const char* directory;

static _Noreturn void leave(int signal) {
  (void)signal;
  umount2(directory, MNT_DETACH);
  _exit(0); /* the kernel ends all waits when the device is closed */
}

static void answer(const struct fuse_in_header* request, const void* body, size_t length, int error) {
  struct fuse_out_header header = {
      .len = (uint32_t)(sizeof header + length), .error = error, .unique = request->unique};
  struct iovec parts[] = {{&header, sizeof header}, {(void*)body, length}};
  if (writev(device, parts, 2) < 0 && errno != ENOENT) leave(0);
}

static struct fuse_attr attributes(uint64_t node) {
  const int isFile = node == file;
  return (struct fuse_attr){.ino = node,
                            .size = isFile ? bytes : 0,
                            .mode = isFile ? S_IFREG | 0644 : S_IFDIR | 0755,
                            .nlink = 1,
                            .blksize = 4096};
}

static void serve(const struct fuse_in_header* request, const void* body) {
  switch (request->opcode) {
    case FUSE_INIT: {
      const struct fuse_init_in* const asked = body;
      /* With FUSE_ASYNC_READ a reader waits for its page, which no signal but SIGKILL ends. */
      const struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
                                        .minor = FUSE_KERNEL_MINOR_VERSION,
                                        .max_readahead = asked->max_readahead,
                                        .flags = FUSE_ASYNC_READ,
                                        .max_write = 4096};
      return answer(request, &out, sizeof out, 0);
    }
    case FUSE_LOOKUP: {
      if (strcmp(body, "data") != 0) return answer(request, NULL, 0, -ENOENT);
      const struct fuse_entry_out out = {
          .nodeid = file, .entry_valid = forever, .attr_valid = forever, .attr = attributes(file)};
      return answer(request, &out, sizeof out, 0);
    }
    case FUSE_GETATTR: {
      const struct fuse_attr_out out = {.attr_valid = forever, .attr = attributes(request->nodeid)};
      return answer(request, &out, sizeof out, 0);
    }
    case FUSE_OPEN: {
      const struct fuse_open_out out = {.fh = 1};
      return answer(request, &out, sizeof out, 0);
    }
    case FUSE_READ:
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      return;
    default:
      return answer(request, NULL, 0, -ENOSYS);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  directory = argv[1];
  device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) return perror("/dev/fuse"), 1;
  char options[100];
  snprintf(options, sizeof options, "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", device);
  if (mount("silent", directory, "fuse.silent", MS_NOSUID | MS_NODEV, options) != 0) return perror("mount"), 1;
  signal(SIGTERM, leave);
  signal(SIGINT, leave);
  prctl(PR_SET_PDEATHSIG, SIGTERM); /* whatever becomes of the test */
  puts("mounted");
  fflush(stdout);
  static char request[1 << 20];
  for (;;) {
    const ssize_t length = read(device, request, sizeof request);
    if (length < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) continue;
    if (length < (ssize_t)sizeof(struct fuse_in_header)) leave(0);
    serve((const struct fuse_in_header*)request, request + sizeof(struct fuse_in_header));
  }
}

/* Functions that glibc 2.28 lacks, for the binaries of a release. Node's own binaries require 2.28, so ours require no
 * more. The functions are hidden and have glibc's names: our objects, libstdc++ and libgcc link to these. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* libstdc++ skips atomic operations while a process has one thread. Zero means that it never skips them. */
HIDDEN char __libc_single_threaded = 0;

HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* On 64-bit processors the kernel's struct stat is glibc's. */
HIDDEN int fstat(int descriptor, struct stat* found) {
  return (int)syscall(SYS_newfstatat, descriptor, "", found, AT_EMPTY_PATH);
}
HIDDEN int stat(const char* path, struct stat* found) { return (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, 0); }
HIDDEN int lstat(const char* path, struct stat* found) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}
HIDDEN int fstat64(int descriptor, struct stat64* found) { return fstat(descriptor, (struct stat*)found); }

/* std::random_device calls this. */
HIDDEN uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) continue;
  return number;
}

/* Converts a deadline of `clock` into one of CLOCK_REALTIME, the only clock of the older functions. */
static struct timespec realtimeOf(clockid_t clock, const struct timespec* end) {
  struct timespec now, real;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &real);
  real.tv_sec += end->tv_sec - now.tv_sec;
  real.tv_nsec += end->tv_nsec - now.tv_nsec;
  if (real.tv_nsec < 0) {
    real.tv_sec--;
    real.tv_nsec += 1000000000;
  } else if (real.tv_nsec >= 1000000000) {
    real.tv_sec++;
    real.tv_nsec -= 1000000000;
  }
  return real;
}
/* std::condition_variable and std::timed_mutex call these, and check the clock again after each return. */
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* end) {
  const struct timespec real = realtimeOf(clock, end);
  return pthread_cond_timedwait(condition, mutex, &real);
}
HIDDEN int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* end) {
  const struct timespec real = realtimeOf(clock, end);
  return pthread_mutex_timedlock(mutex, &real);
}

HIDDEN const char* strerrorname_np(int number) {
#define NAMED(NAME) \
  case NAME:        \
    return #NAME
  switch (number) {
    NAMED(EPERM);
    NAMED(ENOENT);
    NAMED(ESRCH);
    NAMED(EINTR);
    NAMED(EIO);
    NAMED(ENXIO);
    NAMED(E2BIG);
    NAMED(ENOEXEC);
    NAMED(EBADF);
    NAMED(ECHILD);
    NAMED(EAGAIN);
    NAMED(ENOMEM);
    NAMED(EACCES);
    NAMED(EFAULT);
    NAMED(EBUSY);
    NAMED(EEXIST);
    NAMED(EXDEV);
    NAMED(ENODEV);
    NAMED(ENOTDIR);
    NAMED(EISDIR);
    NAMED(EINVAL);
    NAMED(ENFILE);
    NAMED(EMFILE);
    NAMED(ETXTBSY);
    NAMED(EFBIG);
    NAMED(ENOSPC);
    NAMED(ESPIPE);
    NAMED(EROFS);
    NAMED(EMLINK);
    NAMED(EPIPE);
    NAMED(ERANGE);
    NAMED(EDEADLK);
    NAMED(ENAMETOOLONG);
    NAMED(ENOSYS);
    NAMED(ENOTEMPTY);
    NAMED(ELOOP);
    NAMED(EPROTO);
    NAMED(EOVERFLOW);
    NAMED(ENOTSOCK);
    NAMED(EMSGSIZE);
    NAMED(EPROTONOSUPPORT);
    NAMED(EOPNOTSUPP);
    NAMED(EAFNOSUPPORT);
    NAMED(EADDRINUSE);
    NAMED(EADDRNOTAVAIL);
    NAMED(ENETDOWN);
    NAMED(ENETUNREACH);
    NAMED(ECONNABORTED);
    NAMED(ECONNRESET);
    NAMED(ENOBUFS);
    NAMED(EISCONN);
    NAMED(ENOTCONN);
    NAMED(ETIMEDOUT);
    NAMED(ECONNREFUSED);
    NAMED(EHOSTDOWN);
    NAMED(EHOSTUNREACH);
    NAMED(EALREADY);
    NAMED(EINPROGRESS);
    NAMED(ESTALE);
    NAMED(EDQUOT);
    NAMED(ECANCELED);
    default:
      return NULL; /* the caller prints the number */
  }
#undef NAMED
}

/* Finds the shared object that contains the code at `pc`. libgcc's unwinder calls this; the structure is glibc 2.35's.
 */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
typedef struct dl_find_object FoundObject;
#else
typedef struct {
  unsigned long long dlfo_flags;
  void *dlfo_map_start, *dlfo_map_end;
  struct link_map* dlfo_link_map;
  void* dlfo_eh_frame; /* PT_GNU_EH_FRAME */
  unsigned long long reserved[7];
} FoundObject;
#endif
struct Search {
  uintptr_t pc;
  FoundObject* found;
};
static int look(struct dl_phdr_info* object, size_t size, void* argument) {
  struct Search* search = argument;
  const ElfW(Phdr)* frames = NULL;
  int has = 0;
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frames = part;
    if (part->p_type != PT_LOAD || search->pc < begin || search->pc >= begin + part->p_memsz) continue;
    has = 1;
    search->found->dlfo_map_start = (void*)begin;
    search->found->dlfo_map_end = (void*)(begin + part->p_memsz);
  }
  if (!has || frames == NULL) return 0;
  search->found->dlfo_eh_frame = (void*)(object->dlpi_addr + frames->p_vaddr);
  return 1;
}
HIDDEN int _dl_find_object(void* pc, FoundObject* found) {
  struct Search search = {(uintptr_t)pc, found};
  memset(found, 0, sizeof *found);
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

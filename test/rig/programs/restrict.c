/* Runs a program under what sandboxes, old kernels and small limits refuse.
 *
 *   restrict [CALL=ERRNO]... [open-files=N] [processes=N] [user=ID] -- PROGRAM [ARGUMENT]...
 *
 * CALL is one of the names below; ERRNO is EPERM, ENOSYS or EMFILE. A call that is refused stays so in all that the
 * program starts, and so do the limits. */
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

struct Call {
  const char* name;
  long number;
  int third; /* refused only with this third argument; -1: always */
};
static const struct Call calls[] = {
    {"memfd_create", SYS_memfd_create, -1},
    {"pidfd_open", SYS_pidfd_open, -1},
    {"signalfd", SYS_signalfd4, -1},
    {"close_range", SYS_close_range, -1},
    {"peerpidfd", SYS_getsockopt, SO_PEERPIDFD},
    {"timerfd_create", SYS_timerfd_create, -1},
};
static const struct {
  const char* name;
  int number;
} errors[] = {{"EPERM", EPERM}, {"ENOSYS", ENOSYS}, {"EMFILE", EMFILE}};

static void fail(const char* what) {
  fprintf(stderr, "restrict: %s: %s\n", what, strerror(errno));
  exit(2);
}

static void refuse(const struct Call* call, int error) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call->number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call->third, 0, call->third < 0 ? 0 : 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) fail("seccomp");
}

static void limit(int what, const char* value) {
  const rlim_t number = (rlim_t)atol(value);
  const struct rlimit both = {number, number};
  if (setrlimit(what, &both) != 0) fail("setrlimit");
}

static void become(const char* user) {
  const unsigned id = (unsigned)atoi(user);
  if (setgroups(0, NULL) != 0 || setgid(id) != 0 || setuid(id) != 0) fail("setuid");
}

static void apply(const char* word) {
  const char* value = strchr(word, '=');
  if (value == NULL) fail(word);
  const size_t length = (size_t)(value++ - word);
  if (strncmp(word, "open-files", length) == 0) return limit(RLIMIT_NOFILE, value);
  if (strncmp(word, "processes", length) == 0) return limit(RLIMIT_NPROC, value);
  if (strncmp(word, "user", length) == 0) return become(value);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    if (strncmp(word, calls[i].name, length) != 0 || calls[i].name[length] != '\0') continue;
    for (size_t j = 0; j < sizeof errors / sizeof *errors; j++) {
      if (strcmp(value, errors[j].name) == 0) return refuse(&calls[i], errors[j].number);
    }
  }
  errno = EINVAL;
  fail(word);
}

int main(int argc, char** argv) {
  int at = 1;
  for (; at < argc && strcmp(argv[at], "--") != 0; at++) apply(argv[at]);
  if (at + 1 >= argc) {
    fputs("restrict: no program\n", stderr);
    return 2;
  }
  execvp(argv[at + 1], argv + at + 1);
  fail(argv[at + 1]);
}

// Preloaded into ncclrun: ends the process by SIGKILL at the n-th point of its way, where each call that makes
// something durable is two points, one before and one after it. DIE_LOG: a file that gets a line for each point.
// DIE_AT: the number of the point. DIE_WORD: only in processes that have this word among their arguments.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "has-word.h"

static int armed = -1;
static int points;

static void point(const char* name, const char* when) {
  if (armed < 0) {
    const char* word = getenv("DIE_WORD");
    armed = getenv("DIE_LOG") != NULL && (word == NULL || hasWord(word));
  }
  if (!armed) return;
  const int number = __atomic_add_fetch(&points, 1, __ATOMIC_SEQ_CST);
  char line[128];
  const int size = snprintf(line, sizeof line, "%d %s %s\n", number, when, name);
  const int log = open(getenv("DIE_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (write(log, line, (size_t)size) < 0) abort();
  close(log);
  const char* at = getenv("DIE_AT");
  if (at != NULL && atoi(at) == number) kill(getpid(), SIGKILL);
}

#define DURABLE(name, parameters, arguments)                    \
  int name parameters {                                         \
    static int(*real) parameters;                               \
    if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, #name); \
    point(#name, "before");                                     \
    const int result = real arguments;                          \
    point(#name, "after");                                      \
    return result;                                              \
  }

DURABLE(fsync, (int file), (file))
DURABLE(fdatasync, (int file), (file))
DURABLE(rename, (const char* from, const char* to), (from, to))
DURABLE(link, (const char* from, const char* to), (from, to))
DURABLE(mkdir, (const char* path, mode_t mode), (path, mode))

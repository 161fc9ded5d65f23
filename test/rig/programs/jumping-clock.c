// Preloaded into a program: the wall clock is ahead by the seconds that the file CLOCK_AHEAD contains. Other clocks,
// and processes without the word CLOCK_WORD among their arguments, see no change.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "has-word.h"

static long ahead(void) {
  static int armed = -1;
  if (armed < 0) armed = getenv("CLOCK_AHEAD") != NULL && getenv("CLOCK_WORD") != NULL && hasWord(getenv("CLOCK_WORD"));
  if (!armed) return 0;
  const int file = open(getenv("CLOCK_AHEAD"), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[32] = {0};
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  return size > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  static int (*next)(clockid_t, struct timespec*);
  if (next == NULL) next = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = next(clock, out);
  if (result == 0 && clock == CLOCK_REALTIME) out->tv_sec += ahead();
  return result;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  static int (*next)(struct timeval*, void*);
  if (next == NULL) next = (int (*)(struct timeval*, void*))dlsym(RTLD_NEXT, "gettimeofday");
  const int result = next(out, zone);
  if (result == 0) out->tv_sec += ahead();
  return result;
}

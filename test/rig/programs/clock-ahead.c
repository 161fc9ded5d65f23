/* Preloaded: the clock of the day is CLOCK_AHEAD_SECONDS ahead; those that only run on are not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

#ifndef CLOCK_AHEAD_SECONDS
#define CLOCK_AHEAD_SECONDS 7
#endif

int clock_gettime(clockid_t clock, struct timespec* out) {
  static int (*own)(clockid_t, struct timespec*);
  if (own == NULL) *(void**)&own = dlsym(RTLD_NEXT, "clock_gettime");
  const int status = own(clock, out);
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) out->tv_sec += CLOCK_AHEAD_SECONDS;
  return status;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  struct timespec now;
  (void)zone;
  const int status = clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return status;
}

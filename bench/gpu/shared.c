#define _GNU_SOURCE
#include "shared.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

Shared* shared;
int rank, ranks = 1;

void die(const char* format, ...) {
  va_list list;
  char text[1024];
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  fprintf(stderr, "collectives: rank %d: %s\n", rank, text);
  fflush(stdout);
  _exit(1);
}

void shared_inherit(void) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) die("no shared memory: %m");
}

/* The start of the parent tells it from an older process of the same number. */
static unsigned long long parents_start(void) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)getppid());
  FILE* file = fopen(path, "r");
  if (!file) die("cannot read %s: %m", path);
  const size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = 0;
  const char* at = strrchr(text, ')');
  unsigned long long start = 0;
  for (int field = 3; at && field <= 22; field++) {
    at = strchr(at + 1, ' ');
    if (at && field == 22) start = strtoull(at, NULL, 10);
  }
  return start;
}

void shared_by_parent(void) {
  char path[128];
  snprintf(path, sizeof path, "/dev/shm/ncclrun-collectives-%d-%llu", (int)getppid(), parents_start());
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof *shared) != 0) die("cannot make %s: %m", path);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) die("cannot map %s: %m", path);
  close(file);
  atomic_fetch_add(&shared->ready, 1);
  const int64_t until = milliseconds() + 60000;
  while (atomic_load(&shared->ready) < ranks) {
    if (milliseconds() > until) die("%d of %d ranks came within 60 s", atomic_load(&shared->ready), ranks);
    sched_yield();
  }
  barrier();
  if (rank == 0) unlink(path);
}

void barrier(void) {
  const int phase = atomic_load(&shared->phase);
  if (atomic_fetch_add(&shared->arrived, 1) + 1 == ranks) {
    atomic_store(&shared->arrived, 0);
    atomic_store(&shared->phase, phase + 1);
    return;
  }
  for (int spins = 0; atomic_load(&shared->phase) == phase; spins++) {
    if (spins > 2000) sched_yield();
  }
}

double largest(double value) {
  shared->value[rank] = value;
  barrier();
  double max = shared->value[0];
  for (int i = 1; i < ranks; i++) {
    if (shared->value[i] > max) max = shared->value[i];
  }
  barrier();
  return max;
}

double total(double value) {
  shared->value[rank] = value;
  barrier();
  double sum = 0;
  for (int i = 0; i < ranks; i++) sum += shared->value[i];
  barrier();
  return sum;
}

double from_first(double value) {
  shared->value[rank] = value;
  barrier();
  const double first = shared->value[0];
  barrier();
  return first;
}

void exchange(const void* mine, void* theirs, size_t bytes, int from) {
  memcpy(shared->bytes[rank], mine, bytes);
  barrier();
  memcpy(theirs, shared->bytes[from], bytes);
  barrier();
}

double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int64_t milliseconds(void) { return (int64_t)(microseconds() / 1e3); }

void under_way(double seconds, const char* format, ...) {
  if (rank == 0) {
    va_list list;
    va_start(list, format);
    vsnprintf(shared->what, sizeof shared->what, format, list);
    va_end(list);
    atomic_store(&shared->deadline, milliseconds() + (int64_t)(seconds * 1e3));
  }
  /* Without a parent of ours each rank looks after itself. */
  alarm((unsigned)(seconds + 15));
}

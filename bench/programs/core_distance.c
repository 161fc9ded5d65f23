/* How far two cores are from each other: the nanoseconds that a cache line takes there and back. Usage: core_distance
 * CORE CORE. A virtual machine's cores move about among those of its host: with the last-level cache between them the
 * way is several times as long as inside it, and every exchange of small messages with it, whoever's it is. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 10000 };

static _Alignas(128) atomic_uint line;

static void run_on(const char* core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(atoi(core), &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void* answer(void* core) {
  run_on(core);
  for (unsigned round = 0; round < ROUNDS; round++) {
    while (atomic_load(&line) != 2 * round + 1) {
    }
    atomic_store(&line, 2 * round + 2);
  }
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t other;
  struct timespec begin, end;
  if (argc != 3 || pthread_create(&other, NULL, answer, argv[2]) != 0) return 2;
  run_on(argv[1]);
  for (unsigned round = 0; round < ROUNDS; round++) {
    if (round == ROUNDS / 2) clock_gettime(CLOCK_MONOTONIC, &begin);
    atomic_store(&line, 2 * round + 1);
    while (atomic_load(&line) != 2 * round + 2) {
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  pthread_join(other, NULL);
  printf("%.0f\n", ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / (ROUNDS / 2));
  return 0;
}

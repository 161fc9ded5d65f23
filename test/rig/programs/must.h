/* What the test programs share: a failed call or condition ends the rank with a sentence and status 1. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ncclrun.h"

#define MUST(call)                                                                                    \
  do {                                                                                                \
    ncclResult_t must = (call);                                                                       \
    if (must == ncclSuccess) break;                                                                   \
    fprintf(stderr, "%s:%d: %s = %d: %s\n", __FILE__, __LINE__, #call, must, ncclGetLastError(NULL)); \
    exit(1);                                                                                          \
  } while (0)
#define CHECK(condition)                                                          \
  do {                                                                            \
    if (condition) break;                                                         \
    fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
    exit(1);                                                                      \
  } while (0)

/* Ranks that say to each other in a directory how far they are, where the engine is what is tested. */
static inline void say(const char* what, int rank, const char* directory) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s-%d", directory, what, rank);
  FILE* file = fopen(path, "w");
  CHECK(file != NULL && fclose(file) == 0);
}
static inline void awaitAll(const char* what, int ranks, const char* directory) {
  for (int rank = 0; rank < ranks; rank++) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s-%d", directory, what, rank);
    while (access(path, F_OK) != 0) usleep(1000);
  }
}

/* Rank 0 makes a unique id, the others read it. */
static inline void passOn(ncclUniqueId* id, const char* name, int rank, const char* directory) {
  char path[512], whole[512];
  snprintf(path, sizeof path, "%s/%s.part", directory, name);
  snprintf(whole, sizeof whole, "%s/%s", directory, name);
  if (rank == 0) {
    MUST(ncclGetUniqueId(id));
    FILE* file = fopen(path, "w");
    CHECK(file != NULL && fwrite(id, sizeof *id, 1, file) == 1 && fclose(file) == 0 && rename(path, whole) == 0);
    return;
  }
  FILE* file;
  while ((file = fopen(whole, "r")) == NULL) usleep(1000);
  CHECK(fread(id, sizeof *id, 1, file) == 1 && fclose(file) == 0);
}

static inline double milliseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* The communicator of all ranks of the job. */
typedef struct {
  ncclUniqueId id;
  int size, rank;
  ncclComm_t comm;
} Job;

static inline Job joinJob(void) {
  Job job;
  MUST(ncclrunGetJob(&job.id, &job.size, &job.rank));
  MUST(ncclCommInitRank(&job.comm, job.size, job.id, job.rank));
  return job;
}

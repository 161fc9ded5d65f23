/* What the test programs share: a failed call or condition ends the rank with a sentence and status 1. */
#pragma once
#include <stdio.h>
#include <stdlib.h>

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

/* Ranks for the test programs: processes of this host, or threads of one. The program starts them itself and watches
 * them: one that fails ends all, and when the time is up each is named with the place where it is. With TEST_PAGE=FILE
 * each process of a job is a rank instead, perhaps on another host that this machine plays.
 *
 * On GPUs rank k has GPU k, or, where there are fewer GPUs than ranks, shares one. With NCCLRUN_DEVICE=host the same programs run on the host device (device.h). */
#pragma once
#include <stdatomic.h>
#include <stddef.h>

#include "ncclrun.h"

enum { maxRanks = 16, maxIds = 1024 };

/* Shared by all ranks and the process that watches. */
typedef struct {
  ncclUniqueId ids[maxIds];
  atomic_int made[maxIds];
  atomic_int arrived, others; /* how often ranks have come to meet() and meetOf() */
  atomic_int dies[maxRanks]; /* the rank is about to kill itself: no failure */
  atomic_int done[maxRanks];
  _Atomic double lostAt; /* now() of the kill; 0 before */
  char places[maxRanks][160];
} Page;
extern Page* page;

extern int ranks;               /* in all */
extern _Thread_local int rank;  /* of the calling thread; threads that a rank starts set it */
extern int eachSeesItsGpuAlone; /* set before startProcesses: CUDA_VISIBLE_DEVICES shows each process one GPU */

/* Run body in `count` processes, or in one thread each of one process. The program's exit status: 0 if all have come
 * back (or died as they said) within `seconds`. */
int startProcesses(int count, unsigned seconds, void (*body)(void));
int startThreads(int count, unsigned seconds, void (*body)(void));

/* Where the calling rank is, for messages. As printf. */
void at(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program with rank, place and a sentence. */
void failed(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));

void must(const char* call, ncclResult_t result, ncclResult_t expected);
#define MUST(call) must(#call, call, ncclSuccess)
#define REFUSED(call, result) must(#call, call, result)
void same(const char* what, long long seen, long long expected);
#define SAME(seen, expected) same(#seen, seen, expected)
#define HOLDS(condition) ((condition) ? (void)0 : failed("%s does not hold", #condition))

/* Returns when all ranks have come; when `count` of them have, among which the others are not. */
void meet(void);
void meetOf(int count);

/* An id that all ranks get: the next one of their common sequence. */
ncclUniqueId nextId(void);
/* A communicator of all ranks, of the next id. */
ncclComm_t joinAll(void);
/* What the communicator says when it no longer says ncclInProgress. */
ncclResult_t settled(ncclComm_t comm);
/* The communicator's error, when it has one. */
ncclResult_t told(ncclComm_t comm);

/* Seconds of a clock that all ranks share. */
double now(void);
/* Kills the calling process. */
void die(void) __attribute__((noreturn));

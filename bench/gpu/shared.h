/* Memory that all ranks of the benchmark share: a barrier, what they tell each other, and where they are, so that the
 * parent can say which case hangs and go on behind it. */
#ifndef SHARED_H_
#define SHARED_H_

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_RANKS 64
#define MAX_SIZES 40
#define LIBRARIES 2
enum { OURS = 0, THEIRS = 1 };
enum { KINDS = 11 }; /* collectives, and the barrier */
enum { JOINING, WINDOWS, CASES };
enum { MODES = 4 }; /* eager and graph × plain and window */

/* What the machine can do at best. */
typedef struct {
  double launch[2]; /* µs of an empty kernel: eager, in a graph */
  double copies;    /* GB/s of a copy engine to the next GPU while all do; 0: not to be had */
  double stores;    /* the same of SMs */
} Limits;

typedef struct {
  _Atomic int arrived;
  _Atomic int phase;
  _Atomic int ready; /* ranks that have mapped this */
  double value[MAX_RANKS];
  char bytes[MAX_RANKS][512]; /* what each rank gives to all: ids, memory handles */
  _Atomic int failed[LIBRARIES];
  char sentence[LIBRARIES][512]; /* of the first rank that failed */
  /* Where rank 0 is. The parent reads it when the time is up. */
  _Atomic int64_t deadline; /* of the case under way, CLOCK_MONOTONIC in ms; 0: none */
  _Atomic int step;         /* number of the case under way, counted from the beginning */
  _Atomic int library;      /* that is working; -1: none */
  char what[256];
  _Atomic int left_out[LIBRARIES][KINDS][MODES]; /* hung or crashed before */
  _Atomic int stage;                             /* JOINING … */
  _Atomic int excluded[LIBRARIES];
  _Atomic int wrong; /* cases with wrong elements, or a library that failed, hung or crashed */
  int headed;        /* the machine's figures are known and printed */
  Limits limits;
} Shared;

extern Shared* shared;
extern int rank, ranks;

/* Before fork: memory that the children inherit. */
void shared_inherit(void);
/* Ranks of another launcher, all with the same parent: memory named by it, without a name once all have it. */
void shared_by_parent(void);
/* All ranks. */
void barrier(void);
/* The largest `value` of all ranks, at all ranks. */
double largest(double value);
/* The sum of all ranks', at all ranks. */
double total(double value);
/* Rank 0's value, at all ranks. */
double from_first(double value);
/* Every rank gives up to 512 bytes and gets those of `from`. */
void exchange(const void* mine, void* theirs, size_t bytes, int from);

int64_t milliseconds(void); /* CLOCK_MONOTONIC */
double microseconds(void);  /* CLOCK_MONOTONIC */
/* What is being done, and how long it may take. */
void under_way(double seconds, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* Ends the process with a sentence. */
void die(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif

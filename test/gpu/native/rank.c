#define _GNU_SOURCE
#include "rank.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

Page* page;
int ranks;
_Thread_local int rank;
int eachSeesItsGpuAlone;
static void (*bodyOfRank)(void);
static _Thread_local int meetings, othersMeetings, idsTaken;

double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void at(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(page->places[rank], sizeof page->places[rank], format, arguments);
  va_end(arguments);
}

void failed(const char* format, ...) {
  char sentence[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  fprintf(stderr, "rank %d: %s: %s\n", rank, page->places[rank], sentence);
  fflush(NULL);
  _exit(1);
}

void must(const char* call, ncclResult_t result, ncclResult_t expected) {
  if (result == expected) return;
  failed("%s = %d (%s), expected %d (%s); the last error: %s", call, result, ncclGetErrorString(result), expected,
         ncclGetErrorString(expected), ncclGetLastError(NULL));
}

void same(const char* what, long long seen, long long expected) {
  if (seen != expected) failed("%s is %lld, expected %lld", what, seen, expected);
}

static void await(atomic_int* counter, int min) {
  while (atomic_load(counter) < min) usleep(50);
}

void meet(void) {
  atomic_fetch_add(&page->arrived, 1);
  await(&page->arrived, ++meetings * ranks);
}

void meetOf(int count) {
  atomic_fetch_add(&page->others, 1);
  await(&page->others, ++othersMeetings * count);
}

ncclUniqueId nextId(void) {
  const int which = idsTaken++;
  if (which == maxIds) failed("more than %d ids", maxIds);
  if (rank == 0) {
    MUST(ncclGetUniqueId(&page->ids[which]));
    atomic_store(&page->made[which], 1);
  }
  await(&page->made[which], 1);
  return page->ids[which];
}

ncclComm_t joinAll(void) {
  ncclComm_t comm;
  MUST(ncclCommInitRank(&comm, ranks, nextId(), rank));
  meet(); /* What a rank that has joined does wrong would otherwise end the join of one that has not. */
  return comm;
}

ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  for (;;) {
    MUST(ncclCommGetAsyncError(comm, &state));
    if (state != ncclInProgress) return state;
    usleep(50);
  }
}

ncclResult_t told(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  while ((state = settled(comm)) == ncclSuccess) usleep(50);
  return state;
}

void die(void) {
  atomic_store(&page->dies[rank], 1);
  page->lostAt = now();
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static void beRank(void) {
  at("choosing the device");
  useDevice(rank);
  at("beginning");
  bodyOfRank();
  atomic_store(&page->done[rank], 1);
}

static void* threadMain(void* number) {
  rank = *(const int*)number;
  beRank();
  return NULL;
}

static void beThreads(void) {
  pthread_t threads[maxRanks];
  int numbers[maxRanks];
  for (int i = 0; i < ranks; i++) {
    numbers[i] = i;
    if (pthread_create(&threads[i], NULL, threadMain, &numbers[i]) != 0) failed("a thread cannot be started");
  }
  for (int i = 0; i < ranks; i++) pthread_join(threads[i], NULL);
}

static void sayWhere(const char* what, int from, int to) {
  for (int i = from; i < to; i++) {
    if (!page->done[i] && !page->dies[i]) fprintf(stderr, "rank %d %s: %s\n", i, what, page->places[i]);
  }
}

/* `each`: ranks per child. */
static int watch(pid_t* children, int count, int each, unsigned seconds) {
  double until = now() + seconds;
  int left = count, status = 0, bad = 0;
  while (left > 0 && now() < until) {
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    int which = 0;
    while (which < count && children[which] != ended) which++;
    if (ended <= 0 || which == count) {
      usleep(1000);
      continue;
    }
    children[which] = 0;
    left--;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && page->dies[which]) continue;
    if (WIFSIGNALED(status)) sayWhere(strsignal(WTERMSIG(status)), which * each, (which + 1) * each);
    if (!bad) until = now() + 2; /* the others may say what they know */
    bad = 1;
  }
  if (left > 0 && !bad) {
    fprintf(stderr, "still running after %u s\n", seconds);
    sayWhere("is", 0, ranks);
  }
  for (int i = 0; i < count; i++) {
    if (children[i] != 0) kill(children[i], SIGKILL);
  }
  return bad || left > 0;
}

/* One rank of a job that ncclrun has started: the ranks share the page by a file. */
static int beRankOfJob(const char* file, unsigned seconds) {
  const int descriptor = open(file, O_RDWR | O_CREAT, 0600);
  if (descriptor < 0 || ftruncate(descriptor, sizeof *page) != 0) return 2;
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (page == MAP_FAILED) return 2;
  rank = atoi(getenv("RANK"));
  alarm(seconds);
  beRank();
  return 0;
}

static int start(int count, int children, unsigned seconds, void (*body)(void), void (*inChild)(void)) {
  if (count < 1 || count > maxRanks) {
    fprintf(stderr, "%d ranks; there are 1 to %d\n", count, maxRanks);
    return 2;
  }
  ranks = count;
  bodyOfRank = body;
  const char* const file = getenv("TEST_PAGE");
  if (file != NULL && inChild == beRank) return beRankOfJob(file, seconds);
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 2;
  fflush(NULL);
  pid_t made[maxRanks];
  for (int i = 0; i < children; i++) {
    made[i] = fork();
    if (made[i] != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rank = i;
    char number[12];
    snprintf(number, sizeof number, "%d", i);
    if (eachSeesItsGpuAlone) setenv("CUDA_VISIBLE_DEVICES", number, 1);
    inChild();
    fflush(NULL);
    _exit(0);
  }
  return watch(made, children, count / children, seconds);
}

int startProcesses(int count, unsigned seconds, void (*body)(void)) {
  return start(count, count, seconds, body, beRank);
}

int startThreads(int count, unsigned seconds, void (*body)(void)) { return start(count, 1, seconds, body, beThreads); }

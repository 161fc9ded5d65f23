/* A stream of all-reduces, every element of every result checked, and a rank in it that misbehaves at a moment given.
 *
 *     stream DIRECTORY [RANK MOMENT OPERATION DEED [NUMBER]]
 *
 * Rank 0 says "streaming" in the directory once the stream flows; it ends when there is a file "enough" there. Then
 * the ranks leave one after the other and rank 0 prints what it has come to. The RANK does its DEED before it joins
 * (MOMENT "start"), after so many operations ("stream"), or when it has left ("end"), and says "act" just before. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "must.h"

enum { maxElements = 1 << 16, flows = 10, pauseUs = 2000, leaveUs = 20000, line = 100 };

static int from[maxElements], to[maxElements];
static const char* directory;
static Job job;

/* Small ones mostly, now and then one that takes several chunks. */
static int elementsOf(int operation) {
  if (operation % 50 == 49) return maxElements;
  return operation % 10 == 9 ? 4096 : 16;
}

/* True in a new process that nothing holds to its rank: own session, no descriptor, nobody's child. False in the rank.
 */
static int inHiddenProcess(void) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child > 0) {
    CHECK(waitpid(child, NULL, 0) == child);
    return 0;
  }
  setsid();
  if (fork() > 0) _exit(0);
  setsid();
  for (int fd = 0; fd < 1024; fd++) close(fd);
  return 1;
}

/* One that is deaf to what asks it to end. */
static void hide(void) {
  if (!inHiddenProcess()) return;
  for (int signal = 1; signal < 32; signal++) sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
  for (;;) pause();
}

static void* outlive(void* first) {
  pthread_join(*(pthread_t*)first, NULL);
  for (;;) pause();
  return NULL;
}

/* One whose first thread has ended: /proc shows it as a zombie. */
static void hideThread(void) {
  if (!inHiddenProcess()) return;
  static pthread_t first, other;
  first = pthread_self();
  if (pthread_create(&other, NULL, outlive, &first) != 0) _exit(1);
  pthread_exit(NULL);
}

/* Directories, each within the other, where the agent has its socket. */
static void dig(long levels) {
  char runtime[512];
  snprintf(runtime, sizeof runtime, "%s", getenv("NCCLRUN_AGENT"));
  *strrchr(runtime, '/') = 0;
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  CHECK(here >= 0 && chdir(runtime) == 0);
  for (long level = 0; level < levels; level++) CHECK(mkdir("d", 0700) == 0 && chdir("d") == 0);
  CHECK(fchdir(here) == 0 && close(here) == 0);
}

/* Writes a file here until the disk is full. */
static void fill(void) {
  static char block[1 << 16];
  const int file = open("rank-output", O_CREAT | O_TRUNC | O_WRONLY, 0600);
  while (file >= 0 && write(file, block, sizeof block) > 0) continue;
  fprintf(stderr, "rank-output: %s\n", strerror(errno));
  exit(3);
}

/* Another communicator needs descriptors, and there are none. */
static void exhaust(void) {
  const int free = dup(0);
  const struct rlimit none = {.rlim_cur = (rlim_t)free, .rlim_max = (rlim_t)free};
  CHECK(free >= 0 && close(free) == 0 && setrlimit(RLIMIT_NOFILE, &none) == 0);
}

static void flood(long lines) {
  char text[line + 1];
  for (long i = 0; i < lines; i++) {
    snprintf(text, sizeof text, "%0*ld\n", line - 1, i);
    CHECK(fwrite(text, line, 1, stdout) == 1);
  }
  CHECK(fflush(stdout) == 0);
}

static void sleepOn(void) {
  for (;;) pause();
}

/* Does not end when it is asked to, nor when its peers fail. */
static void stay(void) {
  signal(SIGTERM, SIG_IGN);
  CHECK(atexit(sleepOn) == 0);
}

static void perform(const char* act, long number) {
  say("act", job.rank, directory);
  if (strcmp(act, "exit") == 0) exit((int)number);
  if (strcmp(act, "signal") == 0) raise((int)number);
  if (strcmp(act, "hide") == 0) hide();
  if (strcmp(act, "thread") == 0) hideThread();
  if (strcmp(act, "dig") == 0) dig(number);
  if (strcmp(act, "fill") == 0) fill();
  if (strcmp(act, "exhaust") == 0) exhaust();
  if (strcmp(act, "flood") == 0) flood(number);
  if (strcmp(act, "stay") == 0) stay();
}

/* True when this was the last. */
static int reduce(int operation) {
  static char enough[512];
  snprintf(enough, sizeof enough, "%s/enough", directory);
  const int elements = elementsOf(operation);
  from[0] = job.rank == 0 && access(enough, F_OK) == 0;
  for (int i = 1; i < elements; i++) from[i] = job.rank + i + operation % 1000;
  MUST(ncclAllReduce(from, to, elements, ncclInt32, ncclSum, job.comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
  const int ranks = job.size * (job.size - 1) / 2;
  for (int i = 1; i < elements; i++) CHECK(to[i] == ranks + job.size * (i + operation % 1000));
  return to[0];
}

int main(int argc, char** argv) {
  CHECK(argc == 2 || argc >= 6);
  directory = argv[1];
  job.rank = atoi(getenv("RANK"));
  const int mine = argc > 2 && (strcmp(argv[2], "all") == 0 || atoi(argv[2]) == job.rank);
  const char *moment = mine ? argv[3] : "never", *act = mine ? argv[5] : "";
  const int at = mine ? atoi(argv[4]) : 0;
  const long number = argc > 6 ? atol(argv[6]) : 0;

  if (strcmp(moment, "start") == 0) perform(act, number);
  job = joinJob();
  int operation = 0;
  for (int last = 0; !last; operation++) {
    if (strcmp(moment, "stream") == 0 && operation == at) perform(act, number);
    last = reduce(operation);
    if (operation == flows) say("streaming", job.rank, directory);
    usleep(pauseUs);
  }
  MUST(ncclCommDestroy(job.comm));
  usleep((useconds_t)(job.rank * leaveUs));
  if (job.rank == 0) printf("all right\n");
  if (strcmp(moment, "end") == 0) perform(act, number);
  return 0;
}

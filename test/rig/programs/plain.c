/* A program that knows nothing of ncclrun: its launcher says rank and size in RANK and WORLD_SIZE, or as Open MPI does,
 * and ids travel as files in a directory.
 *
 *   plain sum DIRECTORY      a communicator of all, one of its parts, one of an id that another rank makes: prints "ok
 * RANK" plain pairs DIRECTORY    communicators of two first, each by an id of its own, then one of all: prints "ok
 * RANK" plain hold DIRECTORY     joins, then waits in a collective that the last rank never calls: prints what became
 * of it */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "must.h"

static int number(const char* name, const char* other) {
  const char* text = getenv(name);
  if (text == NULL) text = getenv(other);
  CHECK(text != NULL);
  return atoi(text);
}

/* The sum of 1 over all ranks is their number. Its end is waited for by leaving. */
static void sumAndLeave(ncclComm_t comm, int size) {
  int one = 1, sum = 0;
  MUST(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL));
  MUST(ncclCommFinalize(comm));
  MUST(ncclCommDestroy(comm));
  CHECK(sum == size);
}

static ncclComm_t join(const char* name, int size, int rank, int maker, const char* directory) {
  ncclUniqueId id;
  ncclComm_t comm;
  passOn(&id, name, rank == maker ? 0 : 1, directory);
  MUST(ncclCommInitRank(&comm, size, id, rank));
  return comm;
}

static void sum(int rank, int size, const char* directory) {
  ncclComm_t part, world = join("world", size, rank, 0, directory);
  CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* whatever the engine has started is no child of ours */
  MUST(ncclCommSplit(world, rank % 2, rank, &part, NULL));
  sumAndLeave(part, size / 2 + (rank % 2 == 0 ? size % 2 : 0));
  sumAndLeave(join("again", size, rank, size - 1, directory), size);
  sumAndLeave(world, size);
  printf("ok %d\n", rank);
}

static void pairs(int rank, int size, const char* directory) {
  char name[32];
  snprintf(name, sizeof name, "pair-%d", rank / 2);
  ncclComm_t pair = join(name, 2, rank % 2, 0, directory);
  sumAndLeave(join("world", size, rank, size - 1, directory), size);
  sumAndLeave(pair, 2);
  printf("ok %d\n", rank);
}

static void hold(int rank, int size, const char* directory) {
  ncclComm_t world = join("world", size, rank, 0, directory);
  int one = 1, total = 0;
  char pid[32];
  snprintf(pid, sizeof pid, "ready-%d", (int)getpid());
  say(pid, rank, directory);
  if (rank == size - 1) {
    for (;;) pause();
  }
  MUST(ncclAllReduce(&one, &total, 1, ncclInt32, ncclSum, world, NULL));
  const ncclResult_t result = ncclrunStreamSynchronize(NULL);
  printf("%d: %s\n", result, ncclGetLastError(NULL));
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  const int rank = number("RANK", "OMPI_COMM_WORLD_RANK"), size = number("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE");
  if (strcmp(argv[1], "sum") == 0) sum(rank, size, argv[2]);
  if (strcmp(argv[1], "pairs") == 0) pairs(rank, size, argv[2]);
  if (strcmp(argv[1], "hold") == 0) hold(rank, size, argv[2]);
  return 0;
}

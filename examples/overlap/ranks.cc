#include "ranks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

void end(const char* sentence, ...) {
  va_list arguments;
  va_start(arguments, sentence);
  std::fputs("overlap: ", stderr);
  std::vfprintf(stderr, sentence, arguments);
  std::fputs("\n", stderr);
  va_end(arguments);
  std::exit(1);
}

void check(ncclResult_t result, const char* call) {
  if (result != ncclSuccess) end("%s: %s", call, ncclGetLastError(nullptr));
}

static int numberFrom(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) end("%s is not set; start it with: ncclrun -n 2 examples/overlap/overlap", name);
  return std::atoi(text);
}

Ranks findRanks() {
  return {.rank = numberFrom("RANK"), .size = numberFrom("WORLD_SIZE"), .gpu = numberFrom("LOCAL_RANK")};
}

/* A pipe with a name that both ends know. Opening it waits for the other end. */
static int openPipe(int rank, int flags) {
  const std::string name = "/dev/shm/overlap-" + std::to_string(numberFrom("MASTER_PORT")) + "-" + std::to_string(rank);
  if (mkfifo(name.c_str(), 0600) != 0 && errno != EEXIST) end("cannot make %s: %m", name.c_str());
  const int pipe = open(name.c_str(), flags | O_CLOEXEC);
  if (pipe < 0) end("cannot open %s: %m", name.c_str());
  if (flags == O_RDONLY) unlink(name.c_str()); /* the writer has it open */
  return pipe;
}

ncclUniqueId shareUniqueId(const Ranks& ranks) {
  ncclUniqueId id;
  if (ranks.rank > 0) {
    const int pipe = openPipe(ranks.rank, O_RDONLY);
    if (read(pipe, &id, sizeof id) != sizeof id) end("rank 0 has not written the unique id");
    close(pipe);
    return id;
  }
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  for (int rank = 1; rank < ranks.size; rank++) {
    const int pipe = openPipe(rank, O_WRONLY);
    if (write(pipe, &id, sizeof id) != sizeof id) end("cannot give rank %d the unique id: %m", rank);
    close(pipe);
  }
  return id;
}

/* Rank 1 leaves while what it has sent is still on its way, and its socket has no room for more. The argument is a
 * directory: rank 1 says "ready" there once the connections stand, sends when there is a file "go", and says "leaving"
 * before it does. */
#include <linux/sockios.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "must.h"

enum { bytes = 8192, maxDescriptors = 1024 };

static char message[bytes];

/* What is on its way already fills it. */
static void leaveNoRoom(void) {
  int found = 0;
  for (int fd = 3; fd < maxDescriptors; fd++) {
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    int queued = 0;
    const int least = 1;
    if (getpeername(fd, (struct sockaddr*)&name, &size) != 0 || name.ss_family != AF_INET) continue;
    if (ioctl(fd, SIOCOUTQ, &queued) != 0 || queued < bytes) continue;
    CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof least) == 0);
    found++;
  }
  CHECK(found == 1);
}

static void transfer(const Job* job) {
  if (job->rank == 1)
    MUST(ncclSend(message, bytes, ncclInt8, 0, job->comm, NULL));
  else
    MUST(ncclRecv(message, bytes, ncclInt8, 1, job->comm, NULL));
  MUST(ncclrunStreamSynchronize(NULL));
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  char go[512];
  snprintf(go, sizeof go, "%s/go", argv[1]);
  Job job = joinJob();
  transfer(&job);
  if (job.rank == 1) {
    say("ready", job.rank, argv[1]);
    while (access(go, F_OK) != 0) usleep(1000);
  }
  transfer(&job);
  if (job.rank == 1) {
    leaveNoRoom();
    say("leaving", job.rank, argv[1]);
  } else {
    usleep(100000); /* what follows has been read */
    ncclResult_t lost = ncclSuccess;
    MUST(ncclCommGetAsyncError(job.comm, &lost));
    MUST(lost);
  }
  MUST(ncclCommDestroy(job.comm));
  return 0;
}

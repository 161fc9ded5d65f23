/* What a job must not leave, for as long as it is not killed: a process, one whose first thread has ended, one that
 * listens at a TCP port, one that has a socket with a name. Says "there" when it is so far.
 *
 *     planted process|thread|listener|socket
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static pthread_t first;

static _Noreturn void stay(void) {
  printf("there\n");
  fflush(stdout);
  for (;;) pause();
}

static void* outlive(void* nothing) {
  pthread_join(first, NULL);
  stay();
  return nothing;
}

static int listenAt(const struct sockaddr* address, socklen_t size) {
  const int fd = socket(address->sa_family, SOCK_STREAM, 0);
  return fd >= 0 && bind(fd, address, size) == 0 && listen(fd, 1) == 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (strcmp(argv[1], "thread") == 0) {
    pthread_t other;
    first = pthread_self();
    if (pthread_create(&other, NULL, outlive, NULL) != 0) return 3;
    pthread_exit(NULL);
  }
  const struct sockaddr_in any = {.sin_family = AF_INET};
  if (strcmp(argv[1], "listener") == 0 && !listenAt((const struct sockaddr*)&any, sizeof any)) return 3;
  const struct sockaddr_un named = {.sun_family = AF_UNIX, .sun_path = "\0planted"};
  if (strcmp(argv[1], "socket") == 0 &&
      !listenAt((const struct sockaddr*)&named, sizeof(sa_family_t) + sizeof "planted"))
    return 3;
  stay();
}

/* Leaves a process behind and ends with 0.
 *
 *     linger thread|root|plain|rank FILE
 *
 * The process has a session of its own, no descriptors, and is nobody's child. It ends its first thread while another
 * lives on ("thread"), or becomes root where this program is root's with the setuid bit ("root"). The FILE gets its
 * process id once it is so. "rank": this process itself becomes root and stays. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* file;

static void sayReady(void) {
  char temporary[512];
  snprintf(temporary, sizeof temporary, "%s.new", file);
  FILE* out = fopen(temporary, "w");
  if (out == NULL) _exit(3);
  fprintf(out, "%d\n", (int)getpid());
  if (fclose(out) != 0 || rename(temporary, file) != 0) _exit(3);
}

static void* outlive(void* first) {
  pthread_join(*(pthread_t*)first, NULL);
  sayReady();
  for (;;) pause();
  return NULL;
}

static void stay(const char* how) {
  static pthread_t first;
  first = pthread_self();
  if (strcmp(how, "thread") == 0) {
    pthread_t other;
    if (pthread_create(&other, NULL, outlive, &first) != 0) _exit(3);
    pthread_exit(NULL);
  }
  const int becomes = strcmp(how, "root") == 0 || strcmp(how, "rank") == 0;
  if (becomes && (setgid(0) != 0 || setuid(0) != 0)) _exit(4);
  sayReady();
  for (;;) pause();
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  file = argv[2];
  if (strcmp(argv[1], "rank") == 0) stay(argv[1]);
  const pid_t child = fork();
  if (child < 0) return 3;
  if (child == 0) {
    setsid();
    if (fork() > 0) _exit(0);
    for (int signal = 1; signal < 32; signal++) sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    for (int fd = 0; fd < 1024; fd++) close(fd);
    stay(argv[1]);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 3;
  for (int waits = 0; access(file, F_OK) != 0; waits++) {
    if (waits == 10000) return 3;
    usleep(1000);
  }
  return 0;
}

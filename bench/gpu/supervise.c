#define _GNU_SOURCE
#include "supervise.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared.h"

static void kill_all(pid_t* children) {
  for (int i = 0; i < ranks; i++) {
    if (children[i] > 0) kill(children[i], SIGKILL);
  }
}

static void start_over(void) {
  atomic_store(&shared->arrived, 0);
  atomic_store(&shared->deadline, 0);
  atomic_store(&shared->library, -1);
  atomic_store(&shared->stage, JOINING);
  for (int n = 0; n < LIBRARIES; n++) atomic_store(&shared->failed[n], 0);
  snprintf(shared->what, sizeof shared->what, "the start");
}

Outcome supervise(int (*body)(int argument), int argument) {
  pid_t children[MAX_RANKS];
  int left = ranks;
  Outcome outcome = ENDED;
  int64_t give_up = 0; /* when the others of one that has failed are killed */
  start_over();
  fflush(stdout);
  for (int i = 0; i < ranks; i++) {
    children[i] = fork();
    if (children[i] < 0) die("fork: %m");
    if (children[i] > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rank = i;
    const int status = body(argument);
    fflush(stdout);
    _exit(status); /* without the libraries' exit handlers: what they leave behind is not measured here */
  }
  while (left > 0) {
    int status, i = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    const int64_t deadline = atomic_load(&shared->deadline);
    if (pid > 0) {
      while (i < ranks && children[i] != pid) i++;
      if (i == ranks) continue;
      children[i] = 0;
      left--;
      if (status == 0 || outcome != ENDED) continue;
      outcome = WIFSIGNALED(status) ? CRASHED : FAILED;
      if (WIFSIGNALED(status)) fprintf(stderr, "collectives: rank %d: %s\n", i, strsignal(WTERMSIG(status)));
      give_up = milliseconds() + 3000;
      continue;
    }
    if (outcome == ENDED && deadline != 0 && milliseconds() > deadline) {
      outcome = HUNG;
      kill_all(children);
    }
    if (give_up != 0 && milliseconds() > give_up) kill_all(children);
    usleep(20000);
  }
  return outcome;
}

static void too_late(int signal) {
  (void)signal;
  const char text[] = "collectives: hung: ";
  if (write(2, text, sizeof text - 1) + write(2, shared->what, strlen(shared->what)) + write(2, "\n", 1) > 0)
    _exit(124);
  _exit(124);
}

void watch_myself(void) { signal(SIGALRM, too_late); }

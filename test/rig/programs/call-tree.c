/* Waits in functions whose names tests know, in the way that its argument says: pause, handler (a signal's, above the
 * functions), spin, vfork (asleep so that nothing can stop it) or thread (a second one, which waits as well). "trace
 * PID" traces a process, as a debugger does. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#define KNOWN __attribute__((noinline, noclone))

static volatile int rounds;

static KNOWN void ready(void) {
  puts("ready");
  fflush(stdout);
}

static KNOWN void waitHere(void) {
  ready();
  for (;;) {
    pause();
    rounds++;
  }
}

static KNOWN void onSignal(int number) {
  waitHere();
  rounds += number;
}

static void* secondThread(void* unused) {
  waitHere();
  return unused;
}

static KNOWN void innermost(const char* how) {
  if (strcmp(how, "handler") == 0) {
    signal(SIGUSR1, onSignal);
    raise(SIGUSR1);
  } else if (strcmp(how, "spin") == 0) {
    ready();
    for (;;) rounds++;
  } else if (strcmp(how, "vfork") == 0) {
    if (vfork() == 0) {
      if (write(1, "ready\n", 6) != 6) _exit(1);
      sleep(600);
      _exit(0);
    }
  } else if (strcmp(how, "thread") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, secondThread, NULL);
    pthread_setname_np(thread, "second");
    pthread_join(thread, NULL);
  } else {
    waitHere();
  }
  rounds++;
}

static KNOWN void middle(const char* how) {
  innermost(how);
  rounds++;
}

static KNOWN void outermost(const char* how) {
  middle(how);
  rounds++;
}

int main(int count, char** words) {
  if (count > 2 && ptrace(PTRACE_SEIZE, atoi(words[2]), NULL, NULL) != 0) return 1;
  outermost(count > 1 ? words[1] : "pause");
  return rounds;
}

/* The parent of the ranks where nobody else has started them. */
#ifndef SUPERVISE_H_
#define SUPERVISE_H_

typedef enum { ENDED, FAILED, HUNG, CRASHED } Outcome;

/* Forks a process per rank, which calls body(argument) and exits with what it returns. Kills them all when the time of
 * what is under way is up or one of them has died. */
Outcome supervise(int (*body)(int argument), int argument);
/* In a rank that another launcher has started: says what hangs and ends the process. */
void watch_myself(void);

#endif

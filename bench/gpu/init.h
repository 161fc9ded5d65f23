#ifndef INIT_H_
#define INIT_H_

/* Joins with one library in this fresh process and reports the times: an exit status. `round` is for the report. */
int init_run(int library, int round);

#endif

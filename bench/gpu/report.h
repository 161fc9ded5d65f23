/* Rows for people on stdout, JSON lines into a file. Only rank 0 writes. */
#ifndef REPORT_H_
#define REPORT_H_

#include "measure.h"

extern const char* json_path; /* NULL: none */

void report_head(void);
/* What the machine can do, shared->limits. */
void report_machine(void);
void report_row(Case one, const Figure figures[LIBRARIES]);
/* The two libraries' ratio with its 95 % interval. */
void report_ratio(Case one, const Figure figures[LIBRARIES]);
/* A case that hung or crashed. */
void report_lost(const char* how, const char* what);
/* One joining of a library: µs. */
void report_init(int library, int round, double join, double first, double large, double leave);

#endif

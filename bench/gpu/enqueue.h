#ifndef ENQUEUE_H_
#define ENQUEUE_H_

#include "measure.h"

/* Prints what an eager call of the case takes of the calling thread's time with each library, beside launches of an
 * empty kernel. All ranks. */
void enqueue_times(Case one);

#endif

/* Whether a case's result is right. */
#ifndef WRONG_H_
#define WRONG_H_

#include "measure.h"

/* Fills the send buffer, and the receive buffer with what no result has. */
void clear(const Library* library, Case one);
/* How many elements of this rank's result are wrong. */
unsigned long long wrong_elements(const Library* library, Case one);

#endif

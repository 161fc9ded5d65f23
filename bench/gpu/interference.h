#ifndef INTERFERENCE_H_
#define INTERFERENCE_H_

#include "measure.h"

/* Prints what the case costs products of matrices that run beside it, with each library. All ranks. */
void interference(Case one);

#endif

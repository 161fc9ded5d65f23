// The folds with the instructions every machine of this architecture has.
#define NCCLRUN_REDUCE_TABLE kReduceBase
#include "host/reduce_kernels.h"

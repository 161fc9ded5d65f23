#ifndef OPTIONS_H_
#define OPTIONS_H_

#include "measure.h"

typedef struct {
  int forks; /* --gpus: we start the ranks */
  int init, interference, enqueue, recorder;
  size_t size[MAX_SIZES];
  int kind[KINDS], mode[MODES];
  int sizes, kinds, modes;
  int (*local_rank)(int rank);
} Options;

extern Options options;

/* Also rank, ranks, the libraries' paths and what measure.h lets be set. Ends the process with a sentence. */
void read_options(int argc, char** argv);

#endif

/* Who we are, and how all ranks come to one unique id: what MPI would be for, with nothing but what every launcher of
 * ranks gives. All ranks are on one host. */
#pragma once
#include "nccl.h"

struct Ranks {
  int rank, size, gpu;
};

/* From RANK, WORLD_SIZE and LOCAL_RANK. Ends the process with a sentence where they are missing. */
Ranks findRanks();
/* The id that rank 0 has made, at every rank. */
ncclUniqueId shareUniqueId(const Ranks& ranks);

/* Ends the process with `sentence` (as of printf) on stderr. */
[[noreturn]] void end(const char* sentence, ...) __attribute__((format(printf, 1, 2)));
void check(ncclResult_t result, const char* call);

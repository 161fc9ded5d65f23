// Every variant that the plan has for a collective, measured one by one. The plan has a row for each
// (NCCLRUN_TUNE=measure): row k serves k bytes.
#pragma once
#include "options.h"
#include "session.h"

// Rank 0 writes a JSON object per line: a head, one per collective, size and variant, and the load by others meanwhile.
void measureForms(const Options& options);

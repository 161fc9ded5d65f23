// Every variant that the plan has for a collective, measured one by one. The plan has a row for each
// (NCCLRUN_TUNE=measure): row k serves k bytes.
#pragma once
#include "options.h"
#include "session.h"

// Rank 0 writes a JSON object per line: a head, then one per collective, size and variant.
void measureForms(const Options& options);

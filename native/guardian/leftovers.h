// Runtime directories that nobody removed, because their agent and guardian were killed at once.
#pragma once

namespace ncclrun::guardian {

// Shows for as long as we live that the directory is in use.
void lockRuntimeDirectory(const char* path);

// Removes what dead jobs of this user left beside ours long ago.
void removeLeftovers(const char* runtimeDirectory);

}  // namespace ncclrun::guardian

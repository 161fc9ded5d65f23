// Finding and killing what descends from us. As child subreaper we inherit every orphan, whatever session or group it
// moved to.
#pragma once

namespace ncclrun::guardian {

// Sends SIGKILL to every descendant, at all levels. How many signals were accepted.
int killDescendants();

// Removes a directory and what is in it, following no link.
void removeDirectory(const char* path);

}  // namespace ncclrun::guardian

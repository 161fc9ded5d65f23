// Whose files we execute: root's and our user's, and nobody else may write to them or to a directory above them. The
// same rules as launcher/remote/staging/trust.ts, which explains them.
#pragma once
#include <string>

namespace ncclrun {

// Empty, or why `path` (absolute) is not to be executed: the first of its parts that is another user's, or that others
// may write to. Both the path as it is and where its symbolic links lead are looked at.
std::string distrustOf(const std::string& path);

// The same for every file of a directory, and the directory itself.
std::string distrustOfAll(const std::string& directory);

// The absolute path of a library to execute; empty where it does not exist or distrustOf() has a reason, which `why`
// then says in a sentence without its end.
std::string executablePath(const std::string& path, std::string& why);

}  // namespace ncclrun

// Removes a directory and all that is in it, piece by piece, so that whoever does it can answer others meanwhile.
#pragma once
#include <dirent.h>

#include <cstdint>
#include <string>

namespace ncclrun::guardian {

// How long a guardian goes on with it at its end.
inline constexpr uint64_t kRemovalMs = 5000;

// Follows no link. However deep the directory is, it needs few descriptors and no recursion: a directory that is not
// empty is moved up to the top, and entered from there.
class Removal {
 public:
  explicit Removal(const char* path);
  ~Removal();
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;

  // Removes some hundred entries. False: it is done, or no more can be removed.
  bool step();
  // What is left and why; empty: nothing is.
  std::string error() const;

 private:
  bool stepTop();
  bool stepInner();
  void enter(const char* name);
  bool moveUp(const char* name);
  void leave();
  bool removeEntry(int directory, const char* name);
  void fail(const std::string& what, int error);

  std::string path_;
  DIR* top_ = nullptr;
  DIR* inner_ = nullptr;  // within the top, being emptied
  std::string innerName_;
  uint64_t moved_ = 0;     // names what is moved up
  bool progress_ = false;  // since the top was last read from its beginning
  bool removed_ = false;
  std::string error_;
};

}  // namespace ncclrun::guardian

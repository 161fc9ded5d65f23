// Memory that is registered with a card: what is registered twice is one region with two users.
#pragma once
#include <cstdint>
#include <list>
#include <mutex>
#include <string>

#include "base/error.h"
#include "dl/verbs.h"
#include "net/net.h"

namespace ncclrun::net {

// For the end of a sentence about a registration that failed with `error`: the limit of locked memory, its value and
// how to raise it, after ": "; empty for other errors.
std::string lockedMemoryBehind(int error);

struct RegisteredRegion {
  uintptr_t begin, end;
  MemoryType type;
  verbs::MemoryRegion* region;
  uint32_t users;
};

class Registrations {
 public:
  Registrations(const verbs::Library& library, verbs::ProtectionDomain& domain, std::string card)
      : library_(library), domain_(domain), card_(std::move(card)) {}
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  // A region that covers all of it, the pages around it included. Any thread.
  Status take(const Region& region, RegisteredRegion*& out);
  // The counterpart of take().
  void release(RegisteredRegion* region);

 private:
  verbs::MemoryRegion* make(const Region& region, uintptr_t begin, uintptr_t end) const;

  const verbs::Library& library_;
  verbs::ProtectionDomain& domain_;
  const std::string card_;
  std::mutex mutex_;
  std::list<RegisteredRegion> regions_;
};

}  // namespace ncclrun::net

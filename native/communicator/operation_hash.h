// The rolling hash by which ranks whose collectives differ are told apart.
#pragma once
#include <cstdint>

#include "base/element.h"
#include "datapath/data_path.h"
#include "datapath/launch.h"

namespace ncclrun {

// Mixes {kind, type, operator, count, root} into `hash`; of a collective that only moves data bytes count, not what
// they are. Sends and receives differ from rank to rank by nature and leave it as it is.
inline uint64_t hashOperation(uint64_t hash, const Operation& operation) {
  if (operation.collective == plan::Collective::sendRecv) return hash;
  constexpr uint64_t kMultiplier = 0x9fb21c651e98df25;
  const bool folds = reduces(operation.collective);
  const uint64_t type = folds ? static_cast<uint64_t>(operation.type) : 0;
  const uint64_t count = folds ? operation.count : operation.count * elementBytes(operation.type);
  const uint64_t kind =
      static_cast<uint64_t>(operation.collective) << 56 | type << 48 | static_cast<uint64_t>(operation.peer);
  hash = (hash ^ kind) * kMultiplier;
  hash = (hash ^ hash >> 32 ^ static_cast<uint64_t>(operation.op)) * kMultiplier;
  hash = (hash ^ hash >> 32 ^ count) * kMultiplier;
  return hash ^ hash >> 29;
}

}  // namespace ncclrun

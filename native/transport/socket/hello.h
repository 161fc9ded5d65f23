// What the two ends of a new connection say to each other before the first slot.
#pragma once
#include <cstdint>

#include "core/step_call.h"

namespace ncclrun::socket {

inline constexpr uint32_t kHelloMagic = 0x48434e4e;    // "NNCH"
inline constexpr uint32_t kWelcomeMagic = 0x57434e4e;  // "NNCW"
inline constexpr uint16_t kVersion = 2;

// From the sender of data, who connects. Little-endian.
struct Hello {
  uint32_t magic;
  uint16_t version;
  uint16_t reserved;
  uint8_t token[16];  // of the communicator's plan
  uint32_t from, to;  // ranks
  uint32_t channel;   // of a ring connection; ~0: the connection of two ranks
  uint32_t stepBytes;
  uint8_t padding[24];
};
static_assert(sizeof(Hello) == 64);

// Before each slot's payload, and in answer to a hello (bytes = kWelcomeMagic).
struct SlotHeader {
  uint32_t bytes;
  uint32_t step;  // low half of the step's number
  StepCall call;
};
static_assert(sizeof(SlotHeader) == 48);
// In SlotHeader::bytes: this end leaves; nothing follows. `step` is an ncclResult_t: success where it leaves in order,
// else what those who wait for it get.
inline constexpr uint32_t kFarewell = 0xffffffff;

}  // namespace ncclrun::socket

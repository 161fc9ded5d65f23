// What the two ends of a new connection say to each other before the first slot.
#pragma once
#include <cstdint>

#include "datapath/step_call.h"

namespace ncclrun::socket {

inline constexpr uint32_t kHelloMagic = 0x48434e4e;    // "NNCH"
inline constexpr uint32_t kWelcomeMagic = 0x57434e4e;  // "NNCW"
inline constexpr uint16_t kVersion = 3;

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
// In SlotHeader::bytes: the header is a farewell's.
inline constexpr uint32_t kFarewell = 0xffffffff;

// This end leaves; nothing follows. `header.step` is an ncclResult_t, what those who wait for it get: success where it
// leaves in order, ncclInvalidUsage where the ranks' calls differ, else ncclRemoteError.
struct Farewell {
  SlotHeader header;
  char sentence[464];  // how they differ; the agents bring it too, but may come later
};
static_assert(sizeof(Farewell) == 512);

}  // namespace ncclrun::socket

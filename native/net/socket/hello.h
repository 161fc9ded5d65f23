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
// Value of SlotHeader::bytes that marks the header of a goodbye.
inline constexpr uint32_t kGoodbye = 0xffffffff;

// Last message of an endpoint that leaves. `header.step` is the ncclResult_t with which the peer's waits end: success
// if the rank leaves in order, ncclInvalidUsage if the ranks' calls differ, else ncclRemoteError.
struct Goodbye {
  SlotHeader header;
  char sentence[464];  // how the calls differ; the agents report it too, but perhaps later
};
static_assert(sizeof(Goodbye) == 512);

}  // namespace ncclrun::socket

#include "agent/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> payload(reinterpret_cast<const std::byte*>(data), size);
  ncclrun::WelcomeMessage welcome;
  decodeWelcome(payload, welcome);
  ncclrun::Status refused;
  decodeRefused(payload, refused);
  ncclrun::AbortedMessage aborted;
  decodeAborted(payload, aborted);
  return 0;
}

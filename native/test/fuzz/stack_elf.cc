// The bytes are a file that a process has mapped: its segments, symbols and call frame information are read, and one
// frame is left by them. The last eight bytes are the address.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "stack/call_frame.h"
#include "stack/elf_image.h"

using namespace ncclrun::stack;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t address = 0;
  if (size < sizeof address) return 0;
  memcpy(&address, data + size - sizeof address, sizeof address);
  const std::unique_ptr<ElfImage> image = ElfImage::open(std::make_unique<SpanSource>(std::span(data, size)));
  if (image == nullptr) return 0;
  const uint64_t addresses[] = {address / 2, address};
  if (image->symbolsAt(addresses).size() != 2) abort();
  image->addressOf("main");
  image->addressAt(address);
  Registers registers;
  registers.pc = address;
  bool isSignalFrame = false;
  stepByCallFrame(*image, address, SpanSource(std::span(data, size)), registers, isSignalFrame);
  return 0;
}

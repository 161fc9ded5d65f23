// Lines of protocol LL between kernels and the proxy: data comes out as it went in, and only when all flags are there.
#include "net/proxy/device_lines.h"

#include <cstring>
#include <vector>

#include "support/check.h"

using namespace ncclrun;

namespace {

constexpr uint32_t kFlag = 0xfffffff0u;

std::vector<std::byte> sampleOf(uint32_t bytes) {
  std::vector<std::byte> data(bytes);
  for (uint32_t i = 0; i < bytes; i++) data[i] = std::byte(i * 37 + 11);
  return data;
}

// Every number of bytes, also odd ones, and nothing behind the last one.
TEST(dataComesOutAsItWentIn) {
  for (uint32_t bytes = 1; bytes <= 67; bytes++) {
    const auto data = sampleOf(bytes);
    std::vector<uint64_t> lines(linesOf(bytes) * 2);
    auto* const memory = reinterpret_cast<std::byte*>(lines.data());
    expandLines(data.data(), bytes, kFlag, 0, memory);
    std::vector<std::byte> out(bytes + 8, std::byte(0x5a));
    EXPECT(packLines(memory, kFlag, bytes, 0, out.data()) == linesOf(bytes));
    EXPECT(std::memcmp(out.data(), data.data(), bytes) == 0);
    for (uint32_t i = bytes; i < out.size(); i++) EXPECT(out[i] == std::byte(0x5a));
  }
}

// Whichever half of whichever line has not arrived: packing stops there, and goes on once it has.
TEST(packingWaitsForEveryHalf) {
  constexpr uint32_t kBytes = 40;
  const auto data = sampleOf(kBytes);
  for (uint32_t missing = 0; missing < linesOf(kBytes) * 2; missing++) {
    std::vector<uint64_t> lines(linesOf(kBytes) * 2);
    auto* const memory = reinterpret_cast<std::byte*>(lines.data());
    expandLines(data.data(), kBytes, kFlag, 0, memory);
    const uint64_t late = lines[missing];
    lines[missing] = late & 0xffffffffu;  // the data of an earlier step, and its flag
    std::vector<std::byte> out(kBytes);
    const uint32_t done = packLines(memory, kFlag, kBytes, 0, out.data());
    EXPECT(done == missing / 2);
    lines[missing] = late;
    EXPECT(packLines(memory, kFlag, kBytes, done, out.data()) == linesOf(kBytes));
    EXPECT(out == data);
  }
}

TEST(renewedLinesBearTheFlag) {
  const auto data = sampleOf(12);
  std::vector<uint64_t> lines(8 * 2, 7);
  expandLines(data.data(), 12, kFlag, 8, reinterpret_cast<std::byte*>(lines.data()));
  for (const uint64_t word : lines) EXPECT(word >> 32 == kFlag);
  for (size_t i = 4; i < lines.size(); i++) EXPECT(uint32_t(lines[i]) == 0);
}

}  // namespace

TEST_MAIN

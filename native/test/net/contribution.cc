#include "net/contribution.h"

#include <span>

#include "base/element.h"
#include "datapath/reduce.h"
#include "expect.h"

namespace ncclrun::test {
namespace {

// Calls body.operator()<T>() with the type of the elements; false for 8- and 16-bit floats, which C++ does not have.
template <typename Body>
bool withType(ncclDataType_t type, Body&& body) {
  switch (type) {
    case ncclInt8:
      body.template operator()<int8_t>();
      return true;
    case ncclUint8:
      body.template operator()<uint8_t>();
      return true;
    case ncclInt32:
      body.template operator()<int32_t>();
      return true;
    case ncclUint32:
      body.template operator()<uint32_t>();
      return true;
    case ncclInt64:
      body.template operator()<int64_t>();
      return true;
    case ncclUint64:
      body.template operator()<uint64_t>();
      return true;
    case ncclFloat32:
      body.template operator()<float>();
      return true;
    case ncclFloat64:
      body.template operator()<double>();
      return true;
    default:
      return false;
  }
}

// Bits of a finite float of moderate size, of either sign.
uint16_t narrowBits(ncclDataType_t type, uint16_t mixed) {
  switch (type) {
    case ncclFloat16:
      return uint16_t((mixed & 0x8fff) | 0x3000);
    case ncclBfloat16:
      return uint16_t((mixed & 0x81ff) | 0x3e00);
    case ncclFloat8e4m3:
      return uint16_t((mixed & 0x8f) | 0x30);
    default:
      return uint16_t((mixed & 0x87) | 0x38);
  }
}

using Vectors = std::vector<std::vector<char>>;

// The sum, product, maximum or minimum of vectors, from left to right.
std::vector<char> combine(ncclDataType_t type, std::span<const std::vector<char>> parts, size_t count, ncclRedOp_t op) {
  std::vector<char> result = parts[0];
  const bool isWide = withType(type, [&]<typename T>() {
    for (const std::vector<char>& part : parts.subspan(1)) {
      for (size_t i = 0; i < count; i++) {
        T value, other;
        std::memcpy(&value, result.data() + i * sizeof(T), sizeof(T));
        std::memcpy(&other, part.data() + i * sizeof(T), sizeof(T));
        value = reduced<T>(value, other, op);
        std::memcpy(result.data() + i * sizeof(T), &value, sizeof(T));
      }
    }
  });
  if (isWide) return result;
  std::vector<const void*> sources;
  for (const std::vector<char>& part : parts) sources.push_back(part.data());
  void* const target = result.data();
  kReduceBase.reduce[type][op](&target, 1, sources.data(), uint32_t(sources.size()), count, false);
  return result;
}

// Narrow floats are reduced in float and rounded once; kReduceBase is the arithmetic without vector extensions, which
// work_test compares with exact values.
std::vector<char> serialOfNarrow(ncclDataType_t type, uint32_t members, size_t count, ncclRedOp_t op) {
  std::vector<std::vector<char>> contributions(members);
  std::vector<const void*> sources;
  const float factor = op == ncclAvg ? float(1.0 / members) : 1;
  for (uint32_t rank = 0; rank < members; rank++) {
    contributions[rank].resize(count * elementBytes(type));
    fillContribution(type, contributions[rank].data(), rank, count);
    if (op == ncclAvg) kReduceBase.scale[type](contributions[rank].data(), contributions[rank].data(), count, &factor);
    sources.push_back(contributions[rank].data());
  }
  std::vector<char> result(count * elementBytes(type));
  void* const target = result.data();
  kReduceBase.reduce[type][op == ncclAvg ? ncclSum : op](&target, 1, sources.data(), members, count, false);
  return result;
}

}  // namespace

void fillContribution(ncclDataType_t type, char* to, uint32_t rank, size_t count) {
  if (withType(type, [&]<typename T>() { fillContribution<T>(to, rank, count); })) return;
  for (size_t i = 0; i < count; i++) {
    const uint16_t bits = narrowBits(type, uint16_t(element<uint32_t>(rank, i) >> 7));
    std::memcpy(to + i * elementBytes(type), &bits, elementBytes(type));
  }
}

std::vector<char> serial(ncclDataType_t type, uint32_t members, size_t count, ncclRedOp_t op) {
  std::vector<char> result;
  if (withType(type, [&]<typename T>() { result = serial<T>(members, count, op); })) return result;
  return serialOfNarrow(type, members, count, op);
}

// Averages: each contribution of floats is scaled, and the root's sum of integers divided.
std::vector<char> serialInTree(ncclDataType_t type, const Levels& levels, size_t count, ncclRedOp_t op) {
  uint32_t members = 0;
  for (const size_t parts : levels[0]) members += uint32_t(parts);
  Reduction reduction;
  EXPECT(makeReduction(type, op, nullptr, members, reduction));
  Vectors parts(members);
  for (uint32_t rank = 0; rank < members; rank++) {
    parts[rank].resize(count * elementBytes(type));
    fillContribution(type, parts[rank].data(), rank, count);
    if (reduction.scale != nullptr)
      kReduceBase.scale[type](parts[rank].data(), parts[rank].data(), count, &reduction.scalar);
  }
  for (const std::vector<size_t>& level : levels) {
    Vectors next;
    size_t first = 0;
    for (const size_t children : level) {
      next.push_back(combine(type, std::span(parts).subspan(first, children), count, op == ncclAvg ? ncclSum : op));
      first += children;
    }
    EXPECT(first == parts.size());
    parts = std::move(next);
  }
  EXPECT(parts.size() == 1);
  if (reduction.divide != nullptr) kReduceBase.divide[type](parts[0].data(), count, members);
  return parts[0];
}

}  // namespace ncclrun::test

// Copies as a device makes them: small ones word by word in rising order, by atomic accesses, so that a program may
// poll the words that a peer writes; large ones are for those who wait for the completion.
#pragma once
#include <cstdint>
#include <cstring>

namespace stand_in_verbs {

inline constexpr size_t kPolledBytes = 4096;

namespace detail {

template <typename Word>
void copyWords(uint8_t*& to, const uint8_t*& from, size_t& bytes) {
  for (; bytes >= sizeof(Word); to += sizeof(Word), from += sizeof(Word), bytes -= sizeof(Word)) {
    const Word word = __atomic_load_n(reinterpret_cast<const Word*>(from), __ATOMIC_ACQUIRE);
    __atomic_store_n(reinterpret_cast<Word*>(to), word, __ATOMIC_RELEASE);
  }
}

}  // namespace detail

inline void copyAsDevice(uint8_t* to, const uint8_t* from, size_t bytes) {
  if (bytes > kPolledBytes) {
    std::memmove(to, from, bytes);
    return;
  }
  const uintptr_t both = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  if (both % 8 == 0) detail::copyWords<uint64_t>(to, from, bytes);
  if (both % 4 == 0) detail::copyWords<uint32_t>(to, from, bytes);
  detail::copyWords<uint8_t>(to, from, bytes);
}

}  // namespace stand_in_verbs

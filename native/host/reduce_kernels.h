// The folds, written once with the compiler's vector types and compiled once per instruction set: the includer names
// its table in NCCLRUN_REDUCE_TABLE. Includes no header with inline functions: those would be compiled with the wrong
// instructions for other users.
#include "datapath/reduce.h"

namespace ncclrun {
namespace {

constexpr size_t kLineBytes = 64;
#if defined(__AVX512F__)
constexpr size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr size_t kVectorBytes = 32;
#else
constexpr size_t kVectorBytes = 16;
#endif

template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};

// How elements of a type are loaded into and stored from a vector of what they are folded in.
template <class T>
struct Lanes {
  using Element = T;
  using V = typename VectorOf<T>::Type;
  static constexpr size_t kCount = kVectorBytes / sizeof(T);
  static constexpr bool kConvertsMuch = false;
  static V load(const char* from) {
    V v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  }
  static void store(char* to, V v) { __builtin_memcpy(to, &v, sizeof v); }
};

using Floats = VectorOf<float>::Type;
using Words = VectorOf<uint32_t>::Type;

inline Words wordsOf(Floats v) { return (Words)v; }
inline Floats floatsOf(Words v) { return (Floats)v; }

template <class V>
inline constexpr bool kFloating = false;
template <>
inline constexpr bool kFloating<Floats> = true;
template <>
inline constexpr bool kFloating<VectorOf<double>::Type> = true;

struct Half {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

struct Float8e4m3 {
  uint8_t bits;
};
struct Float8e5m2 {
  uint8_t bits;
};

// What is folded in float and kept in fewer bits, the integer `Bits`.
template <class Bits>
struct Narrow {
  typedef Bits Stored __attribute__((vector_size(kVectorBytes / sizeof(float) * sizeof(Bits))));
  static constexpr size_t kCount = kVectorBytes / sizeof(float);
  static constexpr bool kConvertsMuch = sizeof(Bits) == 1;
  static Words loadBits(const char* from) {
    Stored bits;
    __builtin_memcpy(&bits, from, sizeof bits);
    return __builtin_convertvector(bits, Words);
  }
  static void storeBits(char* to, Words v) {
    const Stored bits = __builtin_convertvector(v, Stored);
    __builtin_memcpy(to, &bits, sizeof bits);
  }
};

template <>
struct Lanes<Bfloat16> : Narrow<uint16_t> {
  using Element = Bfloat16;
  using V = Floats;
  static V load(const char* from) { return floatsOf(loadBits(from) << 16); }
  // Rounds to nearest, ties to even; a NaN stays one.
  static void store(char* to, V v) {
    const Words bits = wordsOf(v);
    const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const Words nan = (bits >> 16) | 0x40u;
    storeBits(to, (bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
};

template <>
struct Lanes<Half> : Narrow<uint16_t> {
  using Element = Half;
  using V = Floats;
  static V load(const char* from) {
    const Words h = loadBits(from);
    const Words sign = (h & 0x8000u) << 16;
    const Words magnitude = (h & 0x7fffu) << 13;
    // The exponent's bias differs by 112; multiplying by 2^112 also makes subnormals right. Infinity and NaN are set
    // apart.
    const Floats scaled = floatsOf(magnitude) * 0x1p112f;
    const Words special = magnitude | 0x7f800000u;
    return floatsOf(sign | ((h & 0x7c00u) == 0x7c00u ? special : wordsOf(scaled)));
  }
  // Rounds to nearest, ties to even.
  static void store(char* to, V v) {
    const Words bits = wordsOf(v);
    const Words sign = (bits >> 16) & 0x8000u;
    const Words magnitude = bits & 0x7fffffffu;
    const Words normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    // Adding 1/2 leaves a subnormal's bits, rounded by the addition, at the low end of the sum.
    const Words subnormal = wordsOf(floatsOf(magnitude) + 0.5f) - 0x3f000000u;
    Words out = magnitude < (113u << 23) ? subnormal : normal;
    out = magnitude >= 0x477ff000u ? Words{} + 0x7c00u : out;  // 65520 and more round to infinity
    out = magnitude > 0x7f800000u ? ((magnitude >> 13) & 0x3ffu) | 0x7e00u : out;
    storeBits(to, sign | out);
  }
};

// Bias 7, no infinity; all ones is NaN. Scaling and rounding as for Half.
template <>
struct Lanes<Float8e4m3> : Narrow<uint8_t> {
  using V = Floats;
  static V load(const char* from) {
    const Words b = loadBits(from);
    const Floats scaled = floatsOf((b & 0x7fu) << 20) * 0x1p120f;
    return floatsOf((b & 0x80u) << 24 | ((b & 0x7fu) == 0x7fu ? Words{} + 0x7fc00000u : wordsOf(scaled)));
  }
  static void store(char* to, V v) {
    const Words bits = wordsOf(v);
    const Words magnitude = bits & 0x7fffffffu;
    const Words normal = (magnitude - (120u << 23) + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20;
    const Words subnormal = wordsOf(floatsOf(magnitude) + 0x1p14f) - 0x46800000u;
    Words out = magnitude < (121u << 23) ? subnormal : normal;
    out = magnitude >= 0x43e00000u ? Words{} + 0x7eu : out;  // 448 and more
    out = magnitude > 0x7f800000u ? Words{} + 0x7fu : out;
    storeBits(to, (bits >> 24 & 0x80u) | out);
  }
};

// Half without its lower byte. An infinity stays one.
template <>
struct Lanes<Float8e5m2> : Narrow<uint8_t> {
  using V = Floats;
  static V load(const char* from) {
    const Words b = loadBits(from);
    const Words magnitude = (b & 0x7fu) << 21;
    const Floats scaled = floatsOf(magnitude) * 0x1p112f;
    return floatsOf((b & 0x80u) << 24 | ((b & 0x7cu) == 0x7cu ? magnitude | 0x7f800000u : wordsOf(scaled)));
  }
  static void store(char* to, V v) {
    const Words bits = wordsOf(v);
    const Words magnitude = bits & 0x7fffffffu;
    const Words normal = (magnitude - (112u << 23) + 0xfffffu + ((magnitude >> 21) & 1u)) >> 21;
    const Words subnormal = wordsOf(floatsOf(magnitude) + 0x1p7f) - 0x43000000u;
    Words out = magnitude < (113u << 23) ? subnormal : normal;
    out = magnitude >= 0x47600000u ? Words{} + 0x7bu : out;  // 57344 and more
    out = magnitude == 0x7f800000u ? Words{} + 0x7cu : out;
    out = magnitude > 0x7f800000u ? ((magnitude >> 21) & 3u) | 0x7eu : out;
    storeBits(to, (bits >> 24 & 0x80u) | out);
  }
};

struct Sum {
  template <class V>
  static V apply(V a, V b) {
    return a + b;
  }
};
struct Prod {
  template <class V>
  static V apply(V a, V b) {
    return a * b;
  }
};
struct Max {
  template <class V>
  static V apply(V a, V b) {
    if constexpr (!kFloating<V>) return a > b ? a : b;
    using Bits = decltype(a == b);
    const V other = b == b ? b : a;
    return a == b ? (V)((Bits)a & (Bits)b) : a > b ? a : other;
  }
};
struct Min {
  template <class V>
  static V apply(V a, V b) {
    if constexpr (!kFloating<V>) return a < b ? a : b;
    using Bits = decltype(a == b);
    const V other = b == b ? b : a;
    return a == b ? (V)((Bits)a | (Bits)b) : a < b ? a : other;
  }
};
struct First {
  template <class V>
  static V apply(V a, V) {
    return a;
  }
};

// Stores a line past the caches; `to` is a multiple of its size. Written as instructions: the compiler's header of
// intrinsics takes longer to compile than half of the folds.
inline void streamOut(char* to, const char* line) {
#if defined(__x86_64__)
  using V = VectorOf<char>::Type;
  for (size_t i = 0; i < kLineBytes; i += kVectorBytes) {
    const V part = Lanes<char>::load(line + i);
#if defined(__AVX2__)
    asm volatile("vmovntdq %1, %0" : "=m"(*reinterpret_cast<V*>(to + i)) : "v"(part));
#else
    asm volatile("movntdq %1, %0" : "=m"(*reinterpret_cast<V*>(to + i)) : "x"(part));
#endif
  }
#else
  __builtin_memcpy(to, line, kLineBytes);
#endif
}
inline void streamEnd() {
#if defined(__x86_64__)
  asm volatile("sfence" ::: "memory");
#endif
}

// kSources: 0 means as many as given, at least one.
template <class T, class Op, uint32_t kSources>
struct Reducer {
  using L = Lanes<T>;
  static constexpr size_t kStep = L::kCount * sizeof(T);  // bytes of one vector in memory

  static typename L::V at(const char* const* sources, uint32_t sourceCount, size_t byte) {
    typename L::V v = L::load(sources[0] + byte);
    const uint32_t n = kSources != 0 ? kSources : sourceCount;
    for (uint32_t s = 1; s < n; s++) v = Op::apply(v, L::load(sources[s] + byte));
    return v;
  }

  // Fewer elements than a vector, through padded copies.
  [[gnu::noinline]] static void rest(char* const* targets, uint32_t targetCount, const char* const* sources,
                                     uint32_t sourceCount, size_t byte, size_t bytes) {
    char padded[kStep] = {};
    __builtin_memcpy(padded, sources[0] + byte, bytes);
    typename L::V v = L::load(padded);
    for (uint32_t s = 1; s < sourceCount; s++) {
      __builtin_memcpy(padded, sources[s] + byte, bytes);
      v = Op::apply(v, L::load(padded));
    }
    L::store(padded, v);
    for (uint32_t t = 0; t < targetCount; t++) __builtin_memcpy(targets[t] + byte, padded, bytes);
  }

  [[gnu::noinline]] static void plain(char* const* targets, uint32_t targetCount, const char* const* sources,
                                      uint32_t sourceCount, size_t from, size_t to) {
    char* const target = targets[0];
    char* const second = targetCount > 1 ? targets[1] : nullptr;
    size_t byte = from;
    if (second == nullptr) {
      for (; byte + 4 * kStep <= to; byte += 4 * kStep) {
        typename L::V v[4];
        for (int i = 0; i < 4; i++) v[i] = at(sources, sourceCount, byte + i * kStep);
        for (int i = 0; i < 4; i++) L::store(target + byte + i * kStep, v[i]);
      }
      for (; byte + kStep <= to; byte += kStep) L::store(target + byte, at(sources, sourceCount, byte));
    } else {
      for (; byte + kStep <= to; byte += kStep) {
        const auto v = at(sources, sourceCount, byte);
        for (uint32_t t = 0; t < targetCount; t++) L::store(targets[t] + byte, v);
      }
    }
    if (byte < to) Reducer<T, Op, 0>::rest(targets, targetCount, sources, sourceCount, byte, to - byte);
  }

  // The last target past the caches; [from, to) is whole lines and the last target at `from` a multiple of 64.
  static void streamed(char* const* targets, uint32_t targetCount, const char* const* sources, uint32_t sourceCount,
                       size_t from, size_t to) {
    char* const last = targets[targetCount - 1];
    for (size_t byte = from; byte < to; byte += kLineBytes) {
      alignas(kLineBytes) char line[kLineBytes];
      for (size_t part = 0; part < kLineBytes; part += kStep) {
        const auto v = at(sources, sourceCount, byte + part);
        L::store(line + part, v);
        for (uint32_t t = 0; t + 1 < targetCount; t++) L::store(targets[t] + byte + part, v);
      }
      streamOut(last + byte, line);
    }
    streamEnd();
  }

  static void run(void* const* targetsGiven, uint32_t targetCount, const void* const* sourcesGiven,
                  uint32_t sourceCount, size_t count, bool stream) {
    auto* const* targets = reinterpret_cast<char* const*>(targetsGiven);
    auto* const* sources = reinterpret_cast<const char* const*>(sourcesGiven);
    const size_t bytes = count * sizeof(T);
    const size_t skew = -reinterpret_cast<size_t>(targets[targetCount - 1]) % kLineBytes;
    if (!stream || skew % sizeof(T) != 0 || bytes < 8 * kLineBytes) {
      return plain(targets, targetCount, sources, sourceCount, 0, bytes);
    }
    const size_t end = skew + (bytes - skew) / kLineBytes * kLineBytes;
    if (skew > 0) plain(targets, targetCount, sources, sourceCount, 0, skew);
    streamed(targets, targetCount, sources, sourceCount, skew, end);
    if (end < bytes) plain(targets, targetCount, sources, sourceCount, end, bytes);
  }
};

template <class T, class Op>
void reduce(void* const* targets, uint32_t targetCount, const void* const* sources, uint32_t sourceCount, size_t count,
            bool stream) {
  // Where converting takes most of the time, knowing the number of sources gains little.
  if constexpr (Lanes<T>::kConvertsMuch) {
    Reducer<T, Op, 0>::run(targets, targetCount, sources, sourceCount, count, stream);
  } else if (sourceCount == 2) {
    Reducer<T, Op, 2>::run(targets, targetCount, sources, sourceCount, count, stream);
  } else {
    Reducer<T, Op, 0>::run(targets, targetCount, sources, sourceCount, count, stream);
  }
}

template <class T>
void scale(void* target, const void* source, size_t count, const void* scalar) {
  using L = Lanes<T>;
  constexpr size_t kStep = L::kCount * sizeof(T);
  auto* to = static_cast<char*>(target);
  const auto* from = static_cast<const char*>(source);
  typename L::V factors = {};
  for (size_t i = 0; i < sizeof factors; i += sizeof factors[0]) {
    __builtin_memcpy(reinterpret_cast<char*>(&factors) + i, scalar, sizeof factors[0]);
  }
  const size_t bytes = count * sizeof(T);
  size_t byte = 0;
  for (; byte + kStep <= bytes; byte += kStep) L::store(to + byte, L::load(from + byte) * factors);
  if (byte == bytes) return;
  char padded[kStep] = {};
  __builtin_memcpy(padded, from + byte, bytes - byte);
  L::store(padded, L::load(padded) * factors);
  __builtin_memcpy(to + byte, padded, bytes - byte);
}

// In 64 bits: the divisor may be larger than the type's largest value.
template <class T, class Wide>
void divide(void* data, size_t count, uint32_t divisor) {
  auto* at = static_cast<char*>(data);
  for (size_t i = 0; i < count; i++, at += sizeof(T)) {
    T value;
    __builtin_memcpy(&value, at, sizeof value);
    value = T(Wide(value) / Wide(divisor));
    __builtin_memcpy(at, &value, sizeof value);
  }
}

template <class T>
void widen(const void* element, void* scalar) {
  using L = Lanes<T>;
  char padded[L::kCount * sizeof(T)] = {};
  __builtin_memcpy(padded, element, sizeof(T));
  const typename L::V v = L::load(padded);
  __builtin_memcpy(scalar, &v, sizeof v[0]);
}

// Sums and products of signed integers wrap around: they are those of the unsigned ones.
#define NCCLRUN_REDUCTIONS_OF(Wrapping, Ordered) \
  { reduce<Wrapping, Sum>, reduce<Wrapping, Prod>, reduce<Ordered, Max>, reduce<Ordered, Min> }

}  // namespace

const ReduceTable NCCLRUN_REDUCE_TABLE = {
    {NCCLRUN_REDUCTIONS_OF(uint8_t, int8_t), NCCLRUN_REDUCTIONS_OF(uint8_t, uint8_t),
     NCCLRUN_REDUCTIONS_OF(uint32_t, int32_t), NCCLRUN_REDUCTIONS_OF(uint32_t, uint32_t),
     NCCLRUN_REDUCTIONS_OF(uint64_t, int64_t), NCCLRUN_REDUCTIONS_OF(uint64_t, uint64_t),
     NCCLRUN_REDUCTIONS_OF(Half, Half), NCCLRUN_REDUCTIONS_OF(float, float), NCCLRUN_REDUCTIONS_OF(double, double),
     NCCLRUN_REDUCTIONS_OF(Bfloat16, Bfloat16), NCCLRUN_REDUCTIONS_OF(Float8e4m3, Float8e4m3),
     NCCLRUN_REDUCTIONS_OF(Float8e5m2, Float8e5m2)},
    {scale<uint8_t>, scale<uint8_t>, scale<uint32_t>, scale<uint32_t>, scale<uint64_t>, scale<uint64_t>, scale<Half>,
     scale<float>, scale<double>, scale<Bfloat16>, scale<Float8e4m3>, scale<Float8e5m2>},
    {divide<int8_t, int64_t>, divide<uint8_t, uint64_t>, divide<int32_t, int64_t>, divide<uint32_t, uint64_t>,
     divide<int64_t, int64_t>, divide<uint64_t, uint64_t>, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
    {widen<uint8_t>, widen<uint8_t>, widen<uint32_t>, widen<uint32_t>, widen<uint64_t>, widen<uint64_t>, widen<Half>,
     widen<float>, widen<double>, widen<Bfloat16>, widen<Float8e4m3>, widen<Float8e5m2>},
    Reducer<uint8_t, First, 1>::run,
};

#undef NCCLRUN_REDUCTIONS_OF

}  // namespace ncclrun

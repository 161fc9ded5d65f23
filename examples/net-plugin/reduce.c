// The arithmetic of the collective operations.
#include <math.h>

#include "collective.h"

// What GPUs and ncclrun's processors answer in every order of the ranks: 0 is more than -0, and a number wins over no
// number. `isNegative` tells zeros apart.
#define REDUCE(name, type, isNegative)                                                                    \
  static type name##Max(type a, type b) { return b != b || a > b || (a == b && !isNegative(a)) ? a : b; } \
  static type name##Min(type a, type b) { return b != b || a < b || (a == b && isNegative(a)) ? a : b; }  \
  static void name(type* into, const type* from, size_t count, int op) {                                  \
    for (size_t i = 0; i < count; i++) {                                                                  \
      const type a = into[i], b = from[i];                                                                \
      into[i] = op == COLL_SUM    ? (type)(a + b)                                                         \
                : op == COLL_PROD ? (type)(a * b)                                                         \
                : op == COLL_MAX  ? name##Max(a, b)                                                       \
                                  : name##Min(a, b);                                                       \
    }                                                                                                     \
  }
#define NO_SIGN(a) 0
// Unsigned, because signed sums may not overflow in C. Their bits are the same; maximum and minimum need the sign.
REDUCE(reduceUint8, uint8_t, NO_SIGN)
REDUCE(reduceInt8, int8_t, NO_SIGN)
REDUCE(reduceUint32, uint32_t, NO_SIGN)
REDUCE(reduceInt32, int32_t, NO_SIGN)
REDUCE(reduceUint64, uint64_t, NO_SIGN)
REDUCE(reduceInt64, int64_t, NO_SIGN)
REDUCE(reduceFloat, float, signbit)
REDUCE(reduceDouble, double, signbit)

static int needsSign(int op) { return op == COLL_MAX || op == COLL_MIN; }

size_t reducible(int type, int op) {
  static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 0, 4, 8};
  if (type < 0 || (size_t)type >= sizeof bytes / sizeof bytes[0] || op < COLL_SUM || op > COLL_MIN) return 0;
  return bytes[type];
}

void reduceInto(void* into, const void* from, size_t count, int type, int op) {
  if (type == COLL_INT8 && needsSign(op)) reduceInt8(into, from, count, op);
  if (type == COLL_INT32 && needsSign(op)) reduceInt32(into, from, count, op);
  if (type == COLL_INT64 && needsSign(op)) reduceInt64(into, from, count, op);
  if (type == COLL_UINT8 || (type == COLL_INT8 && !needsSign(op))) reduceUint8(into, from, count, op);
  if (type == COLL_UINT32 || (type == COLL_INT32 && !needsSign(op))) reduceUint32(into, from, count, op);
  if (type == COLL_UINT64 || (type == COLL_INT64 && !needsSign(op))) reduceUint64(into, from, count, op);
  if (type == COLL_FLOAT32) reduceFloat(into, from, count, op);
  if (type == COLL_FLOAT64) reduceDouble(into, from, count, op);
}

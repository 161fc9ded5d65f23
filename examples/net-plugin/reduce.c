// The arithmetic of the collective operations.
#include "collective.h"

#define REDUCE(name, type)                                               \
  static void name(type* into, const type* from, size_t count, int op) { \
    for (size_t i = 0; i < count; i++) {                                 \
      const type a = into[i], b = from[i];                               \
      into[i] = op == COLL_SUM    ? (type)(a + b)                        \
                : op == COLL_PROD ? (type)(a * b)                        \
                : op == COLL_MAX  ? (a > b ? a : b)                      \
                                  : (a < b ? a : b);                      \
    }                                                                    \
  }
// Unsigned, because signed sums may not overflow in C. Their bits are the same; maximum and minimum need the sign.
REDUCE(reduceUint8, uint8_t)
REDUCE(reduceInt8, int8_t)
REDUCE(reduceUint32, uint32_t)
REDUCE(reduceInt32, int32_t)
REDUCE(reduceUint64, uint64_t)
REDUCE(reduceInt64, int64_t)
REDUCE(reduceFloat, float)
REDUCE(reduceDouble, double)

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

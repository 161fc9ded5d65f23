/* Small whole numbers as elements of every type that operators of the program multiply. */
#pragma once
#include <stddef.h>

#include "ncclrun.h"

typedef struct {
  ncclDataType_t type;
  const char* name;
  size_t bytes;
  int exponentBits, fractionBits; /* 0: a whole number */
} ScalarType;
enum { scalarTypes = 7 };
extern const ScalarType scalars[scalarTypes];

/* Writes the number, which the type must be able to hold: 0 to 16 in each of them. */
void writeScalar(const ScalarType* type, void* to, int number);

// A group of the collective network: a star over the connections of connect.c and transfer.c. Every member sends its
// part to the first one, which reduces in the order of ranks and sends the results back.
#ifndef NET_PLUGIN_GROUP_H
#define NET_PLUGIN_GROUP_H

#include "collective.h"

enum { GROUP_TAG = 0 };

struct peer {
  void *sendComm, *recvComm;
};

// What the first member keeps of an operation for each other member; others use entry 0 for the first one.
struct exchange {
  void *sending, *receiving;  // requests; NULL: done, or not begun
  char* in;                   // what arrives
  size_t inBytes;
  char* out;  // what leaves
  size_t outBytes;
};

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER };

struct operation {
  struct group* group;
  int isUsed, isReduced;
  size_t number;  // they are reduced in the order of their numbers
  enum kind kind;
  size_t elements;  // to reduce
  int type, op;
  char *send, *receive;
  size_t sendBytes, receiveBytes;
  char* scratch;
  struct exchange* exchanges;
};

struct group {
  int rank, members, peerCount, error;
  struct context context;   // of connections that are being made
  size_t posted, reduced;  // operations
  struct peer* peers;
  struct operation operations[COLL_MAX_REQUESTS];
};

#endif

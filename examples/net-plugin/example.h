// What the files of the example share: device.c, connect.c, transfer.c, and the table in plugin.c.
#ifndef NET_PLUGIN_EXAMPLE_H
#define NET_PLUGIN_EXAMPLE_H

#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "net.h"

extern netLog exampleLog;
#define WARN(...) exampleLog(NET_LOG_WARN, NET_LOG_NET, __FILE__, __LINE__, __VA_ARGS__)

union address {
  struct sockaddr any;
  struct sockaddr_in ip4;
  struct sockaddr_in6 ip6;
};

struct device {
  char name[IF_NAMESIZE];
  char pciPath[PATH_MAX];  // empty: not on the PCI bus
  int speed;               // Mb/s
  union address address;
};

// device.c: one device for each network interface that is up.
void findDevices(void);
int deviceCount(void);
const struct device* deviceAt(int index);  // NULL: there is none

// transfer.c: a connection whose handshake is complete. It takes over the socket.
void* makeComm(int fd);

// The calls of the table.
int exampleListen(void* context, int device, void* handle, void** listenComm);
int exampleConnect(void* context, int device, void* handle, void** sendComm, netDeviceHandle** deviceHandle);
int exampleAccept(void* listenComm, void** recvComm, netDeviceHandle** deviceHandle);
int exampleCloseListen(void* listenComm);
int exampleSend(void* comm, void* data, size_t bytes, int tag, void* registration, void* profiler, void** request);
int exampleReceive(void* comm, int count, void** data, size_t* bytes, int* tags, void** registrations, void** profilers,
                   void** request);
int exampleTest(void* request, int* done, int* bytes);
int exampleClose(void* comm);

// connect.c: connections of a communicator that have begun and are not complete.
struct stage;
struct context {
  pthread_mutex_t mutex;  // several threads may connect at once
  struct stage* stages;
};
void freeStages(struct context* context);

#endif

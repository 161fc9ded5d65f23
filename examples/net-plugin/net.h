// Version 11 of the interface of NCCL's network plugins, as far as a plugin over TCP needs it. README.md says what each
// call must do.
#ifndef NET_PLUGIN_NET_H
#define NET_PLUGIN_NET_H

#include <stddef.h>
#include <stdint.h>

enum {
  NET_OK = 0,
  NET_SYSTEM_ERROR = 2,    // the operating system refused something
  NET_INTERNAL_ERROR = 3,  // a fault in the plugin
  NET_INVALID_ARGUMENT = 4,
  NET_INVALID_USAGE = 5,
  NET_REMOTE_ERROR = 6  // the other side has gone
};

enum { NET_HANDLE_BYTES = 128, NET_MAX_RECEIVES = 8, NET_MAX_REQUESTS = 32 };

// Types of memory, and bits of ptrSupport.
enum { NET_HOST_MEMORY = 1, NET_DEVICE_MEMORY = 2, NET_DMABUF = 4 };

enum { NET_LOG_WARN = 2, NET_LOG_INFO = 3 };
enum { NET_LOG_NET = 0x10 };  // subsystem
typedef void (*netLog)(int level, unsigned long subsystems, const char* file, int line, const char* format, ...);
typedef int (*netProfiler)(void** event, int what, void* parent, int64_t pluginId, void* descriptor);

typedef struct {
  int trafficClass;  // -1: none
} netConfig;

typedef struct {
  int count;
  int devices[4];
} netVirtualDevice;

typedef struct {
  char* name;
  char* pciPath;  // real path in /sys; NULL: not on the PCI bus
  uint64_t guid;  // ports of one card share it
  int ptrSupport;
  int regIsGlobal;  // a registration serves all connections of the device
  int forceFlush;
  int speed;  // Mb/s
  int port;
  float latency;  // us; 0: unknown
  int maxComms;
  int maxRecvs;       // buffers of one irecv: 1 to 8
  int netDeviceType;  // 0: driven by the host
  int netDeviceVersion;
  netVirtualDevice members;
  size_t maxP2pBytes;  // of one isend
  size_t maxCollBytes;
  int maxMultiRequestSize;
} netProperties;

typedef struct netDeviceHandle netDeviceHandle;  // for plugins that GPU kernels drive

typedef struct {
  const char* name;
  int (*init)(void** context, uint64_t commId, netConfig* config, netLog log, netProfiler profiler);
  int (*devices)(int* count);
  int (*getProperties)(int device, netProperties* properties);
  int (*listen)(void* context, int device, void* handle, void** listenComm);
  int (*connect)(void* context, int device, void* handle, void** sendComm, netDeviceHandle** deviceHandle);
  int (*accept)(void* listenComm, void** recvComm, netDeviceHandle** deviceHandle);
  int (*regMr)(void* comm, void* data, size_t bytes, int type, void** registration);
  int (*regMrDmaBuf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd, void** registration);
  int (*deregMr)(void* comm, void* registration);
  int (*isend)(void* sendComm, void* data, size_t bytes, int tag, void* registration, void* profiler, void** request);
  int (*irecv)(void* recvComm, int count, void** data, size_t* bytes, int* tags, void** registrations, void** profilers,
               void** request);
  int (*iflush)(void* recvComm, int count, void** data, int* bytes, void** registrations, void** request);
  int (*test)(void* request, int* done, int* bytes);
  int (*closeSend)(void* sendComm);
  int (*closeRecv)(void* recvComm);
  int (*closeListen)(void* listenComm);
  int (*getDeviceMr)(void* comm, void* registration, void** deviceRegistration);
  int (*irecvConsumed)(void* recvComm, int count, void* request);
  int (*makeVDevice)(int* device, netVirtualDevice* members);
  int (*finalize)(void* context);
  int (*setNetAttr)(void* context, void* attributes);
} netTable;

#endif

// Stands in for libibverbs.so.1: a card with two ports and one that cannot be opened. Its structures are rdma-core's.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct device_attributes {
  char firmware[64];
  uint64_t guids[2], sizes[2];
  uint32_t ids[3];
  int max_qp, others[28];
  uint16_t max_pkeys;
  uint8_t delay, ports;
};

// As ibv_query_port fills it, whose callers of old had no more.
struct port_attributes {
  int state, mtus[2], addresses;
  uint32_t counts[4];
  uint16_t words[3];
  uint8_t bytes[5], width, speed, physical, layer, reserved;
};

static char devices[2];

void* ibv_get_device_list(int* count) {
  void** list = calloc(3, sizeof *list);
  list[0] = &devices[0];
  list[1] = &devices[1];
  *count = 2;
  return list;
}
void ibv_free_device_list(void* list) { free(list); }
const char* ibv_get_device_name(void* device) { return device == &devices[0] ? "mlx5_0" : "mlx5_1"; }
void* ibv_open_device(void* device) { return device == &devices[0] ? device : NULL; }
int ibv_close_device(void* context) { return context == NULL; }
int ibv_query_device(void* context, struct device_attributes* device) {
  memset(device, 0xff, sizeof *device);
  device->guids[1] = 0xc4f1020300a1b2c3;
  device->max_qp = 131072;
  device->ports = 2;
  return context == NULL;
}
int ibv_query_port(void* context, uint8_t port, struct port_attributes* attributes) {
  memset(attributes, 0xff, sizeof *attributes);
  attributes->state = port == 1 ? 4 : 1;
  attributes->width = 2;
  attributes->speed = 128;
  attributes->layer = port;
  return context == NULL;
}

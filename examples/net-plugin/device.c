// One device for each network interface that is up and has an address. NET_EXAMPLE_IFNAME=NAME chooses one; without it
// loopback serves only where there is nothing else.
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "example.h"

enum { MAX_DEVICES = 16, DEFAULT_SPEED = 10000 };

static struct device devices[MAX_DEVICES];
static int count;

int deviceCount(void) { return count; }

const struct device* deviceAt(int index) { return index >= 0 && index < count ? &devices[index] : NULL; }

static int isUsable(const struct ifaddrs* entry, int wantsLoopback) {
  const char* wanted = getenv("NET_EXAMPLE_IFNAME");
  if (entry->ifa_addr == NULL || (entry->ifa_flags & IFF_UP) == 0) return 0;
  if (wanted != NULL && *wanted != '\0') {
    if (strcmp(wanted, entry->ifa_name) != 0) return 0;
  } else if (((entry->ifa_flags & IFF_LOOPBACK) != 0) != wantsLoopback) {
    return 0;
  }
  if (entry->ifa_addr->sa_family == AF_INET) return 1;
  if (entry->ifa_addr->sa_family != AF_INET6) return 0;
  // A link-local address means nothing on another host.
  return !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6*)entry->ifa_addr)->sin6_addr);
}

static int isKnown(const char* name) {
  for (int i = 0; i < count; i++) {
    if (strcmp(devices[i].name, name) == 0) return 1;
  }
  return 0;
}

static int speedOf(const char* name) {
  char path[PATH_MAX];
  int speed = 0;
  snprintf(path, sizeof path, "/sys/class/net/%s/speed", name);
  FILE* file = fopen(path, "r");
  if (file == NULL) return DEFAULT_SPEED;
  if (fscanf(file, "%d", &speed) != 1 || speed <= 0) speed = DEFAULT_SPEED;
  fclose(file);
  return speed;
}

static void add(const struct ifaddrs* entry) {
  struct device* one = &devices[count++];
  char path[PATH_MAX];
  memset(one, 0, sizeof *one);
  snprintf(one->name, sizeof one->name, "%s", entry->ifa_name);
  snprintf(path, sizeof path, "/sys/class/net/%s/device", entry->ifa_name);
  if (realpath(path, one->pciPath) == NULL) one->pciPath[0] = '\0';
  one->speed = speedOf(entry->ifa_name);
  if (entry->ifa_addr->sa_family == AF_INET) {
    memcpy(&one->address.ip4, entry->ifa_addr, sizeof one->address.ip4);
  } else {
    memcpy(&one->address.ip6, entry->ifa_addr, sizeof one->address.ip6);
  }
}

void findDevices(void) {
  struct ifaddrs* all = NULL;
  if (count > 0 || getifaddrs(&all) != 0) return;
  for (int loopback = 0; loopback <= 1 && count == 0; loopback++) {
    for (const struct ifaddrs* entry = all; entry != NULL && count < MAX_DEVICES; entry = entry->ifa_next) {
      if (isUsable(entry, loopback) && !isKnown(entry->ifa_name)) add(entry);
    }
  }
  freeifaddrs(all);
}

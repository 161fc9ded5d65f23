// Stands in for libnvidia-ml.so.1: two GPUs with NVLinks and C2C, and a third that it does not let us see.
//
// NCCLRUN_STAND_IN_MEMORY names a file with a line for each GPU, read at every question: "FREE TOTAL [PID USED]...", in
// MiB; USED "-": not known. Without it NVML does not tell of memory.
// NCCLRUN_STAND_IN_HEALTH names one with a line for each GPU: "CLOCK MAX THROTTLE CORRECTED UNCORRECTED WIDTH
// MAXWIDTH". NCCLRUN_STAND_IN_XIDS names one to which a line is added for each error of a GPU: "GPU CODE".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pci_info {
  char short_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct field_value {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  unsigned long long value;
};

enum { OK = 0, WRONG = 2, MISSING = 6 };
static char gpus[3];
static int started;

static int number(const void* device) { return (int)((const char*)device - gpus); }

int nvmlInit_v2(void) {
#ifdef NO_DRIVER
  return 9;
#endif
  started = 1;
  return OK;
}
int nvmlShutdown(void) {
  started = 0;
  return OK;
}
const char* nvmlErrorString(int result) { return result == 9 ? "Driver Not Loaded" : "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return started ? OK : WRONG;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &gpus[index];
  return index < 2 ? OK : MISSING;
}
int nvmlDeviceGetPciInfo_v3(void* device, struct pci_info* info) {
  memset(info, 0, sizeof *info);
  snprintf(info->bus_id, sizeof info->bus_id, "00000000:%dB:00.0", number(device) + 1);
  memcpy(info->short_bus_id, info->bus_id + 4, 13);
  return OK;
}
int nvmlDeviceGetIndex(void* device, unsigned* index) {
  *index = (unsigned)number(device);
  return OK;
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  *major = 9;
  *minor = number(device);
  return OK;
}
int nvmlDeviceGetNvLinkCapability(void* device, unsigned link, int capability, unsigned* result) {
  *result = link != 3;  // which is not for peers
  return number(device) >= 0 && capability == 0 && link < 6 ? OK : WRONG;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
  *active = link != 2;
  return number(device) >= 0 ? OK : WRONG;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, struct pci_info* info) {
  memset(info, 0, sizeof *info);
  if (link == 4) return WRONG;
  snprintf(info->short_bus_id, sizeof info->short_bus_id, "%s",
           link == 5             ? "FFFFFFF:FFFF:FF"
           : number(device) == 0 ? "0000:2B:00.0"
                                 : "0000:1B:00.0");
  return OK;
}
// GPU 1 has two C2C links, of which the second is up.
int nvmlDeviceGetFieldValues(void* device, int count, struct field_value* values) {
  for (int i = 0; i < count; ++i) {
    struct field_value* one = &values[i];
    one->result = number(device) == 1 ? OK : 3;
    one->value = one->field == 170 ? 2 : one->field == 171 ? one->scope : 44712;
  }
  return OK;
}

struct memory {
  unsigned long long total, free, used;
};
struct process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

// The line of that GPU in the file that a variable names; null: there is none.
static char* line_of(const char* variable, const void* device, char* line, int size) {
  const char* const path = getenv(variable);
  FILE* const file = path == NULL ? NULL : fopen(path, "r");
  char* found = NULL;
  if (file == NULL) return NULL;
  for (int i = 0; i <= number(device); ++i) found = fgets(line, size, file);
  fclose(file);
  return found;
}
static char* memory_line(const void* device, char* line, int size) {
  return line_of("NCCLRUN_STAND_IN_MEMORY", device, line, size);
}
int nvmlDeviceGetMemoryInfo(void* device, struct memory* memory) {
  char line[512];
  unsigned long long unused, total;
  if (memory_line(device, line, sizeof line) == NULL || sscanf(line, "%llu %llu", &unused, &total) != 2) return 3;
  *memory = (struct memory){total << 20, unused << 20, (total - unused) << 20};
  return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, struct process* processes) {
  char line[512];
  const unsigned room = *count;
  *count = 0;
  if (memory_line(device, line, sizeof line) == NULL) return 3;
  strtok(line, " \n");
  strtok(NULL, " \n");
  for (char* pid; (pid = strtok(NULL, " \n")) != NULL && *count < room; ++*count) {
    const char* const used = strtok(NULL, " \n");
    const unsigned long long bytes = used == NULL || *used == '-' ? ~0ULL : strtoull(used, NULL, 10) << 20;
    processes[*count] = (struct process){(unsigned)atoi(pid), bytes, ~0U, ~0U};
  }
  return OK;
}

// The field of that number in the GPU's line.
static int health(const void* device, int field, unsigned long long* value) {
  char line[512];
  char* at = line_of("NCCLRUN_STAND_IN_HEALTH", device, line, sizeof line);
  if (at == NULL) return 3;
  for (int i = 0; i <= field; ++i) *value = strtoull(at, &at, 0);
  return OK;
}
static int short_health(const void* device, int field, unsigned* value) {
  unsigned long long found = 0;
  const int result = health(device, field, &found);
  *value = (unsigned)found;
  return result;
}
int nvmlDeviceGetClockInfo(void* device, int type, unsigned* clock) {
  return type == 1 ? short_health(device, 0, clock) : WRONG;
}
int nvmlDeviceGetMaxClockInfo(void* device, int type, unsigned* clock) {
  return type == 1 ? short_health(device, 1, clock) : WRONG;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  return health(device, 2, reasons);
}
int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* errors) {
  return counter == 0 ? health(device, 3 + type, errors) : WRONG;
}
int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* width) { return short_health(device, 5, width); }
int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* width) { return short_health(device, 6, width); }

struct event {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
static long told;  // bytes of the file

int nvmlEventSetCreate(void** set) {
  *set = &told;
  return OK;
}
int nvmlEventSetFree(void* set) { return set == &told ? OK : WRONG; }
int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void* set) {
  return number(device) >= 0 && types == 8 && set == &told ? OK : WRONG;
}
int nvmlEventSetWait_v2(void* set, struct event* event, unsigned milliseconds) {
  const char* const path = getenv("NCCLRUN_STAND_IN_XIDS");
  for (unsigned waited = 0; set == &told && waited < milliseconds; waited += 5) {
    FILE* const file = path == NULL ? NULL : fopen(path, "r");
    int gpu, code, read = 0;
    if (file != NULL) {
      fseek(file, told, SEEK_SET);
      read = fscanf(file, "%d %d\n", &gpu, &code);
      if (read == 2) told = ftell(file);
      fclose(file);
    }
    if (read == 2) {
      *event = (struct event){&gpus[gpu], 8, (unsigned long long)code, ~0U, ~0U};
      return OK;
    }
    usleep(5000);
  }
  return 10;
}

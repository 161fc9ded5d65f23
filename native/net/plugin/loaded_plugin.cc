#include "net/plugin/loaded_plugin.h"

#include "base/debug.h"
#include "net/plugin/callbacks.h"
#include "net/plugin/device.h"

namespace ncclrun::net::plugin {
namespace {

constexpr int kMaxDevices = 1024;

// A plugin's result as one of ours. It decides who is at fault, so remote and system errors stay what they are.
ncclResult_t resultOf(int code) {
  if (code == ncclTimeout) return ncclRemoteError;
  return code > ncclSuccess && code < ncclInProgress ? ncclResult_t(code) : ncclInternalError;
}

const char* meaningOf(int code) {
  constexpr const char* kMeanings[] = {"success",        "CUDA error",       "system error",
                                       "internal error", "invalid argument", "invalid usage",
                                       "remote error",   "in progress",      "timeout"};
  return code >= 0 && size_t(code) < std::size(kMeanings) ? kMeanings[code] : "unknown error";
}

std::string withWarning(std::string sentence) {
  const std::string warning = lastWarning();
  if (!warning.empty()) sentence += "; its last warning: " + warning;
  return sentence;
}

std::string nameOf(const TableCalls& calls, const std::string& library) {
  const char* const name = calls.name();
  return name == nullptr || *name == '\0' ? library : name;
}

}  // namespace

LoadedPlugin::LoadedPlugin(const char* kind, std::string library, TableCalls& table)
    : kind_(kind), library_(std::move(library)), table_(table), name_(nameOf(table_, library_)) {}

std::string LoadedPlugin::label() const { return formatSentence("%s %s (%s)", kind_, name_.c_str(), library_.c_str()); }

Status LoadedPlugin::failure(const char* call, int code) const {
  return {resultOf(code), withWarning(formatSentence("%s: %s: %s (%d)", label().c_str(), call, meaningOf(code), code))};
}

Status LoadedPlugin::begin(uint64_t communicatorId, void*& context) {
  std::lock_guard lock(mutex_);
  context = nullptr;
  if (initialized_.has_value()) return *initialized_;
  Status status = initialize(communicatorId, context);
  if (!table_.hasContexts()) initialized_ = status;
  return status;
}

Status LoadedPlugin::initialize(uint64_t communicatorId, void*& context) {
  forgetWarning();
  const int code = table_.init(&context, communicatorId, logCallback(), profilerCallback());
  if (code != ncclSuccess) return failure("init", code);
  Status status = devices_.empty() ? readDevices() : Status();
  if (!status.ok() && table_.hasContexts()) {
    table_.finalize(context);
    context = nullptr;
  }
  return status;
}

Status LoadedPlugin::hasNo(const std::string& member) const {
  return {ncclInternalError, formatSentence("%s has no %s", label().c_str(), member.c_str())};
}

Status LoadedPlugin::readDevices() {
  // init() may have replaced members of the table.
  if (const std::string missing = table_.missingAtStart(); !missing.empty()) return hasNo(missing);
  int count = 0;
  if (const int code = table_.devices(&count); code != ncclSuccess) return failure("devices", code);
  if (count <= 0) return {ncclSystemError, withWarning(label() + " finds no device on this host")};
  if (const std::string missing = table_.missing(); !missing.empty()) return hasNo(missing);
  if (count > kMaxDevices)
    return {ncclInternalError, formatSentence("%s says that it has %d devices", label().c_str(), count)};
  std::vector<Device> devices;
  for (int i = 0; i < count; i++) {
    NewestProperties properties{};
    if (const int code = table_.getProperties(i, &properties); code != ncclSuccess)
      return failure("getProperties", code);
    if (properties.v9.netDeviceType != abi::kDrivenByHost)
      return {ncclInvalidUsage,
              formatSentence("%s needs GPU kernels that drive its device %d (network device type %d), "
                             "which ncclrun does not have",
                             label().c_str(), i, properties.v9.netDeviceType)};
    devices.push_back(deviceOf(properties, i, table_.hasDmaBuf()));
  }
  devices_ = std::move(devices);
  return {};
}

void LoadedPlugin::end(void* context) {
  if (!table_.hasContexts()) return;
  std::lock_guard lock(mutex_);
  const int code = table_.finalize(context);
  if (code != ncclSuccess) logInfo(failure("finalize", code).sentence, Subsystem::net);
}

}  // namespace ncclrun::net::plugin

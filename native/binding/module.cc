#include "binding/module.h"

namespace ncclrun::binding {
namespace {

Napi::Object exportAll(Napi::Env env, Napi::Object exports) {
#define EXPORT(name) exports.Set(#name, Napi::Function::New<name>(env, #name))
  EXPORT(setChildSubreaper);
  EXPORT(freePorts);
  EXPORT(toolRun);

  EXPORT(prefixLines);
  EXPORT(widenPipe);

  EXPORT(localServerOpen);
  EXPORT(guardianStart);
  EXPORT(toolStart);
  EXPORT(localServerWrite);
  EXPORT(streamsServe);
  EXPORT(childKill);
  EXPORT(localServerSend);
  EXPORT(localServerDisconnect);
  EXPORT(localServerClose);
  EXPORT(exitNow);

  EXPORT(sealedMemory);
  EXPORT(segmentCreate);
  EXPORT(segmentAbort);
  EXPORT(telemetryCreate);
  EXPORT(close);

  EXPORT(version);
  EXPORT(getUniqueId);
  EXPORT(getJob);
  EXPORT(commInit);
  EXPORT(commSplit);
  EXPORT(commInfo);
  EXPORT(nodeBarrier);
  EXPORT(abort);
  EXPORT(commClose);

  EXPORT(operate);
  EXPORT(group);
#undef EXPORT
  return exports;
}

NODE_API_MODULE(ncclrun, exportAll)

}  // namespace
}  // namespace ncclrun::binding

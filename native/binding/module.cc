#include "binding/module.h"

namespace ncclrun::binding {
namespace {

// Without the wrappers of Napi::Function, which cost as much as a small operation.
Napi::Value functionOf(Napi::Env env, const char* name, napi_callback callback) {
  napi_value function = nullptr;
  if (napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, nullptr, &function) != napi_ok)
    throw Napi::Error::New(env);
  return {env, function};
}

Napi::Object exportAll(Napi::Env env, Napi::Object exports) {
#define EXPORT(name) exports.Set(#name, Napi::Function::New<name>(env, #name))
  EXPORT(setChildSubreaper);
  EXPORT(endAfter);
  EXPORT(freePorts);
  EXPORT(tcpUserTimeout);
  EXPORT(tcpEnd);
  EXPORT(reapChild);
  EXPORT(kernelLogOpen);
  EXPORT(toolRun);
  EXPORT(blockSigusr1);

  EXPORT(prefixLines);
  EXPORT(widenPipe);
  EXPORT(replaceDescriptor);

  EXPORT(localServerOpen);
  EXPORT(localServerAdopt);
  EXPORT(childStart);
  EXPORT(toolStart);
  EXPORT(localServerWrite);
  EXPORT(streamsServe);
  EXPORT(childKill);
  EXPORT(childStopped);
  EXPORT(localServerSend);
  EXPORT(localServerDisconnect);
  EXPORT(localServerCatchUp);
  EXPORT(localServerClose);
  EXPORT(exitNow);

  EXPORT(sealedMemory);
  EXPORT(segmentCreate);
  EXPORT(segmentAbort);
  EXPORT(telemetryCreate);
  EXPORT(recorderCreate);
  EXPORT(close);

  EXPORT(nameHold);
  EXPORT(nameHolder);

  EXPORT(version);
  EXPORT(getUniqueId);
  EXPORT(getJob);
  EXPORT(commInit);
  EXPORT(commReady);
  EXPORT(commSplit);
  EXPORT(commInfo);
  EXPORT(nodeBarrier);
  EXPORT(abort);
  EXPORT(commClose);

  EXPORT(commWatch);
  exports.Set("operate", functionOf(env, "operate", operate));
  EXPORT(streamOperate);
  EXPORT(group);

  EXPORT(memoryAllocate);
  EXPORT(memoryFree);

  EXPORT(gpuCount);
  EXPORT(deviceAllocate);
  EXPORT(deviceFree);

  EXPORT(streamCreate);
  EXPORT(streamCopy);
  EXPORT(streamFill);
  EXPORT(streamEnded);
  EXPORT(streamRecord);
  EXPORT(streamWait);
  EXPORT(eventElapsed);
  EXPORT(captureBegin);
  EXPORT(captureEnd);
  EXPORT(graphLaunch);

  EXPORT(nvmlGpus);
  EXPORT(cudaGpus);
  EXPORT(verbsPorts);

  EXPORT(gpuMemory);
  EXPORT(gpuHealth);

  EXPORT(xidEventsOpen);
  EXPORT(xidEventsTake);
  EXPORT(xidEventsClose);
#undef EXPORT
  return exports;
}

NODE_API_MODULE(ncclrun, exportAll)

}  // namespace
}  // namespace ncclrun::binding

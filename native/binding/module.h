// Every function that TypeScript sees, in the order of worker/engine/native.ts.
#pragma once
#include <napi.h>

namespace ncclrun::binding {

// process.cc
Napi::Value setChildSubreaper(const Napi::CallbackInfo& call);
Napi::Value endAfter(const Napi::CallbackInfo& call);
Napi::Value freePorts(const Napi::CallbackInfo& call);
Napi::Value tcpUserTimeout(const Napi::CallbackInfo& call);
Napi::Value tcpEnd(const Napi::CallbackInfo& call);
Napi::Value reapChild(const Napi::CallbackInfo& call);
Napi::Value kernelLogOpen(const Napi::CallbackInfo& call);
Napi::Value toolRun(const Napi::CallbackInfo& call);
Napi::Value blockSigusr1(const Napi::CallbackInfo& call);

// output.cc
Napi::Value prefixLines(const Napi::CallbackInfo& call);
Napi::Value widenPipe(const Napi::CallbackInfo& call);
Napi::Value replaceDescriptor(const Napi::CallbackInfo& call);

// local_server.cc
Napi::Value localServerOpen(const Napi::CallbackInfo& call);
Napi::Value localServerAdopt(const Napi::CallbackInfo& call);
Napi::Value childStart(const Napi::CallbackInfo& call);
Napi::Value toolStart(const Napi::CallbackInfo& call);
Napi::Value localServerWrite(const Napi::CallbackInfo& call);
Napi::Value streamsServe(const Napi::CallbackInfo& call);
Napi::Value childKill(const Napi::CallbackInfo& call);
Napi::Value childStopped(const Napi::CallbackInfo& call);
Napi::Value localServerSend(const Napi::CallbackInfo& call);
Napi::Value localServerDisconnect(const Napi::CallbackInfo& call);
Napi::Value localServerCatchUp(const Napi::CallbackInfo& call);
Napi::Value localServerClose(const Napi::CallbackInfo& call);
Napi::Value exitNow(const Napi::CallbackInfo& call);

// shared_memory.cc
Napi::Value sealedMemory(const Napi::CallbackInfo& call);
Napi::Value segmentCreate(const Napi::CallbackInfo& call);
Napi::Value segmentAbort(const Napi::CallbackInfo& call);
Napi::Value telemetryCreate(const Napi::CallbackInfo& call);
Napi::Value recorderCreate(const Napi::CallbackInfo& call);
Napi::Value close(const Napi::CallbackInfo& call);

// held_name.cc
Napi::Value nameHold(const Napi::CallbackInfo& call);
Napi::Value nameHolder(const Napi::CallbackInfo& call);

// communicator.cc
Napi::Value version(const Napi::CallbackInfo& call);
Napi::Value getUniqueId(const Napi::CallbackInfo& call);
Napi::Value getJob(const Napi::CallbackInfo& call);
Napi::Value commInit(const Napi::CallbackInfo& call);
Napi::Value commReady(const Napi::CallbackInfo& call);
Napi::Value commSplit(const Napi::CallbackInfo& call);
Napi::Value commInfo(const Napi::CallbackInfo& call);
Napi::Value nodeBarrier(const Napi::CallbackInfo& call);
Napi::Value abort(const Napi::CallbackInfo& call);
Napi::Value commClose(const Napi::CallbackInfo& call);

// operation.cc
Napi::Value commWatch(const Napi::CallbackInfo& call);
napi_value operate(napi_env env, napi_callback_info call);
Napi::Value streamOperate(const Napi::CallbackInfo& call);
Napi::Value group(const Napi::CallbackInfo& call);

// memory.cc
Napi::Value memoryAllocate(const Napi::CallbackInfo& call);
Napi::Value memoryFree(const Napi::CallbackInfo& call);

// device.cc
Napi::Value gpuCount(const Napi::CallbackInfo& call);
Napi::Value deviceAllocate(const Napi::CallbackInfo& call);
Napi::Value deviceFree(const Napi::CallbackInfo& call);

// device_stream.cc
Napi::Value streamCreate(const Napi::CallbackInfo& call);
Napi::Value streamCopy(const Napi::CallbackInfo& call);
Napi::Value streamFill(const Napi::CallbackInfo& call);
Napi::Value streamEnded(const Napi::CallbackInfo& call);
Napi::Value streamRecord(const Napi::CallbackInfo& call);
Napi::Value streamWait(const Napi::CallbackInfo& call);
Napi::Value eventElapsed(const Napi::CallbackInfo& call);
Napi::Value captureBegin(const Napi::CallbackInfo& call);
Napi::Value captureEnd(const Napi::CallbackInfo& call);
Napi::Value graphLaunch(const Napi::CallbackInfo& call);

// topology.cc
Napi::Value nvmlGpus(const Napi::CallbackInfo& call);
Napi::Value cudaGpus(const Napi::CallbackInfo& call);
Napi::Value verbsPorts(const Napi::CallbackInfo& call);

// gpu_memory.cc
Napi::Value gpuMemory(const Napi::CallbackInfo& call);

// gpu_health.cc
Napi::Value gpuHealth(const Napi::CallbackInfo& call);

// xid_events.cc
Napi::Value xidEventsOpen(const Napi::CallbackInfo& call);
Napi::Value xidEventsTake(const Napi::CallbackInfo& call);
Napi::Value xidEventsClose(const Napi::CallbackInfo& call);

}  // namespace ncclrun::binding

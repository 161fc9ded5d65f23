#include <sys/prctl.h>

#include <cerrno>

#include "binding/error.h"
#include "binding/module.h"

namespace ncclrun::binding {

Napi::Value setChildSubreaper(const Napi::CallbackInfo& call) {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
    throw systemError(call.Env(), errno, "cannot become the reaper of orphans (PR_SET_CHILD_SUBREAPER)");
  }
  return call.Env().Undefined();
}

}  // namespace ncclrun::binding

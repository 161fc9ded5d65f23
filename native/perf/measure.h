// One size, out of place or in place, measured as nccl-tests does: operations queued back to back on one stream; the
// time is the mean over iterations and ranks; the buffers' place moves from iteration to iteration through memory of
// the largest size.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "collective.h"
#include "options.h"
#include "session.h"

struct Measurement {
  size_t bytes;  // of the larger buffer of a rank
  size_t count;  // as in the call
  bool inPlace;
  double microseconds;
  double algorithmBandwidth;     // GB/s
  double busBandwidth;           // GB/s
  std::optional<int64_t> wrong;  // elements of all ranks; none if not checked
};

class Measure {
 public:
  Measure(const Options& options, Session& session);

  const Collective& collective() const { return collective_; }
  const ElementType& type() const { return type_; }
  const Operator& op() const { return op_; }

  // `bytes` at most options.end.
  Measurement run(size_t bytes, bool inPlace);

 private:
  struct Place {
    size_t count;
    size_t sendBytes;
    size_t receiveBytes;
    bool inPlace;
  };

  void start(const Place& place, int iteration);
  double timeOne(const Place& place);
  int64_t wrongElements(const Place& place);

  const Options& options_;
  Session& session_;
  const Collective& collective_;
  const ElementType& type_;
  const Operator& op_;
  std::unique_ptr<std::byte, void (*)(void*)> send_;
  std::unique_ptr<std::byte, void (*)(void*)> receive_;
  uint64_t seed_ = 0;
};

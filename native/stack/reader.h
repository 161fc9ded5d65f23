// The process that understands what stopped ranks hold: it unwinds stacks, names functions and follows interpreters. It
// is a child of the guardian, so that damaged files and memory can end only itself.
#pragma once

namespace ncclrun::stack {

// The whole life of that process. `tracer`: the socket to the tracer; `output`: gets a frame FrameKind.readStack with
// the number `request` for each rank.
[[noreturn]] void runReader(int tracer, int output, unsigned request, unsigned seconds);

}  // namespace ncclrun::stack

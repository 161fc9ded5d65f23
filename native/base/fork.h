// A fork copies one thread and all memory: the child has the engine's state but none of its threads and, on its
// sockets, its parent's identity. So a child's engine is dead: every call says so, and nothing of the parent's is
// touched.
#pragma once

namespace ncclrun {

// From the first call on, children of this process know that they are forked from an engine. Called before the first
// thread or socket.
void watchForks();

bool inForkedChild();

}  // namespace ncclrun

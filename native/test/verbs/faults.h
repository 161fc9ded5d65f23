// Faults that tests plant.
#pragma once
#include <string>

namespace stand_in_verbs {

// Does what one line says (stand_in_verbs.h). False: it cannot be read. The caller holds the world's mutex.
bool plantLine(const std::string& text);

}  // namespace stand_in_verbs

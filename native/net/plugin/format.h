// printf for lines of foreign code, whose arguments may be garbage: a string at an address that cannot be read is
// written as (unreadable), and %n is ignored.
#pragma once
#include <cstdarg>
#include <string>

namespace ncclrun::net::plugin {

// At most a few KiB.
std::string formatGuarded(const char* format, va_list arguments);

}  // namespace ncclrun::net::plugin

// Limits of the system that a failing call has hit, in words.
#pragma once
#include <string>

namespace ncclrun {

// For the end of a sentence about a call that failed with `error`: which limit it is, its value and how to raise it,
// after ": "; empty for other errors. EAGAIN is a limit only of calls that start processes or threads.
std::string limitBehind(int error);

// The same of a TCP call for which the system chooses a port, or has none left for the connection.
std::string portsBehind(int error);
// "net.ipv4.ip_local_port_range, 32768 to 60999": the ports that it chooses from.
std::string portRange();

// Prepares this process for so many more open files: raises its soft limit where that is too small, as far as the hard
// limit allows. What limitBehind() says of EMFILE names the number from then on.
void prepareOpenFiles(unsigned long more);

}  // namespace ncclrun

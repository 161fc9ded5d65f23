// The double's tables, of a network and of a collective network: NCCLRUN_DOUBLE_VERSIONS and
// NCCLRUN_DOUBLE_COLLECTIVES have a bit for each version that the library exports.
#include "net/double/collective_tables.h"
#include "net/double/overloads.h"

namespace {

namespace doubled = ncclrun::test::doubled;
namespace overloads = doubled::overloads;
using namespace ncclrun::net::plugin::abi;

template <typename Member>
struct Trap;
template <typename... Arguments>
struct Trap<int (*)(Arguments...)> {
  static int call(Arguments...) { doubled::broken("a call to a member as it was before init"); }
};

template <int V>
void fillTable(Table<V>& t) {
  t.devices = &doubled::devices;
  t.getProperties = &overloads::getProperties<Properties<V>>;
  t.listen = &overloads::listen;
  t.connect = &overloads::connect;
  t.accept = &overloads::accept;
  t.regMr = &overloads::regMr;
  t.regMrDmaBuf = &doubled::regMrDmaBuf;
  t.deregMr = &doubled::deregMr;
  t.isend = &overloads::isend;
  t.irecv = &overloads::irecv;
  t.iflush = &doubled::iflush;
  t.test = &doubled::test;
  t.closeSend = &doubled::closeSend;
  t.closeRecv = &doubled::closeRecv;
  t.closeListen = &doubled::closeListen;
  if constexpr (V >= 11) t.tail.finalize = &doubled::finalize;
}

template <typename Member>
void trap(Member& member) {
  member = &Trap<Member>::call;
}

template <int V>
void trapTable(Table<V>& t) {
  trap(t.devices);
  trap(t.getProperties);
  trap(t.listen);
  trap(t.connect);
  trap(t.accept);
  trap(t.regMr);
  trap(t.deregMr);
  trap(t.isend);
  trap(t.irecv);
  trap(t.iflush);
  trap(t.test);
  trap(t.closeSend);
  trap(t.closeRecv);
  trap(t.closeListen);
  if constexpr (V >= 11) trap(t.tail.finalize);
}

template <int V>
Table<V>* exported = nullptr;

// The init of a table that it replaces.
template <int V, typename Init>
struct Replacing;
template <int V, typename... Arguments>
struct Replacing<V, int (*)(Arguments...)> {
  static int init(Arguments... arguments) {
    fillTable<V>(*exported<V>);
    return overloads::init(arguments...);
  }
};

template <int V>
Table<V> make() {
  Table<V> made{};
  made.name = "Double";
  made.init = &overloads::init;
  if (doubled::planted("replace-table") == 0) {
    fillTable<V>(made);
  } else {
    trapTable<V>(made);
    made.init = &Replacing<V, decltype(made.init)>::init;
  }
  return made;
}

}  // namespace

#define TABLE(version)                                                               \
  extern "C" [[gnu::visibility("default")]] Table<version> ncclNetPlugin_v##version; \
  Table<version> ncclNetPlugin_v##version = (exported<version> = &ncclNetPlugin_v##version, make<version>());

#define COLLECTIVE_TABLE(version)                                                                  \
  extern "C" [[gnu::visibility("default")]] CollectiveTable<version> ncclCollNetPlugin_v##version; \
  CollectiveTable<version> ncclCollNetPlugin_v##version = doubled::collective::makeTable<version>();

#define HAS(version) ((NCCLRUN_DOUBLE_VERSIONS) >> (version)&1)
#define HAS_COLLECTIVE(version) ((NCCLRUN_DOUBLE_COLLECTIVES) >> (version)&1)
#if HAS(6)
TABLE(6)
#endif
#if HAS_COLLECTIVE(6)
COLLECTIVE_TABLE(6)
#endif
#if HAS(7)
TABLE(7)
#endif
#if HAS_COLLECTIVE(7)
COLLECTIVE_TABLE(7)
#endif
#if HAS(8)
TABLE(8)
#endif
#if HAS_COLLECTIVE(8)
COLLECTIVE_TABLE(8)
#endif
#if HAS(9)
TABLE(9)
#endif
#if HAS_COLLECTIVE(9)
COLLECTIVE_TABLE(9)
#endif
#if HAS(10)
TABLE(10)
#endif
#if HAS_COLLECTIVE(10)
COLLECTIVE_TABLE(10)
#endif
#if HAS(11)
TABLE(11)
#endif
#if HAS_COLLECTIVE(11)
COLLECTIVE_TABLE(11)
#endif
#if HAS(12)
TABLE(12)
#endif
#if HAS_COLLECTIVE(12)
COLLECTIVE_TABLE(12)
#endif

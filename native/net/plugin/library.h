// The libraries that plugins of every kind come in, and the tables that they export.
#pragma once
#include <string>
#include <vector>

namespace ncclrun::net::plugin {

// Opens the library that a word of a variable stands for: a path, which must be the user's or root's alone, a library's
// name, NAME for libnccl-KIND-NAME.so, or STATIC_PLUGIN for the program itself. Null: `why` has the reason.
void* openLibrary(const std::string& word, const char* kind, std::string& why);

// Words between commas, up to "none".
std::vector<std::string> wordsOf(const std::string& list);

// Tables SYMBOL_v<oldest> to SYMBOL_v<newest>.
struct TableName {
  const char* symbol;
  int oldest, newest;
};
struct ExportedTable {
  int version = 0;
  void* table = nullptr;  // null: the library exports none
};
ExportedTable newestTable(void* library, const TableName& name);

// "ncclNetPlugin_v4, ncclNetPlugin_v5": those of any version, also of others than ours. Empty: none.
std::string versionsOf(void* library, const TableName& name);

// Says that the library exports none of the tables, and names the versions that it has instead.
std::string noTable(void* library, const TableName& name);

}  // namespace ncclrun::net::plugin

// Faults that tests plant.
#include "faults.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "stand_in_verbs.h"
#include "state.h"

namespace stand_in_verbs {
namespace {

bool isFor(const std::string& device, const Adapter& adapter) { return device.empty() || device == adapter.name; }

// A line as its words; each may be asked for once, and none may be left.
class Line {
 public:
  explicit Line(const std::string& text) : words_(splitWords(text)) {}
  bool has(const std::string& key) const { return words().count(key) != 0; }
  std::string text(const std::string& key, const std::string& otherwise = {}) {
    for (auto word = words_.begin(); word != words_.end(); ++word) {
      if (word->first != key) continue;
      const std::string value = word->second;
      words_.erase(word);
      return value;
    }
    return otherwise;
  }
  long number(const std::string& key, long otherwise) {
    if (!has(key)) return otherwise;
    long value = 0;
    if (!readNumber(text(key), value)) isBad_ = true;
    return value;
  }
  bool isRead() const { return words_.empty() && !isBad_; }

 private:
  std::set<std::string> words() const {
    std::set<std::string> keys;
    for (const Word& word : words_) keys.insert(word.first);
    return keys;
  }
  std::vector<Word> words_;
  bool isBad_ = false;
};

bool readOperation(const std::string& text, int& opcode) {
  constexpr const char* kNames[] = {"write", "write-imm", "send", nullptr, "read"};
  opcode = text == "receive" ? static_cast<int>(kReceivedImmediate) : -1;
  for (int index = 0; index < 5; ++index) {
    if (kNames[index] != nullptr && text == kNames[index]) opcode = index;
  }
  return text.empty() || opcode >= 0;
}

bool plantStatus(Line& line) {
  PlantedStatus planted = {};
  planted.end.status = static_cast<int>(line.number("status", 0));
  planted.end.isDelivered = line.number("delivered", 0) != 0;
  planted.after = line.number("after", 1);
  planted.device = line.text("device");
  planted.number = static_cast<uint32_t>(line.number("qp", 0));
  if (!readOperation(line.text("op"), planted.opcode) || planted.after < 1 || !line.isRead()) return false;
  world().statuses.push_back(planted);
  return true;
}

bool plantPort(Line& line) {
  const std::string state = line.text("port"), device = line.text("device");
  const long number = line.number("number", 1);
  if ((state != "down" && state != "up") || !line.isRead()) return false;
  for (Adapter& adapter : world().adapters) {
    const bool hasPort = number >= 1 && number <= static_cast<long>(adapter.ports.size());
    if (isFor(device, adapter) && hasPort) setPort(adapter, static_cast<int>(number), state == "up");
  }
  return true;
}

void raisePairs(const Adapter& adapter, uint32_t number, int type, bool isFatal) {
  std::vector<QueuePair*> pairs;
  for (const auto& [key, pair] : world().pairs) {
    if (pair->adapter == &adapter && (number == 0 || number == key)) pairs.push_back(pair);
  }
  for (QueuePair* const pair : pairs) {
    if (type != kDeviceFatal) raisePair(*pair, type);
    if (isFatal) breakPair(*pair);
  }
}

bool plantEvent(Line& line) {
  const int type = static_cast<int>(line.number("event", 0));
  const std::string device = line.text("device");
  const int number = static_cast<int>(line.number("number", 1));
  const auto pair = static_cast<uint32_t>(line.number("qp", 0));
  if (!line.isRead()) return false;
  for (Adapter& adapter : world().adapters) {
    if (!isFor(device, adapter)) continue;
    if (type == kCompletionQueueError) {
      for (CompletionQueue* const queue : world().queues) {
        auto& context = *static_cast<Context*>(queue->context);
        AsyncEvent event = {};
        event.completionQueue = queue;
        event.type = type;
        if (context.adapter == &adapter) raise(context, event);
      }
    } else if (type <= 7 || type == 16) {
      raisePairs(adapter, pair, type, type == kQueuePairFatal);
    } else {
      raisePort(adapter, number, type);
      adapter.isBroken |= type == kDeviceFatal;
      if (type == kDeviceFatal) raisePairs(adapter, 0, type, true);
    }
  }
  return true;
}

bool plantLoss(Line& line) {
  const std::string rate = line.text("drop"), device = line.text("device");
  char* end = nullptr;
  const double share = std::strtod(rate.c_str(), &end);
  if (rate.empty() || *end != '\0' || share < 0 || share > 1 || !line.isRead()) return false;
  for (Adapter& adapter : world().adapters) {
    if (isFor(device, adapter)) adapter.lossRate = share;
  }
  return true;
}

bool plantRefusal(Line& line) {
  Refusal refusal = {.what = line.text("refuse"), .device = line.text("device"), .error = 0, .count = 0};
  refusal.error = static_cast<int>(line.number("errno", ENOMEM));
  refusal.count = line.number("count", 1);
  static const std::set<std::string> known = {"mr", "dmabuf", "qp", "cq", "pd", "modify", "open", "channel"};
  if (known.count(refusal.what) == 0 || !line.isRead()) return false;
  world().refusals.push_back(refusal);
  return true;
}

bool plantGid(Line& line) {
  const std::string text = line.text("gid"), device = line.text("device");
  const auto index = static_cast<size_t>(line.number("index", 1));
  const auto number = static_cast<size_t>(line.number("number", 1));
  const std::vector<Gid> gids = text == "none" ? std::vector<Gid>(1) : readGids(text);
  if (gids.size() != 1 || index > 1023 || !line.isRead()) return false;
  for (Adapter& adapter : world().adapters) {
    if (!isFor(device, adapter) || number < 1 || number > adapter.ports.size()) continue;
    Port& port = adapter.ports[number - 1];
    const bool isEthernet = port.configuration.link == kLinkEthernet;
    while (port.gids.size() <= index) {
      port.gids.push_back({});
      port.gidTypes.push_back(isEthernet ? 2 : 0);
    }
    port.gids[index] = gids[0];
    raisePort(adapter, static_cast<int>(number), kGidChange);
  }
  return true;
}

bool plantOthers(Line& line) {
  if (line.has("reorder")) world().reorders = line.number("reorder", 0) != 0;
  if (line.has("delay") && !readRange(line.text("delay"), world().delay)) return false;
  return line.isRead();
}

}  // namespace

bool plantLine(const std::string& text) {
  Line line(text);
  if (line.has("status")) return plantStatus(line);
  if (line.has("port")) return plantPort(line);
  if (line.has("event")) return plantEvent(line);
  if (line.has("drop")) return plantLoss(line);
  if (line.has("refuse")) return plantRefusal(line);
  if (line.has("gid")) return plantGid(line);
  return plantOthers(line);
}

int refused(const char* what, const Adapter& adapter) {
  std::list<Refusal>& refusals = world().refusals;
  for (auto one = refusals.begin(); one != refusals.end(); ++one) {
    if (one->what != what || !isFor(one->device, adapter)) continue;
    const int error = one->error;
    if (--one->count <= 0) refusals.erase(one);
    return error;
  }
  return 0;
}

PlantedEnd plantedEnd(const QueuePair& pair, int opcode) {
  std::list<PlantedStatus>& statuses = world().statuses;
  const int basic = opcode == kSendImmediate ? static_cast<int>(kSend) : opcode;
  for (auto one = statuses.begin(); one != statuses.end(); ++one) {
    const bool isKind = one->opcode == -1 ? opcode != kReceivedImmediate : one->opcode == basic;
    if (!isKind || !isFor(one->device, *pair.adapter)) continue;
    if (one->number != 0 && one->number != pair.number) continue;
    if (--one->after > 0) continue;
    const PlantedEnd end = one->end;
    statuses.erase(one);
    return end;
  }
  return {};
}

bool isSwallowed(Adapter& adapter, const Port& port) {
  const bool isLost = port.state != 4 || (adapter.lossRate > 0 && drawShare() < adapter.lossRate);
  if (isLost) ++world().lost;
  return isLost;
}

}  // namespace stand_in_verbs

using namespace stand_in_verbs;

STAND_IN_EXPORT int stand_in_verbs_plant(const char* text) {
  const Lock lock(world().mutex);
  if (!configure()) return EINVAL;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!plantLine(line)) return EINVAL;
  }
  return 0;
}

STAND_IN_EXPORT long stand_in_verbs_count(const char* what) {
  World& all = world();
  const Lock lock(all.mutex);
  const std::string word = what;
  if (word == "contexts") return static_cast<long>(all.contexts.size());
  if (word == "domains") return all.domainCount;
  if (word == "regions") return all.regionCount;
  if (word == "channels") return all.channelCount;
  if (word == "completion queues") return static_cast<long>(all.queues.size());
  if (word == "queue pairs") return static_cast<long>(all.pairs.size());
  if (word == "messages") return all.messages;
  if (word == "announced") return all.announced;
  if (word == "retransmissions") return all.retransmissions;
  return word == "lost" ? all.lost : -1;
}

STAND_IN_EXPORT long stand_in_verbs_settings(const char* device, char* text, size_t bytes) {
  World& all = world();
  const Lock lock(all.mutex);
  std::ostringstream lines;
  for (const auto& [number, pair] : all.pairs) {
    const QueuePairAttributes& own = pair->attributes;
    if (!isFor(device, *pair->adapter) || pair->state != kReadyToSend) continue;
    lines << "pkey=" << own.partitionKey << " sl=" << int{own.path.serviceLevel} << " tc=" << int{own.path.trafficClass}
          << " timeout=" << int{own.timeout} << " retries=" << int{own.retries} << '\n';
  }
  const std::string written = lines.str();
  if (written.size() >= bytes) return -1;
  std::memcpy(text, written.c_str(), written.size() + 1);
  return static_cast<long>(written.size());
}

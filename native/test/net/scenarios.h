// The scenarios of the conformance suite.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "net/conformance.h"

namespace ncclrun::test {

class Side;

struct Scenario {
  std::string name;
  void (*send)(Side&);
  void (*receive)(Side&);
  bool kills = false;   // one side kills itself
  bool isLong = false;  // only in the full run
  bool (*concerns)(const BackendTraits&) = [](const BackendTraits&) { return true; };
};

std::vector<Scenario> transferScenarios();
std::vector<Scenario> connectionScenarios();
std::vector<Scenario> exitScenarios();

inline std::vector<Scenario> scenarios() {
  std::vector<Scenario> all = transferScenarios();
  for (auto* const more : {connectionScenarios, exitScenarios}) {
    for (Scenario& one : more()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace ncclrun::test

// The checks of a HostPlan that look at tuning rows.
#include <string>

#include "plan/plan_error.h"
#include "plan/plan_view.h"
#include "plan/variants.h"

namespace ncclrun {

Status PlanView::checkTuning() const {
  int previousCollective = -1;
  uint64_t previousSize = ~0ull;
  for (uint32_t index = 0; index < header_.tuningTable.count; index++) {
    const auto row = tuning(index);
    const std::string which = "tuning row " + number(index);
    if (row.collective > uint8_t(plan::Collective::barrier))
      return wrongPlan("has collective " + number(row.collective) + " in " + which);
    if (row.collective < previousCollective) return wrongPlan("has " + which + " out of order");
    if (row.collective == previousCollective ? row.upToBytes <= previousSize : previousSize != ~0ull) {
      return wrongPlan("has sizes that do not ascend to the end at " + which);
    }
    if (row.variantCount == 0 || row.firstVariant > header_.variantTable.count ||
        row.variantCount > header_.variantTable.count - row.firstVariant) {
      return wrongPlan("has no variant, or one beyond its variant table, in " + which);
    }
    NCCLRUN_TRY(checkRow(index));
    previousCollective = row.collective;
    previousSize = row.upToBytes;
  }
  if (previousSize != ~0ull)
    return wrongPlan("has no variant for the largest sizes of collective " + number(previousCollective));
  bool isDirect = false, isChain = false;
  for (uint32_t index = 0; index < header_.variantTable.count; index++) {
    isDirect = isDirect || variant(index).algorithm == uint8_t(plan::Algorithm::collnet);
    isChain = isChain || variant(index).algorithm == uint8_t(plan::Algorithm::collnetChain);
  }
  return isDirect && isChain ? wrongPlan("chooses both collnet and collnetChain, of which it can have one") : Status{};
}

Status PlanView::checkRow(uint32_t index) const {
  const auto row = tuning(index);
  const auto device = plan::Device(header_.device);
  const auto collective = plan::Collective(row.collective);
  for (uint32_t variant = row.firstVariant; variant < row.firstVariant + row.variantCount; variant++) {
    NCCLRUN_TRY(checkVariant(variant));
    if (!hasVariant(device, collective, this->variant(variant)))
      return wrongPlan("chooses " + nameOf(this->variant(variant)) + " for " + nameOf(collective) + " in tuning row " +
                       number(index) + ", which the " + nameOf(device) + " device does not have");
    if (this->variant(variant).algorithm == uint8_t(plan::Algorithm::rail) &&
        !hasRails(device, header_.hosts, countRanksOfEachHost()))
      return wrongPlan(std::string("chooses rails for ") + nameOf(collective) + " in tuning row " + number(index) +
                       ", and its hosts have no equal numbers of ranks, or more than a block has connections");
    if (isCollnet(plan::Algorithm(this->variant(variant).algorithm)) && header_.hosts < 2)
      return wrongPlan("chooses " + nameOf(this->variant(variant)) + " in tuning row " + number(index) +
                       " and has one host alone");
    if (this->variant(variant).algorithm == uint8_t(plan::Algorithm::collnet) && countRanksOfEachHost() == 0)
      return wrongPlan(std::string("chooses collnet for ") + nameOf(collective) + " in tuning row " + number(index) +
                       ", and its hosts have no equal numbers of ranks");
    if (device == plan::Device::cuda && header_.hosts > 1 &&
        !hasVariantBetweenGpuHosts(collective, this->variant(variant), header_.ranks, header_.pairChannels))
      return wrongPlan("chooses " + nameOf(this->variant(variant)) + " for " + nameOf(collective) + " in tuning row " +
                       number(index) + ", which GPUs of several hosts do not have");
  }
  if (this->variant(row.firstVariant + row.variantCount - 1).requires_ != 0)
    return wrongPlan("has preconditions for the last variant of tuning row " + number(index) +
                     ", so that a call could have none");
  return {};
}

Status PlanView::checkVariant(uint32_t index) const {
  const auto variant = this->variant(index);
  const std::string which = " in variant " + number(index);
  if (variant.algorithm > uint8_t(plan::Algorithm::collnetChain))
    return wrongPlan("has algorithm " + number(variant.algorithm) + which);
  if (variant.protocol > uint8_t(plan::Protocol::ll128))
    return wrongPlan("has protocol " + number(variant.protocol) + which);
  if (variant.channels == 0 || variant.channels > header_.channels) {
    return wrongPlan("uses " + number(variant.channels) + " of " + number(header_.channels) + " channels" + which);
  }
  if ((variant.flags & ~plan::kAsMessages) != 0) return wrongPlan("has unknown flags " + number(variant.flags) + which);
  if (variant.threads < 64 || variant.threads > 4096)
    return wrongPlan("has " + number(variant.threads) + " threads, 64 to 4096 can be," + which);
  if (variant.chunkBytes == 0 || variant.chunkBytes > (1ull << 40))
    return wrongPlan("has chunks of " + number(variant.chunkBytes) + " bytes" + which);
  return {};
}

}  // namespace ncclrun

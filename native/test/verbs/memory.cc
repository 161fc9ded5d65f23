// Protection domains and registered memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "state.h"

namespace stand_in_verbs {

uint8_t* resolve(uint32_t key, bool isLocal, const DomainHandle* domain, uint32_t access, uint64_t address,
                 size_t bytes) {
  const auto found = world().regions.find(key);
  if (found == world().regions.end()) return nullptr;
  const Region& region = *found->second;
  if (key != (isLocal ? region.localKey : region.remoteKey) || region.RegionHandle::domain != domain) return nullptr;
  if ((region.access & access) != access || address < region.start) return nullptr;
  const uint64_t offset = address - region.start;
  if (offset > region.bytes || bytes > region.bytes - offset) return nullptr;
  return region.memory + offset;
}

namespace {

const uint64_t kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));

// True if every page of the range is mapped.
bool isMapped(const void* address, size_t bytes) {
  const uint64_t start = reinterpret_cast<uint64_t>(address) / kPage * kPage;
  const uint64_t end = reinterpret_cast<uint64_t>(address) + bytes;
  std::vector<unsigned char> pages((end - start + kPage - 1) / kPage);
  return mincore(reinterpret_cast<void*>(start), end - start, pages.data()) == 0;
}

RegionHandle* fail(int error) {
  errno = error;
  return nullptr;
}

RegionHandle* add(std::unique_ptr<Region> region, DomainHandle* domain, uint64_t start, uint32_t access) {
  World& all = world();
  constexpr uint32_t kRemoteWrites = kRemoteWrite | kRemoteAtomic;
  if ((access & kRemoteWrites) != 0 && (access & kLocalWrite) == 0) return fail(EINVAL);
  if (region->bytes > all.configuration.lockedBytes - all.registeredBytes) return fail(ENOMEM);
  region->context = domain->context;
  region->RegionHandle::domain = domain;
  region->start = start;
  region->access = access;
  // The two keys differ, so that one in the place of the other does not pass unnoticed.
  if (all.lastKey == 0) all.lastKey = static_cast<uint32_t>(all.random() & 0xffff) << 12 | all.slot;
  all.lastKey += 0x10;
  region->localKey = all.lastKey << 1;
  region->remoteKey = region->localKey | 1;
  region->handle = all.lastKey;
  all.registeredBytes += region->bytes;
  ++static_cast<Domain*>(domain)->users;
  ++all.regionCount;
  all.regions[region->localKey] = all.regions[region->remoteKey] = region.get();
  all.live.insert(region.get());
  return region.release();
}

RegionHandle* registerMemory(DomainHandle* domain, void* address, size_t bytes, uint64_t start, uint32_t access,
                             const char* call) {
  const Lock lock(world().mutex);
  require(domain, call);
  const int error = refused("mr", *static_cast<Context*>(domain->context)->adapter);
  if (error != 0) return fail(error);
  if (bytes == 0 || reinterpret_cast<uint64_t>(address) + bytes < bytes) return fail(EINVAL);
  if (start % kPage != reinterpret_cast<uint64_t>(address) % kPage) return fail(EINVAL);  // devices map whole pages
  if (!isMapped(address, bytes)) return fail(EFAULT);
  auto region = std::make_unique<Region>();
  region->address = address;
  region->bytes = bytes;
  region->memory = static_cast<uint8_t*>(address);
  return add(std::move(region), domain, start, access);
}

}  // namespace
}  // namespace stand_in_verbs

using namespace stand_in_verbs;

STAND_IN_EXPORT DomainHandle* ibv_alloc_pd(ContextHandle* context) {
  World& all = world();
  const Lock lock(all.mutex);
  require(context, "ibv_alloc_pd");
  const int error = refused("pd", *static_cast<Context*>(context)->adapter);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const domain = new Domain();
  domain->context = context;
  all.live.insert(domain);
  ++all.domainCount;
  return domain;
}

STAND_IN_EXPORT int ibv_dealloc_pd(DomainHandle* handle) {
  World& all = world();
  const Lock lock(all.mutex);
  require(handle, "ibv_dealloc_pd");
  auto* const domain = static_cast<Domain*>(handle);
  if (domain->users > 0) return EBUSY;
  all.live.erase(domain);
  --all.domainCount;
  delete domain;
  return 0;
}

STAND_IN_EXPORT RegionHandle* ibv_reg_mr(DomainHandle* domain, void* address, size_t bytes, int access) {
  return registerMemory(domain, address, bytes, reinterpret_cast<uint64_t>(address), static_cast<uint32_t>(access),
                        "ibv_reg_mr");
}

STAND_IN_EXPORT RegionHandle* ibv_reg_mr_iova2(DomainHandle* domain, void* address, size_t bytes, uint64_t start,
                                               unsigned access) {
  return registerMemory(domain, address, bytes, start, access, "ibv_reg_mr_iova2");
}

STAND_IN_EXPORT RegionHandle* ibv_reg_dmabuf_mr(DomainHandle* domain, uint64_t offset, size_t bytes, uint64_t start,
                                                int descriptor, int access) {
  World& all = world();
  const Lock lock(all.mutex);
  require(domain, "ibv_reg_dmabuf_mr");
  if (!all.configuration.hasDmaBuf) return fail(EOPNOTSUPP);
  const int error = refused("dmabuf", *static_cast<Context*>(domain->context)->adapter);
  if (error != 0) return fail(error);
  if (descriptor < 0) return fail(EBADF);
  if (bytes == 0 || start % kPage != offset % kPage) return fail(EINVAL);
  const uint64_t before = offset % kPage;
  void* const mapping = mmap(nullptr, before + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                             static_cast<off_t>(offset - before));
  if (mapping == MAP_FAILED) return nullptr;
  auto region = std::make_unique<Region>();
  region->bytes = bytes;
  region->memory = static_cast<uint8_t*>(mapping) + before;
  region->mapping = mapping;
  region->mappedBytes = before + bytes;
  RegionHandle* const added = add(std::move(region), domain, start, static_cast<uint32_t>(access));
  if (added == nullptr) munmap(mapping, before + bytes);
  return added;
}

STAND_IN_EXPORT int ibv_dereg_mr(RegionHandle* handle) {
  World& all = world();
  const Lock lock(all.mutex);
  require(handle, "ibv_dereg_mr");
  auto* const region = static_cast<Region*>(handle);
  all.regions.erase(region->localKey);
  all.regions.erase(region->remoteKey);
  all.live.erase(region);
  all.registeredBytes -= region->bytes;
  --static_cast<Domain*>(region->RegionHandle::domain)->users;
  --all.regionCount;
  if (region->mapping != nullptr) munmap(region->mapping, region->mappedBytes);
  delete region;
  return 0;
}

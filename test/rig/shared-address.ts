/** Machines in which GPUs share a PCI address. */

/** Two GPUs, each in two parts for a rank of its own (MLOPart). */
export const PARTS = `<system version="1">
  <cpu numaid="0" arch="arm64">
${[0, 1]
  .map(
    (dev) => `    <pci busid="000${dev}:81:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="4">
${[0, 1]
  .map(
    (part) => `      <gpu dev="${dev}" sm="107" mlopart="${part}" rank="${2 * dev + part}" gdr="1">
        <nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>
      </gpu>`,
  )
  .join('\n')}
    </pci>`,
  )
  .join('\n')}
  </cpu>
</system>
`;

/** A processor with two GPUs, whose devices have one address. */
export const TWINS = `<system version="1">
  <cpu numaid="-1" arch="arm64">
    <pci busid="0000:00:00.0" class="0x030200" link_speed="" link_width="0"><gpu dev="0" sm="110" rank="0"/></pci>
    <pci busid="0000:00:00.0" class="0x030200" link_speed="" link_width="0"><gpu dev="1" sm="110" rank="1"/></pci>
  </cpu>
</system>
`;

/** As providers ship it: what is not there is found out on the host. */
export const TEMPLATE = `<system version="1">
  <cpu numaid="0">
    <pci busid="0000:10:00.0" class="0x030200"><gpu/></pci>
    <pci busid="0000:11:00.0" class="0x030200"><gpu/></pci>
  </cpu>
  <cpu numaid="1">
    <pci busid="0000:20:00.0"/>
  </cpu>
</system>
`;

/** Two hosts of one NVLink domain in one dump. */
export const TWO_HOSTS = `<system version="1">
${['0xaa01', '0xaa02']
  .map(
    (hash) => `  <cpu host_hash="${hash}" numaid="0" arch="arm64">
    <pci busid="0008:06:00.0" class="0x030200"><gpu dev="0" sm="103" rank="0"/></pci>
  </cpu>`,
  )
  .join('\n')}
</system>
`;

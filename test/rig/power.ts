/** A server of two sockets whose GPUs have NVLinks to their processors, as text of a topology file. */

/** Two GPUs whose NVLinks lead to processors: two sockets of POWER9. */
export function powerTopology(architecture: string, sm: number): string {
  const cpus = [0, 1].map((numa) => {
    const link = '<nvlink target="0000:00:00.0" count="3" tclass="0x068001"/>';
    const gpu = `<gpu dev="${numa}" sm="${sm}" rank="${numa}" gdr="1">${link}</gpu>`;
    const net = `<nic><net name="m${numa}" dev="${numa + 2}" speed="100000" port="1" guid="0x${numa}" gdr="1"/></nic>`;
    const width = 'link_speed="16.0 GT/s" link_width="8"';
    return (
      `<cpu numaid="${numa}" arch="${architecture}" vendor="GenuineIntel" familyid="6" modelid="143">` +
      `<pci busid="000${numa}:01:00.0" class="0x030200" ${width}>${gpu}</pci>` +
      `<pci busid="000${numa}:02:00.0" class="0x020700" ${width}>${net}</pci></cpu>`
    );
  });
  return `<system version="1">${cpus.join('')}</system>`;
}

/** Names of PCI base classes and of common subclasses (PCI Code and ID Assignment Specification). */
const classes: Readonly<Record<string, readonly [name: string, subclasses: Readonly<Record<string, string>>]>> = {
  '00': ['Unclassified device', {}],
  '01': [
    'Mass storage controller',
    {
      '00': 'SCSI storage controller',
      '01': 'IDE interface',
      '04': 'RAID bus controller',
      '05': 'ATA controller',
      '06': 'SATA controller',
      '07': 'Serial Attached SCSI controller',
      '08': 'Non-Volatile memory controller',
    },
  ],
  '02': ['Network controller', { '00': 'Ethernet controller', '07': 'Infiniband controller', '80': 'Network controller' }],
  '03': ['Display controller', { '00': 'VGA compatible controller', '02': '3D controller', '80': 'Display controller' }],
  '04': ['Multimedia controller', {}],
  '05': ['Memory controller', { '00': 'RAM memory' }],
  '06': ['Bridge', { '00': 'Host bridge', '01': 'ISA bridge', '04': 'PCI bridge', '80': 'Bridge' }],
  '07': ['Communication controller', { '00': 'Serial controller' }],
  '08': ['Generic system peripheral', {}],
  '09': ['Input device controller', {}],
  '0b': ['Processor', {}],
  '0c': ['Serial bus controller', { '03': 'USB controller', '05': 'SMBus', '06': 'InfiniBand' }],
  '0d': ['Wireless controller', {}],
  '10': ['Encryption controller', {}],
  '11': ['Signal processing controller', {}],
  '12': ['Processing accelerators', { '00': 'Processing accelerators' }],
  ff: ['Unassigned class', {}],
}

/** The names of a class and subclass, where known. */
export function pciClass(classId: string, subclassId: string): { class?: string; subclass?: string } {
  const [name, subclasses] = classes[classId] ?? []
  return { ...(name && { class: name }), ...(subclasses?.[subclassId] && { subclass: subclasses[subclassId] }) }
}

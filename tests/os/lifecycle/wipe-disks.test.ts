import { expect, test } from 'bun:test'
import { parseWipe } from '../../../src/os/lifecycle/start/wipe-disks.ts'

test('the kernel command line selects the system disk, some of its partitions, or other disks', () => {
  expect(parseWipe('system')).toEqual({ system: 'all' })
  expect(parseWipe('system:STATE,EPHEMERAL')).toEqual({ system: ['STATE', 'EPHEMERAL'] })
  expect(parseWipe('/dev/sdb,/dev/nvme1n1')).toEqual({ disks: ['/dev/sdb', '/dev/nvme1n1'] })
  for (const wrong of ['', 'all', 'system:', 'sdb', '/dev/sdb,system']) expect(() => parseWipe(wrong)).toThrow('want "system"')
})

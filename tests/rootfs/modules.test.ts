import { expect, test } from 'bun:test'
import { moduleList } from '../../rootfs/image/initramfs.ts'
import {
  beforeLock,
  dependsOf,
  early,
  KernelError,
  keptModules,
  loadedBeforeLock,
  mayHoldRoot,
  required,
} from '../../rootfs/image/modules.ts'

const all = (more: Record<string, string[]> = {}) =>
  new Map([...required.map((name): [string, string[]] => [`kernel/x/${name}.ko`, []]), ...Object.entries(more)])

test('what no machine uses goes, and what depends on it goes too', () => {
  const kept = keptModules(
    all({
      'kernel/sound/core/snd.ko': [],
      'kernel/drivers/misc/beeper.ko': ['snd'],
      'kernel/drivers/misc/second-beeper.ko': ['beeper'],
      'kernel/drivers/misc/quiet.ko': ['nvme'],
    }),
    new Set(),
  )
  expect(kept).toContain('kernel/drivers/misc/quiet.ko')
  expect(kept.filter((path) => /snd|beeper/.test(path))).toEqual([])
})

test('a kernel without a driver that is needed is refused, unless it has it built in', () => {
  const without = all()
  without.delete('kernel/x/nvme.ko')
  expect(() => keptModules(without, new Set())).toThrow('the kernel has no module nvme')
  expect(() => keptModules(without, new Set())).toThrow(KernelError)
  expect(keptModules(without, new Set(['nvme']))).toHaveLength(required.length - 1)
})

test('what a module needs is read from the module', () => {
  const module = Buffer.from('\x7fELF....license=GPL\0depends=dm-mod,dm-bufio\0name=dm_verity\0', 'latin1')
  expect(dependsOf(module)).toEqual(['dm-mod', 'dm-bufio'])
  expect(dependsOf(Buffer.from('x\0depends=\0'))).toEqual([])
  expect(dependsOf(Buffer.from('nothing'))).toEqual([])
})

test.each([
  ['kernel/drivers/nvme/host/nvme.ko', true],
  ['kernel/drivers/scsi/megaraid/megaraid_sas.ko', true],
  ['kernel/drivers/usb/storage/uas.ko', true],
  ['kernel/drivers/block/virtio_blk.ko', true],
  ['kernel/drivers/mmc/host/sdhci-iproc.ko', true],
  ['kernel/drivers/regulator/gpio-regulator.ko', true],
  ['kernel/drivers/regulator/tps65218-regulator.ko', false],
  ['kernel/drivers/block/nbd.ko', false],
  ['kernel/drivers/scsi/st.ko', false],
  ['kernel/drivers/scsi/fcoe/fcoe.ko', false],
  ['kernel/drivers/net/ethernet/intel/e1000/e1000.ko', false],
])('whether %s may be on the way to the root: %p', (path, expected) => {
  expect(mayHoldRoot(path)).toBe(expected)
})

test('stage 0 gets each module with what it needs and the devices it is for', () => {
  const order = ['kernel/drivers/md/dm-mod.ko', 'kernel/drivers/md/dm-verity.ko', 'kernel/drivers/nvme/host/nvme.ko']
  const list = moduleList(
    order,
    new Map([
      [order[0]!, []],
      [order[1]!, [order[0]!]],
      [order[2]!, []],
    ]),
    'alias pci:v*d*sv*sd*bc01sc08i02* nvme\nalias crypto-thing nvme\nalias of:N*T*Cx nvme\n',
  )
  // `of:` is how the devices of a device tree name themselves.
  expect(list).toBe('dm-mod.ko\ndm-verity.ko ! 0\nnvme.ko =pci:v*d*sv*sd*bc01sc08i02* =of:N*T*Cx\n')
  expect(early()).toContain('dm-verity')
  expect(early('arm64')).toEqual(expect.arrayContaining(['dm-verity', 'sha256-arm64']))
  expect(early('arm64')).not.toContain('sha256-ssse3')
})

test('what is loaded before the lock is named once and is there', () => {
  expect(new Set(beforeLock).size).toBe(beforeLock.length)
  expect(
    loadedBeforeLock([
      'kernel/drivers/usb/storage/usb-storage.ko',
      'kernel/net/netfilter/xt_mark.ko',
      'kernel/drivers/x/other.ko',
      'kernel/drivers/net/dummy.ko',
    ]),
  ).toEqual(['dummy numdummies=0', 'usb_storage', 'xt_mark'])
})

import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { observePciDevices } from '../../../src/os/hardware/controllers/pci-devices.ts'
import { observeSystemInfo } from '../../../src/os/hardware/controllers/system-info.ts'
import { MemoryModule } from '../../../src/os/hardware/resources/memory-module.ts'
import { PCIDevice } from '../../../src/os/hardware/resources/pci-device.ts'
import { Processor } from '../../../src/os/hardware/resources/processor.ts'
import { SystemInformation } from '../../../src/os/hardware/resources/system-information.ts'
import { DevicesStatus } from '../../../src/os/runtime/resources/devices-status.ts'
import { MetaKey } from '../../../src/os/runtime/resources/meta.ts'
import { structure } from '../../wire/smbios-table.ts'

/** A body of zeros with bytes at offsets of the structure, the header's four counted. */
const body = (length: number, at: Record<number, readonly number[]>) => {
  const bytes = new Uint8Array(length)
  for (const [offset, values] of Object.entries(at)) bytes.set(values, Number(offset))
  return [...bytes.subarray(4)]
}
const uuid = [0x78, 0x56, 0x34, 0x12, 0xbc, 0x9a, 0xef, 0x4d, 0x81, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]
const processor = (name: string) =>
  structure(4, body(48, { 4: [1], 7: [2], 16: [3], 20: [0xd0, 0x07], 35: [0xff], 42: [0x2c, 0x01], 37: [2] }), [name, 'QEMU', 'pc-q35'])
const table = Buffer.concat([
  structure(1, body(27, { 4: [1], 5: [2], 7: [3], 8: uuid, 24: [6] }), ['QEMU', 'Standard PC', 'rack-7']),
  processor('CPU 0'),
  processor('CPU 0'),
  structure(17, body(34, { 12: [0xff, 0x7f], 16: [1], 28: [0, 0, 1, 0] }), ['DIMM 0']),
  structure(17, body(34, { 16: [1] }), ['DIMM 1']),
  structure(127, [], []),
])

async function run(files: object, fill: (store: Store) => void = () => {}) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(observeSystemInfo({ files } as never), observePciDevices({ files } as never))
  runtime.start()
  fill(store)
  await runtime.settled()
  runtime.stop()
  return store
}

const firmware = { exists: (path: string) => path.startsWith('/sys/firmware'), read: () => table }

test('machine, processors and memory are read from SMBIOS', async () => {
  const store = await run(firmware)
  expect(store.get(SystemInformation, 'systeminformation')?.spec).toMatchObject({
    manufacturer: 'QEMU',
    uuid: '12345678-9abc-4def-8123-456789abcdef',
    serialnumber: 'rack-7',
    wakeUpType: 'Power Switch',
  })
  expect(store.list(Processor).map(({ metadata, spec }) => [metadata.id, spec.coreCount])).toEqual([
    ['CPU-0', 300],
    ['CPU-1', 300],
  ])
  expect(store.list(MemoryModule).map(({ metadata, spec }) => [metadata.id, spec.sizeMiB])).toEqual([['DIMM-0', 65_536]])
})

test('a UUID in META overrides that of the firmware', async () => {
  const store = await run(firmware, (each) => each.put(MetaKey, '0x0f', { value: 'aaaaaaaa-0000-0000-0000-000000000000' }))
  expect(store.get(SystemInformation, 'systeminformation')?.spec).toMatchObject({
    manufacturer: 'QEMU',
    uuid: 'aaaaaaaa-0000-0000-0000-000000000000',
  })
})

test('PCI devices are published with class and driver, once udevd has settled', async () => {
  const at = '/sys/bus/pci/devices'
  const texts: Record<string, string> = { class: '0x020000\n', vendor: '0x1af4\n', device: '0x1041\n' }
  const files = {
    exists: (path: string) => path === at || path.endsWith('/driver'),
    list: () => ['0000:00:02.0'],
    readText: (path: string) => texts[path.split('/').at(-1)!]!,
    readlink: () => '../../../bus/pci/drivers/virtio-pci',
  }
  expect((await run(files)).list(PCIDevice)).toEqual([])
  const store = await run(files, (each) => each.put(DevicesStatus, 'devices', { ready: true }))
  expect(store.get(PCIDevice, '0000:00:02.0')?.spec).toEqual({
    class: 'Network controller',
    subclass: 'Ethernet controller',
    class_id: '0x02',
    subclass_id: '0x00',
    vendor_id: '0x1af4',
    product_id: '0x1041',
    driver: 'virtio-pci',
  })
})

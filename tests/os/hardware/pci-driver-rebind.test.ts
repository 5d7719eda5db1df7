import { describe, expect, test } from 'bun:test'
import { createLogger } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { SystemDisk } from '../../../src/os/block/resources/system-disk.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { bindPciDrivers, configPciDrivers } from '../../../src/os/hardware/controllers/pci-driver-rebind.ts'
import { pciAddress } from '../../../src/os/hardware/resources/pci-address.ts'
import { PCIDriverRebindStatus } from '../../../src/os/hardware/resources/pci-driver-rebind.ts'
import { DevicesStatus } from '../../../src/os/runtime/resources/devices-status.ts'

const address = '0000:04:00.0'
const device = `/sys/bus/pci/devices/${address}`

const usual = ['e1000e', 'vfio-pci']

/** The PCI bus of the kernel with one device: what is written to its files acts as there. */
function machine({ drivers = usual, takes = usual, disk = '' }: { drivers?: string[]; takes?: string[]; disk?: string } = {}) {
  let [bound, override]: (string | undefined)[] = ['e1000e', '']
  const writes: string[] = []
  const files = {
    exists: (path: string) =>
      path === device ||
      (path === `${device}/driver` && bound !== undefined) ||
      (path.startsWith('/sys/class/block/') && disk !== '') ||
      drivers.some((driver) => path === `/sys/bus/pci/drivers/${driver}`),
    readlink: (path: string) => (path.startsWith('/sys/class/block/') ? disk : `../../../bus/pci/drivers/${bound}`),
    writeInto(path: string, text: string) {
      writes.push(`${path.replace(`${device}/`, '')} ${text.trim()}`)
      if (path.endsWith('/driver_override')) override = text.trim()
      else if (path.endsWith('/unbind')) bound = undefined
      else bound ??= [override || 'e1000e'].find((driver) => takes.includes(driver))
    },
  }
  const store = new Store()
  const messages: string[] = []
  const log = createLogger(({ message, fields }) => messages.push([message, fields?.reason].filter(Boolean).join(': ')))
  const runtime = new Runtime(store, { log })
  runtime.register(configPciDrivers, bindPciDrivers({ files } as never))
  runtime.start()
  store.put(DevicesStatus, 'devices', { ready: true })
  const configure = async (...documents: object[]) => {
    const base = { version: 'v1alpha1', machine: { type: 'worker' } }
    store.put(MachineConfig, 'v1alpha1', [base, ...documents].map((document) => JSON.stringify(document)).join('\n---\n'))
    await runtime.settled()
  }
  return { store, runtime, writes, messages, configure, bound: () => bound }
}

const rebind = (name = address, targetDriver = 'vfio-pci') => ({
  apiVersion: 'v1alpha1',
  kind: 'PCIDriverRebindConfig',
  name,
  targetDriver,
})

test('a device is bound to the driver that is declared, once, and released when it is declared no more', async () => {
  const it = machine()
  await it.configure(rebind('0000:04:00.00'))
  expect(it.bound()).toBe('vfio-pci')
  expect(it.writes).toEqual(['driver_override vfio-pci', `driver/unbind ${address}`, `/sys/bus/pci/drivers_probe ${address}`])
  expect(it.store.get(PCIDriverRebindStatus, '0000:04:00.00')?.spec).toEqual({ pciID: address, targetDriver: 'vfio-pci' })
  it.store.put(DevicesStatus, 'devices', { ready: true })
  await it.runtime.settled()
  expect(it.writes).toHaveLength(3)
  await it.configure()
  expect(it.bound()).toBe('e1000e')
  expect(it.store.list(PCIDriverRebindStatus)).toEqual([])
  it.runtime.stop()
})

describe('a device stays as it is', () => {
  test.each([
    ['while the driver is not loaded', { drivers: ['e1000e'] }, address, 'name its module in machine.kernel.modules'],
    [
      'when the system disk is behind it',
      { disk: `../../devices/pci0000:00/${address}/virtio1/block/vda` },
      address,
      'the system disk is behind',
    ],
    ['when it is another that is named', {}, '0000:05:00.0', 'no such device'],
  ])('%s', async (_, options, name, why) => {
    const it = machine(options)
    it.store.put(SystemDisk, 'system-disk', { diskID: 'vda', devPath: '/dev/vda' })
    await it.configure(rebind(name))
    expect(it.writes).toEqual([])
    expect(it.messages.join()).toContain(why)
    expect(it.store.list(PCIDriverRebindStatus)).toEqual([])
    it.runtime.stop()
  })
})

test('a driver that does not support the device is tried once, and the device keeps the one that it had', async () => {
  const it = machine({ takes: ['e1000e'] })
  await it.configure(rebind())
  expect(it.bound()).toBe('e1000e')
  expect(it.writes).toHaveLength(5)
  expect(it.messages.join()).toContain('the driver does not support it')
  it.store.put(DevicesStatus, 'devices', { ready: true })
  await it.configure(rebind())
  expect(it.writes).toHaveLength(5)
  expect(it.store.list(PCIDriverRebindStatus)).toEqual([])
  it.runtime.stop()
})

test.each([
  ['0000:04:00.00', '0000:04:00.0'],
  ['0000:0A:1f.7', '0000:0a:1f.7'],
  ['04:00.0', undefined],
  ['0000:04:00.8', undefined],
  ['../0000:04:00.0', undefined],
])('the address of "%s" is %s', (text, found) => expect(pciAddress(text)).toBe(found))

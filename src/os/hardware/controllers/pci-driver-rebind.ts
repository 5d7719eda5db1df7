/** Binds PCI devices to the drivers of the configuration (Documentation/ABI/testing/sysfs-bus-pci, `driver_override`). */
import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { SystemDisk } from '../../block/resources/system-disk.ts'
import { declared, findAll } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { DevicesStatus } from '../../runtime/resources/devices-status.ts'
import { PCIDriverRebindConfig as Declaration } from '../documents/pci-driver-rebind.ts'
import { pciAddress } from '../resources/pci-address.ts'
import { PCIDriverRebindConfig, PCIDriverRebindStatus } from '../resources/pci-driver-rebind.ts'

const bus = '/sys/bus/pci'
/** Milliseconds until a device or a driver that is missing is looked for again. */
const retryInterval = 10_000

type Files = Pick<Kernel['files'], 'exists' | 'readlink' | 'writeInto'>

/** The drivers that the configuration declares. */
export const configPciDrivers: Controller = defineController({
  name: 'hardware.PCIDriverRebindConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { drivers: exclusive(PCIDriverRebindConfig) },
  reconcile({ config, drivers }) {
    for (const { name, targetDriver } of findAll(declared(config.get('v1alpha1')), Declaration)) {
      const pciID = pciAddress(name ?? '')
      if (name && pciID && targetDriver) drivers.put(name, { pciID, targetDriver })
    }
  },
})

/** Binds devices once udevd has loaded the drivers; a device that is declared no more gets back the driver that the kernel chooses. */
export const bindPciDrivers = ({ files }: { files: Files }): Controller => {
  const rebound = new Set<string>()
  /** Drivers that did not take their device, which are not tried again: each try would interrupt it. */
  const refused = new Map<string, string>()
  /** What keeps a device from being bound, as it was logged last. */
  const reported = new Map<string, string | undefined>()
  return defineController({
    name: 'hardware.PCIDriverRebindController',
    inputs: {
      drivers: weak(PCIDriverRebindConfig),
      ready: weak(DevicesStatus, { id: 'devices' }),
      systemDisk: weak(SystemDisk, { id: 'system-disk' }),
    },
    outputs: { statuses: exclusive(PCIDriverRebindStatus) },
    reconcile({ drivers, ready, systemDisk, statuses, log, wakeIn }) {
      if (!ready.get('devices')?.spec.ready) return
      const desired = new Map(drivers.list().map(({ metadata, spec }) => [spec.pciID, { id: metadata.id, ...spec }]))
      for (const [address, driver] of refused) if (desired.get(address)?.targetDriver !== driver) refused.delete(address)
      for (const address of rebound) {
        if (desired.has(address)) continue
        bind(files, address, '')
        rebound.delete(address)
        log.info('PCI device released to the driver that the kernel chooses', { device: address, driver: driverOf(files, address) })
      }
      const disk = systemDisk.get('system-disk')?.spec.devPath
      for (const [address, { id, pciID, targetDriver }] of desired) {
        if (refused.has(address)) continue
        const why = obstacle(files, address, targetDriver, disk)
        if (why !== reported.get(address)) {
          if (why) log.warn('PCI device not bound', { device: address, driver: targetDriver, reason: why })
          reported.set(address, why)
        }
        if (why) {
          wakeIn(retryInterval)
          continue
        }
        if (driverOf(files, address) !== targetDriver) {
          bind(files, address, targetDriver)
          if (driverOf(files, address) !== targetDriver) {
            bind(files, address, '')
            refused.set(address, targetDriver)
            log.error('PCI device not bound', { device: address, driver: targetDriver, reason: 'the driver does not support it' })
            continue
          }
          log.info('PCI device bound', { device: address, driver: targetDriver })
        }
        rebound.add(address)
        statuses.put(id, { pciID, targetDriver })
      }
    },
  })
}

/** Why a device cannot be bound now. */
function obstacle(files: Files, address: string, driver: string, systemDisk: string | undefined): string | undefined {
  if (!files.exists(`${bus}/devices/${address}`)) return 'this machine has no such device: see "talosctl get pcidevices"'
  if (!files.exists(`${bus}/drivers/${driver}`)) return `the driver is not loaded: name its module in machine.kernel.modules`
  if (systemDisk && driverOf(files, address) !== driver && holds(files, address, systemDisk)) return 'the system disk is behind this device'
  return undefined
}

/** Whether a disk is behind a device: its place in the tree of devices contains the address. */
function holds(files: Files, address: string, disk: string): boolean {
  const link = `/sys/class/block/${disk.replace('/dev/', '')}`
  return files.exists(link) && files.readlink(link).split('/').includes(address)
}

/** Has the kernel choose the driver again, only among those of this name; an empty one lifts the restriction. */
function bind(files: Files, address: string, driver: string): void {
  const device = `${bus}/devices/${address}`
  if (!files.exists(device)) return
  files.writeInto(`${device}/driver_override`, `${driver}\n`)
  if (files.exists(`${device}/driver`)) files.writeInto(`${device}/driver/unbind`, address)
  files.writeInto(`${bus}/drivers_probe`, address)
}

function driverOf(files: Pick<Files, 'exists' | 'readlink'>, address: string): string | undefined {
  const link = `${bus}/devices/${address}/driver`
  return files.exists(link) ? files.readlink(link).split('/').at(-1) : undefined
}

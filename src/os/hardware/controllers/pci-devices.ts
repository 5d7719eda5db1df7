import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { DevicesStatus } from '../../runtime/resources/devices-status.ts'
import { pciClass } from '../pci-classes.ts'
import { PCIDevice } from '../resources/pci-device.ts'
import { PCIDriverRebindStatus } from '../resources/pci-driver-rebind.ts'

const bus = '/sys/bus/pci/devices'

/** Publishes PCI devices and their drivers, once udevd has loaded the drivers. */
export const observePciDevices = ({ files }: { files: Pick<Kernel['files'], 'exists' | 'list' | 'readText' | 'readlink'> }): Controller =>
  defineController({
    name: 'hardware.PCIDevicesController',
    effects: 'none',
    // Devices that were bound to another driver are read again.
    inputs: { ready: weak(DevicesStatus, { id: 'devices' }), rebound: weak(PCIDriverRebindStatus) },
    outputs: { devices: exclusive(PCIDevice) },
    reconcile({ ready, devices }) {
      if (!ready.get('devices')?.spec.ready || !files.exists(bus)) return
      for (const address of files.list(bus)) {
        const value = (name: string) => files.readText(`${bus}/${address}/${name}`).trim().replace(/^0x/, '')
        const code = value('class')
        const link = `${bus}/${address}/driver`
        const driver = files.exists(link) ? files.readlink(link).split('/').at(-1) : undefined
        devices.put(address, {
          ...pciClass(code.slice(0, 2), code.slice(2, 4)),
          class_id: `0x${code.slice(0, 2)}`,
          subclass_id: `0x${code.slice(2, 4)}`,
          vendor_id: `0x${value('vendor')}`,
          product_id: `0x${value('device')}`,
          ...(driver && { driver }),
        })
      }
    },
  })

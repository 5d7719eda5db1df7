import { type Controller, defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { declared } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { type BootNetwork, silentBoot } from '../../boot-network.ts'
import type { NetworkInterface } from '../../documents/machine-network.ts'
import { linkNames, selectedLinks } from '../../link/names.ts'
import { DeviceConfigSpec } from '../../resources/device-config-spec.ts'
import { LinkStatus } from '../../resources/link.ts'

/** Resolves the device selectors of `machine.network.interfaces` into one entry per link. */
export const configDevices = (boot: BootNetwork = silentBoot): Controller =>
  defineController({
    name: 'network.DeviceConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), links: weak(LinkStatus) },
    outputs: { devices: exclusive(DeviceConfigSpec) },
    reconcile({ config, links, devices, log }) {
      const present = links.list()
      const resolve = linkNames(present)
      const entries = declared(config.get('v1alpha1'))?.machine.network?.interfaces ?? []
      entries.forEach((entry, index) => {
        const { deviceSelector, ...device } = entry
        const names = device.interface ? [resolve(device.interface)] : selectedLinks(deviceSelector ?? {}, present)
        if (names.length === 0) log.info('device selector matches no link', { selector: deviceSelector })
        for (const name of names) {
          if (boot.ignored.has(name) || boot.ignored.has(device.interface ?? '')) continue
          devices.put(`${name}/${String(index).padStart(3, '0')}`, { device: { ...withMembers(device, present), interface: name } })
        }
      })
    },
  })

type Present = Parameters<typeof selectedLinks>[1]

/** Replaces the member selectors of a bond by link names. A link is used only once. */
function withMembers(device: NetworkInterface, present: Present): NetworkInterface {
  const { deviceSelectors = [], ...bond } = device.bond ?? {}
  if (deviceSelectors.length === 0) return device
  // A bond member takes over the bond's hardware address, so virtual links are excluded from selection.
  const physical = present.filter(({ spec }) => spec.kind === '')
  return {
    ...device,
    bond: { ...bond, interfaces: [...new Set(deviceSelectors.flatMap((selector) => selectedLinks(selector, physical)))] },
  }
}

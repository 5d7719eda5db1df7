import { SerialQueue } from '../../../../timing/serial-queue.ts'
import { equinixAddress } from './equinix.ts'
import { hetznerAddress } from './hetzner.ts'
import type { CloudAccess, SharedAddress, Vip } from './shared-address.ts'

/** Finds the cloud that moves a shared address; undefined for one that the local network moves. */
export type CloudAddresses = (vip: Vip) => SharedAddress | undefined

/** The shared addresses of a machine that clouds move. */
export function cloudAddresses(access: CloudAccess): CloudAddresses {
  // An API that replaces a whole list would lose changes made side by side.
  const changes = new SerialQueue()
  return ({ ip, hcloud, equinixMetal }) =>
    hcloud
      ? hetznerAddress(access, changes, { ip, apiToken: hcloud.apiToken })
      : equinixMetal && equinixAddress(access, { ip, apiToken: equinixMetal.apiToken })
}

/** WireGuard links of this process's network namespace. */

import { failedWith } from '../../wire/errno.ts'
import { genericControl, readFamilyId, writeFamilyQuery } from '../../wire/netlink/generic.ts'
import {
  readWireguard,
  type WireguardChange,
  type WireguardDevice,
  type WireguardPeer,
  wireguardFamily,
  writeWireguard,
  writeWireguardQuery,
} from '../../wire/netlink/wireguard.ts'
import { SystemError } from '../system-error.ts'
import { NetlinkSocket, netlinkProtocol } from './netlink-socket.ts'
import { hasTun } from './tap.ts'

export type { WireguardChange, WireguardDevice, WireguardPeer }

function withFamily<T>(act: (socket: NetlinkSocket, family: number) => T): T {
  using socket = new NetlinkSocket(netlinkProtocol.generic)
  return act(socket, familyOf(socket))
}

function familyOf(socket: NetlinkSocket): number {
  try {
    const [answer] = socket.request('find family', `"${wireguardFamily}"`, genericControl.family, writeFamilyQuery(wireguardFamily))
    if (answer) return readFamilyId(answer.body)
  } catch (error) {
    if (!failedWith(error, 'ENOENT')) throw error
  }
  throw new SystemError('find family', 'EOPNOTSUPP', `"${wireguardFamily}"`, 'this kernel has no WireGuard')
}

/** Whether this kernel can create WireGuard links; the check loads the module where it is one. */
export function hasWireguard(): boolean {
  try {
    return withFamily(() => true)
  } catch (error) {
    if (failedWith(error, 'EOPNOTSUPP')) return false
    throw error
  }
}

/** Whether a link can run in user space, where the kernel has no WireGuard. */
export const canRunInUserSpace = hasTun

/** The settings and peers of a link. */
export function wireguardDevice(index: number): WireguardDevice {
  return withFamily((socket, family) =>
    readWireguard(socket.dump('get wireguard', family, writeWireguardQuery(index), String(index)).map(({ body }) => body)),
  )
}

/** Changes a link; settings that are omitted stay. */
export function setWireguard(change: WireguardChange): void {
  withFamily((socket, family) => {
    for (const body of writeWireguard(change)) socket.request('set wireguard', String(change.index), family, body)
  })
}
